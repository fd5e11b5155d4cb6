//! Commands on an existing environment: repair, extend, retry, cancel, destroy and adopt.

use model::Time;
use serde_json::{Value, json};
use wire::environment::Environment;
use wire::environment::request::RepairResponse;

use super::view;
use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::{Api, ApiResponse};
use crate::client::parse;
use crate::client::print::Printer;
use crate::client::prompt;
use crate::client::subject::{self, ENVIRONMENT};
use crate::client::wait::{Goal, Wait, settle, wait};

/// An environment, and whether to wait for it.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// Name or id of the environment
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    #[command(flatten)]
    wait: Wait,
}

/// `paddock env repair`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  paddock env repair shop --wait
  paddock env repair shop web-0 settings")]
pub(crate) struct Repair {
    /// Name or id of the environment
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Resources to repair [default: all drifted resources]
    #[arg(value_name = "RESOURCE")]
    resources: Vec<String>,
    #[command(flatten)]
    wait: Wait,
}

/// `paddock env extend`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  paddock env extend shop 7d
  paddock env extend shop 2030-01-31T12:00:00Z
  paddock env extend shop --never")]
pub(crate) struct Extend {
    /// Name or id of the environment
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Duration from now, such as 12h or 7d, or a time
    #[arg(value_name = "TTL", required_unless_present = "never", value_parser = end)]
    end: Option<(&'static str, Value)>,
    /// Never destroy it automatically
    #[arg(long, conflicts_with = "end")]
    never: bool,
}

/// `paddock env destroy`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  paddock env destroy shop --yes --wait")]
pub(crate) struct Destroy {
    /// Name or id of the environment
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Skip the confirmation prompt
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    wait: Wait,
}

/// `paddock env adopt`.
#[derive(clap::Args)]
#[command(after_help = "\
The form of OBJECT depends on the executor: a name or id for deployments and instances, address=id
for Terraform resources. The object is adopted when the resource is next created.

Example:
  paddock env adopt shop web-0 old-web
  paddock env retry shop --wait")]
pub(crate) struct Adopt {
    /// Name or id of the environment
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Name of the resource
    resource: String,
    /// Existing object to adopt
    #[arg(value_name = "OBJECT")]
    what: String,
}

/// Parses the end of an environment: a time, or a duration from now.
fn end(text: &str) -> Result<(&'static str, Value), String> {
    if let Ok(time) = text.parse::<Time>() {
        return Ok(("destroy_at", json!(time.to_string())));
    }
    let seconds = parse::seconds(text)
        .map_err(|error| format!("{error}, or a time such as 2030-01-31T12:00:00Z"))?;
    Ok(("ttl", json!(seconds)))
}

/// Repairs drifted resources.
pub(super) async fn repair(args: Repair, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &ENVIRONMENT, &args.which).await?;
    let mut body = json!({});
    if !args.resources.is_empty() {
        body["resources"] = json!(args.resources);
    }
    let call = Call::post(&["environments", &subject.id, "repair"], Some(body));
    let response = api.send(&call).await.map_err(Error::in_document)?;
    let RepairResponse { repaired, .. } = api.read(&response)?;
    if repaired.is_empty() {
        return printer.response_or_note(&response, "nothing to repair");
    }
    let names = repaired.join(", ");
    let Some(limit) = args.wait.limit() else {
        return printer.response_or_note(&response, &format!("repairing: {names}"));
    };
    wait(api, &ENVIRONMENT, &subject, Goal::DEPLOYED, limit).await?;
    printer.response_or_note(&response, &format!("repaired: {names}"))
}

/// Sets the time of destruction.
pub(super) async fn extend(args: Extend, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let (field, when) = args.end.unwrap_or(("destroy_at", Value::Null));
    let response = post(api, &args.which, "extend", Some(json!({ field: when }))).await?;
    show(api, printer, &response)
}

/// Retries a failed deployment or destruction.
pub(super) async fn retry(args: Which, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let response = post(api, &args.which, "retry", None).await?;
    let Environment { status, .. } = api.read(&response)?;
    let goal = if status == "destroying" { Goal::DESTROYED } else { Goal::DEPLOYED };
    show(api, printer, &settle(api, &ENVIRONMENT, response, goal, args.wait.limit()).await?)
}

/// Cancels the running operation.
pub(super) async fn cancel(args: Which, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let response = post(api, &args.which, "cancel", None).await?;
    let response = settle(api, &ENVIRONMENT, response, Goal::IDLE, args.wait.limit()).await?;
    show(api, printer, &response)
}

/// Destroys an environment after confirmation.
pub(super) async fn destroy(args: Destroy, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &ENVIRONMENT, &args.which).await?;
    let label = format!("environment {}", subject.label());
    let question = format!("Destroy {label} ({}) and all its resources?", subject.id);
    prompt::confirm(&question, args.yes)?;
    let response = api.send(&Call::delete(&["environments", &subject.id])).await?;
    let Some(limit) = args.wait.limit() else {
        return printer.response_or_note(&response, &format!("{label} is being destroyed"));
    };
    wait(api, &ENVIRONMENT, &subject, Goal::DESTROYED, limit).await?;
    printer.response_or_note(&response, &format!("{label} destroyed"))
}

/// Lets a resource adopt an existing object.
pub(super) async fn adopt(args: Adopt, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &ENVIRONMENT, &args.which).await?;
    let (name, resource, what) = (subject.label(), &args.resource, &args.what);
    let path = ["environments", &subject.id, "resources", resource, "adopt"];
    let response = api.send(&Call::post(&path, Some(json!({ "what": what })))).await;
    let response = response.map_err(|error| {
        error.or_hint(format!(r#"run "paddock env show {name}" to see its resources"#))
    })?;
    let note = format!(
        r#"{resource} adopts {what} when it is created; if it has failed, run "paddock env retry {name}""#
    );
    printer.response_or_note(&response, &note)
}

/// Posts a command to an environment.
async fn post(
    api: &Api,
    which: &str,
    verb: &str,
    body: Option<Value>,
) -> Result<ApiResponse, Error> {
    let subject = subject::find(api, &ENVIRONMENT, which).await?;
    let response = api.send(&Call::post(&["environments", &subject.id, verb], body)).await;
    let hint = format!(r#"run "paddock env show {}" to see its status"#, subject.label());
    response.map_err(|error| if error.status() == Some(409) { error.or_hint(hint) } else { error })
}

fn show(api: &Api, printer: &mut Printer, response: &ApiResponse) -> Result<(), Error> {
    printer.response(response, || Ok(view::table(&[api.read(response)?])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_is_a_time_or_a_duration() {
        for (text, want) in [
            ("7d", Some(("ttl", json!(604_800)))),
            ("90", Some(("ttl", json!(90)))),
            ("2030-01-01T02:00:00+02:00", Some(("destroy_at", json!("2030-01-01T00:00:00Z")))),
            ("never", None),
            ("0", None),
        ] {
            assert_eq!(end(text).ok(), want, "{text}");
        }
        assert!(end("soon").unwrap_err().contains("2030-01-31T12:00:00Z"));
    }
}
