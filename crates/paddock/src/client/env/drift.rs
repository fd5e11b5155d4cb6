//! `paddock env drift`: shows drifted resources.

use std::time::Duration;

use tokio::time::sleep;
use wire::environment::Environment;
use wire::environment::drift::{Drift, Drifted};
use wire::resource::Resource;

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::format;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::subject::{self, ENVIRONMENT, Subject};
use crate::client::table::Table;

/// Polling interval while resources are observed, and the maximum wait.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
const GIVE_UP_AFTER: Duration = Duration::from_mins(2);

/// `paddock env drift`.
#[derive(clap::Args)]
#[command(after_help = "\
Without --now, shows the result of the last periodic check.

Example:
  paddock env drift shop
  paddock env drift shop --now")]
pub(crate) struct Args {
    /// Name or id of the environment
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Check for drift first
    #[arg(long)]
    now: bool,
}

/// Shows drift.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &ENVIRONMENT, &args.which).await?;
    if args.now {
        api.send(&Call::post(&["environments", &subject.id, "observe"], None)).await?;
        until_observed(api, &subject).await?;
    }
    let response = api.send(&Call::get(&["environments", &subject.id, "drift"])).await?;
    printer.response(&response, || Ok(text(&api.read(&response)?)))?;
    let drift: Drift = api.read(&response)?;
    if drift.resources.iter().any(|resource| !resource.differences.is_empty()) {
        printer.note(&format!(r#"to repair it, run "paddock env repair {}""#, subject.label()));
    }
    Ok(())
}

/// Waits until every existing resource is observed. Polls, because an observation without changes
/// emits no event.
async fn until_observed(api: &Api, subject: &Subject) -> Result<(), Error> {
    let give_up_at = base::monotonic() + GIVE_UP_AFTER;
    loop {
        let response = api.send(&Call::get(&["environments", &subject.id])).await?;
        let environment: Environment = api.read(&response)?;
        let Some(unobserved) = unobserved(&environment) else { return Ok(()) };
        if base::monotonic() > give_up_at {
            let (name, reason) = (&unobserved.name, &unobserved.status_reason);
            return Err(Error::failed_with_hint(
                format!("{name} was not checked within {} s: {reason}", GIVE_UP_AFTER.as_secs()),
                format!(r#"run "paddock env drift {}" to see the last check"#, subject.label()),
            ));
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// An existing resource that is not yet observed.
fn unobserved(environment: &Environment) -> Option<&Resource> {
    let exists = |resource: &&Resource| matches!(resource.status.as_str(), "applied" | "drifted");
    let all = environment.resources.iter().flatten();
    all.filter(exists).find(|resource| resource.observed_at.is_none())
}

/// One row per differing field and per unexpected object.
fn text(drift: &Drift) -> String {
    let rows: Vec<[String; 5]> = drift.resources.iter().flat_map(rows).collect();
    if rows.is_empty() {
        return "No drift.\n".into();
    }
    let header = ["RESOURCE", "FIELD", "EXPECTED", "ACTUAL", "OBSERVED"];
    rows.into_iter().fold(Table::new(&header), Table::row).render()
}

fn rows(drifted: &Drifted) -> Vec<[String; 5]> {
    let name = || drifted.name.clone();
    let observed = || format::timestamp(drifted.observed_at);
    let differences = drifted.differences.iter().map(|difference| {
        let actual = Some(&difference.found).filter(|found| !found.is_null());
        let actual = actual.map_or_else(|| "missing".into(), |found| format::value(Some(found)));
        let expected = format::value(Some(&difference.made));
        [name(), difference.field.clone(), expected, actual, observed()]
    });
    let unexpected = drifted.unexpected.iter().map(|object| {
        [name(), object.clone(), String::new(), "not created by Paddock".into(), observed()]
    });
    differences.chain(unexpected).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixture::environment;
    use super::*;

    #[test]
    fn table_has_one_row_per_field() {
        let drift: Drift = serde_json::from_str(
            r#"{"drifted":true,"resources":[
                {"name":"kv","status":"drifted","observed_at":"2026-01-02T03:04:05.6Z",
                 "differences":[{"field":"values.a","made":"1","found":"2"},
                                {"field":"values.b","made":{"x":1},"found":null}],
                 "unexpected":["shop/c"]}]}"#,
        )
        .unwrap();
        let want = "\
RESOURCE  FIELD     EXPECTED  ACTUAL                  OBSERVED
kv        values.a  1         2                       2026-01-02T03:04:05Z
kv        values.b  {\"x\":1}   missing                 2026-01-02T03:04:05Z
kv        shop/c    -         not created by Paddock  2026-01-02T03:04:05Z
";
        assert_eq!(text(&drift), want);
        assert_eq!(text(&Drift { drifted: false, resources: vec![] }), "No drift.\n");
    }

    #[test]
    fn only_existing_resources_are_observed() {
        for (resources, want) in [
            (
                json!([{"name": "a", "status": "applied", "observed_at": "2026-01-02T03:04:05Z"}]),
                None,
            ),
            (json!([{"name": "a", "status": "applied", "observed_at": null}]), Some("a")),
            (json!([{"name": "a"}, {"name": "b", "status": "drifted"}]), Some("b")),
            (json!([{"name": "a", "status": "applying"}]), None),
        ] {
            let environment = environment(&json!({"resources": resources}));
            assert_eq!(unobserved(&environment).map(|r| r.name.as_str()), want, "{resources}");
        }
    }
}
