//! Formats values for tables.

use std::collections::BTreeMap;

use model::{Quantity, Resources, Time};
use serde_json::Value;
use wire::amount::Capacity;

/// A resource quantity; memory and disk with a binary unit.
pub(crate) fn amount(kind: &str, amount: Quantity) -> String {
    if matches!(kind, "ram" | "disk") {
        return size_bytes((amount.milli() / 1000).unsigned_abs());
    }
    amount.to_string()
}

/// Resource quantities, such as `cpu=1,ram=2Gi`.
pub(crate) fn resources(resources: &Resources) -> String {
    join(resources.iter().map(|(kind, quantity)| format!("{kind}={}", amount(kind, quantity))))
}

/// A size with a binary unit.
#[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
pub(crate) fn size_bytes(bytes: u64) -> String {
    size(bytes as f64)
}

fn size(bytes: f64) -> String {
    let units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = format!("{value:.1}");
    format!("{}{}", text.trim_end_matches(".0"), units[unit])
}

/// `used/total` of one resource of a cluster.
pub(crate) fn usage(kind: &str, capacity: &BTreeMap<String, Capacity>) -> String {
    let text = |c: &Capacity| format!("{}/{}", amount(kind, c.used), amount(kind, c.total));
    capacity.get(kind).map(text).unwrap_or_default()
}

/// Key-value pairs, such as `team=web,tier=1`.
pub(crate) fn pairs(pairs: &BTreeMap<String, String>) -> String {
    join(pairs.iter().map(|(key, value)| format!("{key}={value}")))
}

/// Joins with commas.
pub(crate) fn join(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join(",")
}

/// A point in time, truncated to seconds.
pub(crate) fn timestamp(at: impl Into<Option<Time>>) -> String {
    let second = |at: Time| Time(at.0 - at.0.rem_euclid(1_000_000)).to_string();
    at.into().map(second).unwrap_or_default()
}

/// An RFC 3339 time, truncated to seconds.
pub(crate) fn time(rfc3339: Option<&str>) -> String {
    let Some(text) = rfc3339 else { return String::new() };
    match text.split_once('.') {
        Some((seconds, fraction)) => {
            format!("{seconds}{}", fraction.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => text.into(),
    }
}

/// A duration in the largest unit that divides it.
pub(crate) fn span(seconds: u64) -> String {
    let units = [(24 * 60 * 60, "d"), (60 * 60, "h"), (60, "m")];
    let fits = units.into_iter().find(|(size, _)| seconds > 0 && seconds.is_multiple_of(*size));
    let (size, unit) = fits.unwrap_or((1, "s"));
    format!("{}{unit}", seconds / size)
}

/// `yes` or `no`.
pub(crate) fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.into()
}

/// Quotes a text for a shell.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A JSON value on one line; strings without quotes.
pub(crate) fn value(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A string, empty if absent.
pub(crate) fn optional(text: Option<&String>) -> String {
    text.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_and_disk_have_a_unit() {
        for (kind, amount, want) in [
            ("ram", "8589934592", "8Gi"),
            ("disk", "1073741824", "1Gi"),
            ("ram", "1610612736", "1.5Gi"),
            ("ram", "268435456", "256Mi"),
            ("ram", "1000", "1000"),
            ("ram", "0", "0"),
            ("cpu", "4", "4"),
            ("cpu", "0.5", "0.5"),
            ("gpu", "8589934592", "8589934592"),
        ] {
            assert_eq!(super::amount(kind, amount.parse().unwrap()), want, "{kind} {amount}");
        }
    }

    #[test]
    fn spans_use_the_largest_dividing_unit() {
        for (seconds, want) in
            [(172_800, "2d"), (3600, "1h"), (5400, "90m"), (61, "61s"), (0, "0s"), (90_000, "25h")]
        {
            assert_eq!(span(seconds), want);
        }
    }

    #[test]
    fn shell_words_are_quoted_if_needed() {
        for (text, want) in [
            ("web-shop@1.4.0", "web-shop@1.4.0"),
            ("names=[1,2]", "'names=[1,2]'"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), want);
        }
    }

    #[test]
    fn values_are_printed_on_one_line() {
        for (json, want) in [("\"a\"", "a"), ("[1, \"a\"]", "[1,\"a\"]"), ("null", ""), ("3", "3")]
        {
            assert_eq!(value(Some(&serde_json::from_str(json).unwrap())), want);
        }
    }

    #[test]
    fn times_are_truncated_to_seconds() {
        for (text, want) in [
            (Some("2026-01-02T03:04:05.678901Z"), "2026-01-02T03:04:05Z"),
            (Some("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05Z"),
            (Some("2026-01-02T03:04:05.1+02:00"), "2026-01-02T03:04:05+02:00"),
            (None, ""),
        ] {
            assert_eq!(time(text), want);
        }
    }

    #[test]
    fn timestamps_are_truncated_to_seconds() {
        assert_eq!(timestamp(Time(1_700_000_000_123_456)), "2023-11-14T22:13:20Z");
        assert_eq!(timestamp(None), "");
    }
}
