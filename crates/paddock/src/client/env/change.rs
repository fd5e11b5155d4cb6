//! What is done to an environment that is there: repair, extend, retry, cancel, destroy, adopt.

use model::Time;
use serde_json::{Value, json};
use wire::environment::Environment;
use wire::environment::request::Repaired;

use super::view;
use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::{Answer, Api};
use crate::client::parse;
use crate::client::print::Printer;
use crate::client::prompt;
use crate::client::subject::{self, ENVIRONMENT};
use crate::client::wait::{Goal, Wait, settle, wait};

/// Which environment, and whether to wait for it.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// Its name or its id
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
    /// Its name or its id
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Only these resources [default: all that are not as they were made]
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
    /// Its name or its id
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// How long from now, such as 12h or 7d, or until when
    #[arg(value_name = "TTL", required_unless_present = "never", value_parser = end)]
    end: Option<(&'static str, Value)>,
    /// It is not destroyed by itself
    #[arg(long, conflicts_with = "end")]
    never: bool,
}

/// `paddock env destroy`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  paddock env destroy shop --yes --wait")]
pub(crate) struct Destroy {
    /// Its name or its id
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Destroys without asking
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    wait: Wait,
}

/// `paddock env adopt`.
#[derive(clap::Args)]
#[command(after_help = "\
What it is called depends on the executor: a deployment or an instance by name or id, a module of
Terraform by address=id. It is taken over when the resource is next made.

Example:
  paddock env adopt shop web-0 old-web
  paddock env retry shop --wait")]
pub(crate) struct Adopt {
    /// Its name or its id
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// The resource
    resource: String,
    /// What exists
    what: String,
}

/// Reads when an environment ends: a time, or how long from now.
fn end(text: &str) -> Result<(&'static str, Value), String> {
    if let Ok(time) = text.parse::<Time>() {
        return Ok(("destroy_at", json!(time.to_string())));
    }
    let seconds = parse::seconds(text)
        .map_err(|why| format!("{why}, or a time like 2030-01-31T12:00:00Z"))?;
    Ok(("ttl", json!(seconds)))
}

/// Mends what has drifted.
pub(super) async fn repair(args: Repair, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &ENVIRONMENT, &args.which).await?;
    let mut body = json!({});
    if !args.resources.is_empty() {
        body["resources"] = json!(args.resources);
    }
    let call = Call::post(&["environments", &subject.id, "repair"], Some(body));
    let answer = api.send(&call).await.map_err(Error::of_document)?;
    let Repaired { repaired, .. } = api.read(&answer)?;
    if repaired.is_empty() {
        return printer.answer_or_note(&answer, "there is nothing to mend");
    }
    let names = repaired.join(", ");
    let Some(limit) = args.wait.limit() else {
        return printer.answer_or_note(&answer, &format!("being mended: {names}"));
    };
    wait(api, &ENVIRONMENT, &subject, Goal::DEPLOYED, limit).await?;
    printer.answer_or_note(&answer, &format!("mended: {names}"))
}

/// Sets when it is destroyed.
pub(super) async fn extend(args: Extend, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let (field, when) = args.end.unwrap_or(("destroy_at", Value::Null));
    let answer = ask(api, &args.which, "extend", Some(json!({ field: when }))).await?;
    show(api, printer, &answer)
}

/// Goes on with what failed: on the way in, or on the way out.
pub(super) async fn retry(args: Which, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let answer = ask(api, &args.which, "retry", None).await?;
    let Environment { status, .. } = api.read(&answer)?;
    let goal = if status == "destroying" { Goal::DESTROYED } else { Goal::DEPLOYED };
    show(api, printer, &settle(api, &ENVIRONMENT, answer, goal, args.wait.limit()).await?)
}

/// Stops what goes on.
pub(super) async fn cancel(args: Which, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let answer = ask(api, &args.which, "cancel", None).await?;
    let answer = settle(api, &ENVIRONMENT, answer, Goal::IDLE, args.wait.limit()).await?;
    show(api, printer, &answer)
}

/// Destroys it, after a question if there is somebody to ask.
pub(super) async fn destroy(args: Destroy, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &ENVIRONMENT, &args.which).await?;
    let label = format!("environment {}", subject.label());
    let question = format!("Destroy {label} ({}) and all that was made for it?", subject.id);
    prompt::confirm(&question, args.yes)?;
    let answer = api.send(&Call::delete(&["environments", &subject.id])).await?;
    let Some(limit) = args.wait.limit() else {
        return printer.answer_or_note(&answer, &format!("{label} is being destroyed"));
    };
    wait(api, &ENVIRONMENT, &subject, Goal::DESTROYED, limit).await?;
    printer.answer_or_note(&answer, &format!("{label} is destroyed"))
}

/// Has a resource take over what exists.
pub(super) async fn adopt(args: Adopt, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &ENVIRONMENT, &args.which).await?;
    let (name, resource, what) = (subject.label(), &args.resource, &args.what);
    let path = ["environments", &subject.id, "resources", resource, "adopt"];
    let answer = api.send(&Call::post(&path, Some(json!({ "what": what })))).await;
    let answer = answer.map_err(|error| {
        error.or_next(format!(r#""paddock env show {name}" shows where its resources are"#))
    })?;
    let note = format!(
        r#"{resource} takes over {what} when it is made; if it has failed, run "paddock env retry {name}""#
    );
    printer.answer_or_note(&answer, &note)
}

/// Asks something of an environment.
async fn ask(api: &Api, which: &str, verb: &str, body: Option<Value>) -> Result<Answer, Error> {
    let subject = subject::find(api, &ENVIRONMENT, which).await?;
    let answer = api.send(&Call::post(&["environments", &subject.id, verb], body)).await;
    let next = format!(r#""paddock env show {}" shows where it is"#, subject.label());
    answer.map_err(|error| if error.status() == Some(409) { error.or_next(next) } else { error })
}

fn show(api: &Api, printer: &mut Printer, answer: &Answer) -> Result<(), Error> {
    printer.answer(answer, || Ok(view::table(&[api.read(answer)?])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_time_or_a_span() {
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
