//! Points in time: microseconds since 1970, formatted as RFC 3339 in UTC.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Invalid;

/// A point in time, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

/// The text is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a time in RFC 3339 format, for example 2030-01-31T12:00:00Z")]
pub struct InvalidTime;

impl Time {
    /// Whole seconds since 1970, as used in ids.
    pub fn seconds(self) -> u32 {
        u32::try_from(self.0.div_euclid(1_000_000)).unwrap_or(0)
    }

    /// The time since `earlier`; zero if that is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn micros(d: Duration) -> i64 {
    i64::try_from(d.as_micros()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(micros(d)))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, d: Duration) -> Time {
        Time(self.0.saturating_sub(micros(d)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(at) => write!(f, "{at}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl FromStr for Time {
    type Err = InvalidTime;
    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        text.parse::<jiff::Timestamp>().map(|at| Time(at.as_microsecond())).map_err(|_| InvalidTime)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Checks a lifetime in seconds, which is at most `max`; without one, `default` or `max` applies.
pub(crate) fn check_lifetime(
    field: &str,
    seconds: Option<i64>,
    default: Duration,
    max: Duration,
) -> Result<Duration, Invalid> {
    let Some(seconds) = seconds else { return Ok(default.min(max)) };
    let life = u64::try_from(seconds).map(Duration::from_secs).unwrap_or_default();
    if life.is_zero() || life > max {
        let max = max.as_secs();
        return Err(Invalid::new(field, format!("must be from 1 to {max} seconds")));
    }
    Ok(life)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_rfc_3339_in_utc() {
        assert_eq!(Time(1_700_000_000_123_456).to_string(), "2023-11-14T22:13:20.123456Z");
        assert_eq!("2023-11-14T23:13:20.5+01:00".parse(), Ok(Time(1_700_000_000_500_000)));
        assert_eq!("yesterday".parse::<Time>(), Err(InvalidTime));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Time(i64::MAX) + Duration::from_secs(1), Time(i64::MAX));
        assert_eq!(Time(0).since(Time(5)), Duration::ZERO);
    }
}
