//! What Prometheus says, read into types of our own.

use std::collections::BTreeMap;

use model::Time;
use port::Fault;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The labels of a series, its name among them as `__name__`.
pub type Labels = BTreeMap<String, String>;

/// A series at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Which series.
    pub labels: Labels,
    /// Its value, and when.
    pub point: Point,
}

/// A series over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Which series.
    pub labels: Labels,
    /// Its values, the oldest first.
    pub points: Vec<Point>,
}

/// A value at a time. The value can also be infinite, or no number.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "(f64, String)")]
pub struct Point {
    /// When.
    pub at: Time,
    /// What.
    pub value: f64,
}

impl TryFrom<(f64, String)> for Point {
    type Error = String;

    fn try_from((seconds, value): (f64, String)) -> Result<Self, String> {
        // Prometheus has milliseconds; as a float of seconds they are not exact.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float too large becomes the largest"
        )]
        let at_ms = (seconds * 1000.0).round() as i64;
        let value = value.parse().map_err(|_| format!("{value:?} is no value"))?;
        Ok(Self { at: Time(at_ms.saturating_mul(1000)), value })
    }
}

#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Found {
    Vector(Vec<Now>),
    Matrix(Vec<Then>),
    Scalar(Point),
}

#[derive(Deserialize)]
struct Now {
    metric: Labels,
    value: Point,
}

#[derive(Deserialize)]
struct Then {
    metric: Labels,
    values: Vec<Point>,
}

#[derive(Deserialize)]
struct Failure {
    error: String,
}

/// Reads what an expression is at one time.
pub(super) fn samples(body: &[u8]) -> Result<Vec<Sample>, Fault> {
    match read::<Envelope<Found>>(body)?.data {
        Found::Vector(found) => {
            let found = found.into_iter();
            Ok(found.map(|now| Sample { labels: now.metric, point: now.value }).collect())
        }
        Found::Scalar(point) => Ok(vec![Sample { labels: Labels::new(), point }]),
        Found::Matrix(_) => Err(Fault::Refused(
            "The expression gives a range: it can't be asked for at one time".into(),
        )),
    }
}

/// Reads what an expression was over time.
pub(super) fn series(body: &[u8]) -> Result<Vec<Series>, Fault> {
    match read::<Envelope<Found>>(body)?.data {
        Found::Matrix(found) => {
            let found = found.into_iter();
            Ok(found.map(|then| Series { labels: then.metric, points: then.values }).collect())
        }
        Found::Vector(_) | Found::Scalar(_) => Err(confused("it is no range")),
    }
}

/// The reason in a refusal.
pub(super) fn error(body: &[u8]) -> Option<String> {
    read::<Failure>(body).ok().map(|failure| failure.error)
}

pub(super) fn confused(why: &str) -> Fault {
    Fault::Unavailable(format!("Prometheus gave an answer that makes no sense: {why}"))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(body).map_err(|error| confused(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(kind: &str, result: &str) -> Vec<u8> {
        let data = format!(r#"{{"resultType":"{kind}","result":{result}}}"#);
        format!(r#"{{"status":"success","data":{data},"warnings":[]}}"#).into_bytes()
    }

    #[test]
    fn values_and_times_are_read() {
        let result = r#"[{"metric":{"__name__":"up"},"value":[1900000000.123,"1.5"]}]"#;
        let samples = samples(&body("vector", result)).unwrap();
        let point = Point { at: Time(1_900_000_000_123_000), value: 1.5 };
        let labels = Labels::from([("__name__".into(), "up".into())]);
        assert_eq!(samples, [Sample { labels: labels.clone(), point }]);
        let result = r#"[{"metric":{"__name__":"up"},"values":[[1900000000.123,"1.5"]]}]"#;
        assert_eq!(
            series(&body("matrix", result)),
            Ok(vec![Series { labels, points: vec![point] }])
        );
    }

    #[test]
    fn values_that_are_no_numbers_are_kept() {
        let result = |text: &str| body("scalar", &format!(r#"[1,"{text}"]"#));
        let value = |text: &str| samples(&result(text)).unwrap()[0].point.value;
        assert!(value("NaN").is_nan());
        assert!(value("+Inf") > f64::MAX && value("-Inf") < f64::MIN);
        assert!(matches!(samples(&result("many")), Err(Fault::Unavailable(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_called_senseless(bytes: Vec<u8>) {
            prop_assert!(samples(&bytes).is_err() && series(&bytes).is_err());
        }
    }
}
