//! Validation of environment specs and lifetimes.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::environment::NewEnvironmentRequest;
use model::environment::OnDrift;
use model::{Time, name};
use serde_json::Value;
use wire::environment::request::NewEnvironment;

use crate::Problem;

/// Maximum lifetime of an environment: ten years.
const MAX_LIFE: Duration = Duration::from_hours(24 * 3650);

/// Validates a named environment and returns it with the hash of the reviewed plan.
pub(super) fn named(
    new: NewEnvironment,
    now: Time,
) -> Result<(NewEnvironmentRequest, Option<String>), Problem> {
    if new.name.as_deref().is_none_or(str::is_empty) {
        return Err(Problem::field("name", "is required: 1 to 63 characters of a-z, 0-9 and -"));
    }
    checked(new, now)
}

/// Same as [`named`], but the name is optional.
pub(super) fn checked(
    new: NewEnvironment,
    now: Time,
) -> Result<(NewEnvironmentRequest, Option<String>), Problem> {
    let name = new.name.unwrap_or_default();
    if !name.is_empty() {
        name::dns_label("name", &name)?;
    }
    name::labels("tags", &new.tags)?;
    adoptions(&new.adopt)?;
    let destroy_at = end(new.ttl.as_ref(), new.destroy_at.as_deref(), now)?;
    let spec = NewEnvironmentRequest {
        name,
        description: description(&new.description)?,
        tags: new.tags,
        templates: new.templates,
        parameters: new.parameters,
        on_drift: new.on_drift.as_deref().map(on_drift).transpose()?.unwrap_or_default(),
        destroy_at,
        adopt: new.adopt,
    };
    Ok((spec, new.plan_hash))
}

/// Validates the IDs of the objects to adopt.
pub(super) fn adoptions(adopt: &BTreeMap<String, String>) -> Result<(), Problem> {
    for (resource, what) in adopt {
        name::line(&format!("adopt.{resource}"), what, 1024)?;
    }
    Ok(())
}

/// Validates a description.
pub(super) fn description(text: &str) -> Result<String, Problem> {
    Ok(name::line_or_empty("description", text, 1000)?)
}

pub(super) fn on_drift(text: &str) -> Result<OnDrift, Problem> {
    text.parse().map_err(|_| Problem::field("on_drift", "must be report or repair"))
}

/// Returns the end of life given by `ttl` or `at`.
pub(super) fn end(
    ttl: Option<&Value>,
    at: Option<&str>,
    now: Time,
) -> Result<Option<Time>, Problem> {
    match (ttl, at) {
        (Some(_), Some(_)) => Err(Problem::field("ttl", "must not be combined with destroy_at")),
        (Some(ttl), None) => Ok(Some(now + life("ttl", ttl)?)),
        (None, Some(at)) => instant("destroy_at", at, now).map(Some),
        (None, None) => Ok(None),
    }
}

fn instant(field: &str, text: &str, now: Time) -> Result<Time, Problem> {
    let at: Time = text
        .parse()
        .map_err(|error: model::time::InvalidTime| Problem::field(field, error.to_string()))?;
    if at <= now {
        return Err(Problem::field(field, format!("is in the past: the server time is {now}")));
    }
    if at > now + MAX_LIFE {
        return Err(Problem::field(field, "must be within ten years"));
    }
    Ok(at)
}

/// Parses a lifetime.
fn life(field: &str, value: &Value) -> Result<Duration, Problem> {
    let seconds = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => seconds(text),
        _ => None,
    };
    let life = seconds.map(Duration::from_secs).filter(|life| !life.is_zero() && *life <= MAX_LIFE);
    life.ok_or_else(|| {
        let rule = "must be a number of seconds, or text like 90m, 12h or 7d; at most ten years";
        Problem::field(field, rule)
    })
}

fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        _ => return None,
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<u64>().ok().filter(|_| is_plain)?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lifetime_is_seconds_or_has_a_unit() {
        for (value, seconds) in [
            (json!(90), 90),
            (json!("45s"), 45),
            (json!("90m"), 5400),
            (json!("12h"), 43_200),
            (json!("7d"), 604_800),
            (json!("2w"), 1_209_600),
        ] {
            assert_eq!(life("ttl", &value).unwrap(), Duration::from_secs(seconds), "{value}");
        }
        let bad = ["", "h", "5", "-1h", "+1h", "1.5h", "1 h", "1H", "1y", "0h", "ä", "99999d"];
        let bad = bad.map(|text| json!(text)).into_iter();
        for value in bad.chain([json!(0), json!(-1), json!(1.5), json!(true), json!([5])]) {
            assert!(life("ttl", &value).is_err(), "{value}");
        }
        assert!(life("ttl", &json!("18446744073709551615d")).is_err());
    }

    #[test]
    fn end_of_life_must_be_in_the_future_and_given_once() {
        let now = Time(1_000_000);
        assert_eq!(end(None, None, now).unwrap(), None);
        assert_eq!(end(Some(&json!(1)), None, now).unwrap(), Some(Time(2_000_000)));
        let ahead = "1970-01-01T00:00:02Z";
        assert_eq!(end(None, Some(ahead), now).unwrap(), Some(Time(2_000_000)));
        for (ttl, at) in [
            (Some(json!(1)), Some(ahead)),
            (None, Some("1970-01-01T00:00:01Z")),
            (None, Some("2970-01-01T00:00:01Z")),
            (None, Some("soon")),
        ] {
            assert!(end(ttl.as_ref(), at, now).is_err(), "{ttl:?} {at:?}");
        }
    }
}
