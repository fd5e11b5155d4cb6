//! `paddock deployment scale`: more replicas, or fewer.

use std::time::Duration;

use serde_json::json;

use super::super::call::Call;
use super::super::error::Error;
use super::super::http::Api;
use super::super::print::Printer;
use super::super::subject::{self, DEPLOYMENT};
use super::super::wait::{Goal, settle};
use super::view;

/// Reads a number of replicas. How many are too many, the server says.
pub(super) fn count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 runs; to end it, run \"paddock deployment delete\"".into()),
        Ok(count) => Ok(count),
        Err(_) => Err("it must be a number from 1 on".into()),
    }
}

/// Sets how many replicas of a deployment run.
pub(super) async fn run(
    api: &Api,
    printer: &mut Printer,
    which: &str,
    replicas: u32,
    limit: Option<Duration>,
) -> Result<(), Error> {
    let subject = subject::find(api, &DEPLOYMENT, which).await?;
    let change = json!({ "replicas": replicas });
    let answer = api.send(&Call::patch(&["deployments", &subject.id], change)).await?;
    let answer = settle(api, &DEPLOYMENT, answer, Goal::up(&DEPLOYMENT), limit).await?;
    printer.answer(&answer, || Ok(view::table(&[api.read(&answer)?])))
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_is_not_a_number_of_replicas() {
        assert_eq!(super::count("3"), Ok(3));
        assert!(super::count("0").unwrap_err().contains("deployment delete"));
        for text in ["-1", "many", "", "1.5"] {
            assert!(super::count(text).unwrap_err().contains("from 1 on"), "{text}");
        }
    }
}
