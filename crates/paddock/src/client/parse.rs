//! Parsers of command-line values.

use std::time::Duration;

use base::{Clock as _, SystemClock};
use model::Time;

/// Parses `key=value`. The value may be empty and may contain equals signs.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("must be KEY=VALUE".into()),
    }
}

/// Parses a duration such as `90`, `45s`, `30m`, `12h` or `7d`, in seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err("use for example 45s, 30m, 12h or 7d".into()),
    };
    let count: u64 = digits.parse().map_err(|_| "use for example 45s, 30m, 12h or 7d")?;
    match count.checked_mul(unit) {
        Some(0) => Err("must be greater than zero".into()),
        Some(seconds) if seconds <= MAX_SECONDS => Ok(seconds),
        _ => Err("must be at most 36500d".into()),
    }
}

const MAX_SECONDS: u64 = 100 * 365 * 24 * 60 * 60;

/// Parses a past time, RFC 3339 or a duration before now (`10m`), to RFC 3339.
pub(crate) fn since(text: &str) -> Result<String, String> {
    since_at(text, SystemClock.now())
}

fn since_at(text: &str, now: Time) -> Result<String, String> {
    if let Ok(time) = text.parse::<Time>() {
        return Ok(time.to_string());
    }
    let hint = "use a time such as 2026-01-31T12:00:00Z, or a duration before now, such as 10m";
    let ago = Duration::from_secs(seconds(text).map_err(|_| hint)?);
    Ok((now - ago).to_string())
}

/// Parses a future time, RFC 3339 or a duration from now (`30d`), to RFC 3339.
pub(crate) fn until(text: &str) -> Result<String, String> {
    until_at(text, SystemClock.now())
}

fn until_at(text: &str, now: Time) -> Result<String, String> {
    if let Ok(time) = text.parse::<Time>() {
        return Ok(time.to_string());
    }
    let hint = "use a time such as 2030-01-31T12:00:00Z, or a duration from now, such as 30d";
    let span = Duration::from_secs(seconds(text).map_err(|_| hint)?);
    Ok((now + span).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_at_the_first_equals_sign() {
        for (text, want) in [
            ("a=b", Some(("a", "b"))),
            ("URL=http://h?x=1", Some(("URL", "http://h?x=1"))),
            ("a=", Some(("a", ""))),
            ("=b", None),
            ("a", None),
            ("", None),
        ] {
            let want = want.map(|(key, value)| (key.to_owned(), value.to_owned()));
            assert_eq!(pair(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, want) in [
            ("90", Some(90)),
            ("45s", Some(45)),
            ("30m", Some(1800)),
            ("12h", Some(43_200)),
            ("7d", Some(604_800)),
            ("0", None),
            ("", None),
            ("d", None),
            ("-1d", None),
            ("1.5h", None),
            ("1w", None),
            ("99999999999d", None),
            ("18446744073709551615d", None),
        ] {
            assert_eq!(seconds(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn past_time_is_absolute_or_relative() {
        let now: Time = "2026-01-31T12:00:00Z".parse().unwrap();
        for (text, want) in [
            ("10m", Some("2026-01-31T11:50:00Z")),
            ("1d", Some("2026-01-30T12:00:00Z")),
            ("2026-01-01T02:00:00+02:00", Some("2026-01-01T00:00:00Z")),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(since_at(text, now).ok().as_deref(), want, "{text}");
        }
    }

    #[test]
    fn future_time_is_absolute_or_relative() {
        let now: Time = "2026-01-31T12:00:00Z".parse().unwrap();
        for (text, want) in [
            ("10m", Some("2026-01-31T12:10:00Z")),
            ("1d", Some("2026-02-01T12:00:00Z")),
            ("2030-01-01T02:00:00+02:00", Some("2030-01-01T00:00:00Z")),
            ("2030-01-01", None),
            ("tomorrow", None),
        ] {
            assert_eq!(until_at(text, now).ok().as_deref(), want, "{text}");
        }
    }
}
