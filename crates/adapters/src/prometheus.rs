//! A client of the Prometheus HTTP API, for instance metrics.

use std::time::Duration;

use model::{Secret, Time};
use port::Fault;
use reqwest::{Client, StatusCode};

use crate::http::{self, root_of};

mod answer;

pub use answer::{Labels, Point, Sample, Series};

/// The Prometheus backend.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its address, for example `https://prometheus.example.com`; may have a path.
    pub url: String,
    /// The bearer token, if it needs one.
    pub token: Option<Secret>,
    /// The timeout of one call, including the body.
    pub timeout: Duration,
    /// The maximum size of a response, in bytes.
    pub max_response_bytes: usize,
}

/// A backend that speaks the Prometheus HTTP API.
#[derive(Debug)]
pub struct Prometheus {
    client: Client,
    options: Options,
}

impl Prometheus {
    /// Checks the options; sends nothing.
    pub fn new(mut options: Options) -> Result<Self, Fault> {
        let url = reqwest::Url::parse(&options.url);
        let is_http = url.is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_http {
            return Err(Fault::Refused(format!(
                "invalid Prometheus address “{}”: must be a URL such as \
                 https://prometheus.example.com",
                options.url
            )));
        }
        options.url.truncate(options.url.trim_end_matches('/').len());
        Ok(Self { client: http::client(&options.url, options.timeout)?, options })
    }

    /// Evaluates an expression at one time.
    pub async fn query(&self, expression: &str, at: Time) -> Result<Vec<Sample>, Fault> {
        let query = [("query", expression.to_owned()), ("time", seconds(at))];
        answer::samples(&self.get("/api/v1/query", &query).await?)
    }

    /// Evaluates an expression over a time range, one point per step.
    pub async fn query_range(
        &self,
        expression: &str,
        start: Time,
        end: Time,
        step: Duration,
    ) -> Result<Vec<Series>, Fault> {
        let query = [
            ("query", expression.to_owned()),
            ("start", seconds(start)),
            ("end", seconds(end)),
            ("step", format!("{:.3}", step.as_secs_f64())),
        ];
        answer::series(&self.get("/api/v1/query_range", &query).await?)
    }

    /// The last values of all series that match a selector, in the exposition format.
    pub async fn federate(&self, selectors: &[&str]) -> Result<String, Fault> {
        let query = selectors.iter().map(|selector| ("match[]", (*selector).to_owned()));
        let body = self.get("/federate", &query.collect::<Vec<_>>()).await?;
        String::from_utf8(body).map_err(|_| answer::invalid_response("it is not UTF-8"))
    }

    async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Vec<u8>, Fault> {
        let mut request = self.client.get(format!("{}{path}", self.options.url)).query(query);
        if let Some(token) = &self.options.token {
            request = request.bearer_auth(token.reveal());
        }
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let body = http::body(answer, self.options.max_response_bytes).await;
        let body = body.map_err(|unread| Fault::Unavailable(format!("Prometheus: {unread}")))?;
        self.check_status(status, &body).map(|()| body)
    }

    fn check_status(&self, status: StatusCode, body: &[u8]) -> Result<(), Fault> {
        match status {
            _ if status.is_success() => Ok(()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Fault::Refused(format!(
                "Prometheus at {} denied access: status {status}. Check the token",
                self.options.url
            ))),
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                Err(Fault::Refused(match answer::error(body) {
                    Some(error) => format!("Prometheus rejected the query: {error}"),
                    None => format!("Prometheus rejected the query: status {status}"),
                }))
            }
            _ => Err(Fault::Unavailable(format!(
                "Prometheus at {} failed: status {status}",
                self.options.url
            ))),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Fault {
        let (url, timeout) = (&self.options.url, self.options.timeout);
        Fault::Unavailable(if error.is_timeout() {
            format!("Prometheus at {url} did not answer within {timeout:?}")
        } else {
            format!("Prometheus at {url} is unreachable: {}", root_of(error))
        })
    }
}

/// Seconds since 1970, in the format of the API.
fn seconds(time: Time) -> String {
    let (whole, rest) = (time.0.div_euclid(1_000_000), time.0.rem_euclid(1_000_000));
    format!("{whole}.{rest:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_decimal_seconds() {
        assert_eq!(seconds(Time(1_900_000_000_123_456)), "1900000000.123456");
        assert_eq!(seconds(Time(5)), "0.000005");
    }
}
