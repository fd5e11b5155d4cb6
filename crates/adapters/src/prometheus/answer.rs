//! Responses of Prometheus, parsed.

use std::collections::BTreeMap;

use model::Time;
use port::Fault;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The labels of a series, including its name as `__name__`.
pub type Labels = BTreeMap<String, String>;

/// The value of a series at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The labels of the series.
    pub labels: Labels,
    /// The value and its time.
    pub point: Point,
}

/// The values of a series over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The labels of the series.
    pub labels: Labels,
    /// The values, oldest first.
    pub points: Vec<Point>,
}

/// A value at a time. The value can be infinite or NaN.
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
        // Prometheus has milliseconds; as floating-point seconds they are not exact.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float too large becomes the largest"
        )]
        let at_ms = (seconds * 1000.0).round() as i64;
        let value = value.parse().map_err(|_| format!("{value:?} is not a number"))?;
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

/// Parses the result of an instant query.
pub(super) fn samples(body: &[u8]) -> Result<Vec<Sample>, Fault> {
    match read::<Envelope<Found>>(body)?.data {
        Found::Vector(found) => {
            let found = found.into_iter();
            Ok(found.map(|now| Sample { labels: now.metric, point: now.value }).collect())
        }
        Found::Scalar(point) => Ok(vec![Sample { labels: Labels::new(), point }]),
        Found::Matrix(_) => Err(Fault::Refused(
            "the expression returns a range vector; an instant query needs an instant vector"
                .into(),
        )),
    }
}

/// Parses the result of a range query.
pub(super) fn series(body: &[u8]) -> Result<Vec<Series>, Fault> {
    match read::<Envelope<Found>>(body)?.data {
        Found::Matrix(found) => {
            let found = found.into_iter();
            Ok(found.map(|then| Series { labels: then.metric, points: then.values }).collect())
        }
        Found::Vector(_) | Found::Scalar(_) => Err(invalid_response("it is not a range vector")),
    }
}

/// The error message of a rejected query.
pub(super) fn error(body: &[u8]) -> Option<String> {
    read::<Failure>(body).ok().map(|failure| failure.error)
}

pub(super) fn invalid_response(why: &str) -> Fault {
    Fault::Unavailable(format!("Prometheus returned an invalid response: {why}"))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(body).map_err(|error| invalid_response(&error.to_string()))
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
    fn values_and_times_are_parsed() {
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
    fn infinite_and_nan_values_are_preserved() {
        let result = |text: &str| body("scalar", &format!(r#"[1,"{text}"]"#));
        let value = |text: &str| samples(&result(text)).unwrap()[0].point.value;
        assert!(value("NaN").is_nan());
        assert!(value("+Inf") > f64::MAX && value("-Inf") < f64::MIN);
        assert!(matches!(samples(&result("many")), Err(Fault::Unavailable(_))));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_an_invalid_response(bytes: Vec<u8>) {
            prop_assert!(samples(&bytes).is_err() && series(&bytes).is_err());
        }
    }
}
