//! `paddock deployment scale`: changes the number of replicas.

use std::time::Duration;

use serde_json::json;

use super::super::call::Call;
use super::super::error::Error;
use super::super::http::Api;
use super::super::print::Printer;
use super::super::subject::{self, DEPLOYMENT};
use super::super::wait::{Goal, settle};
use super::view;

/// Parses a number of replicas. The server enforces the maximum.
pub(super) fn count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1; to stop it, run \"paddock deployment delete\"".into()),
        Ok(count) => Ok(count),
        Err(_) => Err("must be a number of at least 1".into()),
    }
}

/// Sets the number of replicas of a deployment.
pub(super) async fn run(
    api: &Api,
    printer: &mut Printer,
    which: &str,
    replicas: u32,
    limit: Option<Duration>,
) -> Result<(), Error> {
    let subject = subject::find(api, &DEPLOYMENT, which).await?;
    let change = json!({ "replicas": replicas });
    let response = api.send(&Call::patch(&["deployments", &subject.id], change)).await?;
    let response = settle(api, &DEPLOYMENT, response, Goal::up(&DEPLOYMENT), limit).await?;
    printer.response(&response, || Ok(view::table(&[api.read(&response)?])))
}

#[cfg(test)]
mod tests {
    #[test]
    fn replica_count_must_be_at_least_one() {
        assert_eq!(super::count("3"), Ok(3));
        assert!(super::count("0").unwrap_err().contains("deployment delete"));
        for text in ["-1", "many", "", "1.5"] {
            assert!(super::count(text).unwrap_err().contains("at least 1"), "{text}");
        }
    }
}
