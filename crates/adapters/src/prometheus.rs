//! A client of the Prometheus HTTP API, for the metrics of instances.

use std::time::Duration;

use model::{Secret, Time};
use port::Fault;
use reqwest::{Client, StatusCode};

use crate::http::{self, root_of};

mod answer;

pub use answer::{Labels, Point, Sample, Series};

/// Where metrics are asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its address, for example `https://prometheus.example.com`; a path before the API's is kept.
    pub url: String,
    /// What to show at its door, if it has one.
    pub token: Option<Secret>,
    /// How long one answer may take, with all of its bytes.
    pub timeout: Duration,
    /// How many bytes an answer may have.
    pub most_bytes: usize,
}

/// A backend that speaks the Prometheus HTTP API.
#[derive(Debug)]
pub struct Prometheus {
    client: Client,
    options: Options,
}

impl Prometheus {
    /// Checks the options; asks nobody.
    pub fn new(mut options: Options) -> Result<Self, Fault> {
        let url = reqwest::Url::parse(&options.url);
        let is_http = url.is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_http {
            return Err(Fault::Refused(format!(
                "“{}” is no address of Prometheus, such as https://prometheus.example.com",
                options.url
            )));
        }
        options.url.truncate(options.url.trim_end_matches('/').len());
        Ok(Self { client: http::client(&options.url, options.timeout)?, options })
    }

    /// What an expression is at one time.
    pub async fn query(&self, expression: &str, at: Time) -> Result<Vec<Sample>, Fault> {
        let query = [("query", expression.to_owned()), ("time", seconds(at))];
        answer::samples(&self.get("/api/v1/query", &query).await?)
    }

    /// What an expression was between two times, one point per step.
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

    /// The last values of all series that match one of the selectors, as text for a scraper.
    pub async fn federate(&self, selectors: &[&str]) -> Result<String, Fault> {
        let query = selectors.iter().map(|selector| ("match[]", (*selector).to_owned()));
        let body = self.get("/federate", &query.collect::<Vec<_>>()).await?;
        String::from_utf8(body).map_err(|_| answer::confused("it is not text"))
    }

    async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Vec<u8>, Fault> {
        let mut request = self.client.get(format!("{}{path}", self.options.url)).query(query);
        if let Some(token) = &self.options.token {
            request = request.bearer_auth(token.reveal());
        }
        let answer = request.send().await.map_err(|error| self.unreached(&error))?;
        let status = answer.status();
        let body = http::body(answer, self.options.most_bytes).await;
        let body = body.map_err(|unread| Fault::Unavailable(format!("Prometheus: {unread}")))?;
        self.verdict(status, &body).map(|()| body)
    }

    fn verdict(&self, status: StatusCode, body: &[u8]) -> Result<(), Fault> {
        match status {
            _ if status.is_success() => Ok(()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Fault::Refused(format!(
                "Prometheus at {} does not let us in ({status}): check the token",
                self.options.url
            ))),
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                Err(Fault::Refused(match answer::error(body) {
                    Some(error) => format!("Prometheus refused it: {error}"),
                    None => format!("Prometheus refused it: {status}"),
                }))
            }
            _ => Err(Fault::Unavailable(format!(
                "Prometheus at {} answered {status}",
                self.options.url
            ))),
        }
    }

    fn unreached(&self, error: &reqwest::Error) -> Fault {
        let (url, timeout) = (&self.options.url, self.options.timeout);
        Fault::Unavailable(if error.is_timeout() {
            format!("Prometheus at {url} did not answer within {timeout:?}")
        } else {
            format!("Prometheus at {url} can't be reached: {}", root_of(error))
        })
    }
}

/// Seconds since 1970, as the API takes them.
fn seconds(time: Time) -> String {
    let (whole, rest) = (time.0.div_euclid(1_000_000), time.0.rem_euclid(1_000_000));
    format!("{whole}.{rest:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_with_a_point() {
        assert_eq!(seconds(Time(1_900_000_000_123_456)), "1900000000.123456");
        assert_eq!(seconds(Time(5)), "0.000005");
    }
}
