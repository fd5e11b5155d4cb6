//! `paddock admin instance`: instances of all organizations, through the administrators' calls of each kind.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::page::Limit;
use crate::client::print::Printer;
use crate::client::service::catalog;
use crate::client::service::list::{self, Filter};
use crate::client::service::view;
use crate::client::subject::{self, INSTANCE, Kind, Subject};
use crate::client::table;
use crate::client::wait::{Goal, Wait, wait};

/// `paddock admin instance …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Lists instances of all organizations
    #[command(
        visible_alias = "ls",
        after_help = "\
Example:
  paddock admin instance list --kind kafka --status failed
  paddock admin instance list --search \"owner = ann\" --order \"created_at desc\""
    )]
    List {
        /// Only those of this kind of service
        #[arg(long)]
        kind: Option<String>,
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        limit: Limit,
    },
    /// Shows all of one instance, with what only administrators see
    #[command(visible_alias = "get", after_help = "Example:\n  paddock admin instance show orders")]
    Show {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Lets an instance rest: it does not run, and keeps its place and all that it holds
    #[command(after_help = "Example:\n  paddock admin instance suspend orders --wait")]
    Suspend {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        #[command(flatten)]
        wait: Wait,
    },
    /// Lets an instance that rests work again
    #[command(after_help = "Example:\n  paddock admin instance resume orders --wait")]
    Resume {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        #[command(flatten)]
        wait: Wait,
    },
    /// Deletes an instance of whichever organization, and all that it holds
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock admin instance delete orders --yes --wait"
    )]
    Delete {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        /// Deletes without asking
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        wait: Wait,
    },
}

/// Carries out one of the commands.
pub(super) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    carry_out(command, api, printer).await.map_err(|error| match error.status() {
        // For others than administrators these calls don't exist.
        Some(404) => error.or_next(super::NEXT),
        _ => error,
    })
}

async fn carry_out(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::List { kind, filter, limit } => {
            let services = catalog::some(api, kind.as_deref()).await?;
            list::of_all(api, &services, &filter, limit.limit).await?.print(
                api,
                printer,
                view::admin_table,
            )
        }
        Command::Show { which } => show(api, printer, &which).await,
        Command::Suspend { which, wait } => rest(api, printer, &which, true, wait.limit()).await,
        Command::Resume { which, wait } => rest(api, printer, &which, false, wait.limit()).await,
        Command::Delete { which, yes, wait } => {
            delete(api, printer, &which, yes, wait.limit()).await
        }
    }
}

async fn show(api: &Api, printer: &mut Printer, which: &str) -> Result<(), Error> {
    let place = Place::find(api, which).await?;
    let answer = api.send(&place.call(Call::get)).await?;
    printer.answer(&answer, || Ok(fields(&api.read(&answer)?)))
}

/// Suspends or resumes.
async fn rest(
    api: &Api,
    printer: &mut Printer,
    which: &str,
    suspended: bool,
    limit: Option<Duration>,
) -> Result<(), Error> {
    let place = Place::find(api, which).await?;
    api.send(&place.call(|path| Call::patch(path, json!({ "suspended": suspended })))).await?;
    if let Some(limit) = limit {
        let up: &[&str] = if suspended { &["suspended"] } else { &["ready"] };
        let kind = Kind { up, ..INSTANCE };
        wait(api, &kind, &place.subject, Goal::up(&kind), limit).await?;
    }
    let answer = api.send(&Call::get(&[INSTANCE.path, &place.subject.id])).await?;
    printer.answer(&answer, || Ok(view::admin_table(&[api.read(&answer)?])))
}

async fn delete(
    api: &Api,
    printer: &mut Printer,
    which: &str,
    yes: bool,
    limit: Option<Duration>,
) -> Result<(), Error> {
    let place = Place::find(api, which).await?;
    let call = place.call(Call::delete).query("async", Some(true));
    subject::delete_by(api, printer, &INSTANCE, &place.subject, call, yes, limit).await
}

/// An instance, and where administrators find it.
struct Place {
    subject: Subject,
    family: String,
    plural: String,
}

impl Place {
    async fn find(api: &Api, which: &str) -> Result<Self, Error> {
        let subject = subject::find(api, &INSTANCE, which).await?;
        let kind = subject.kind.clone().ok_or_else(|| api.foreign())?;
        let service = catalog::find(api, &kind).await?;
        let plural = catalog::plural(api, &service).await?;
        Ok(Self { subject, family: service.api, plural })
    }

    fn call(&self, make: impl FnOnce(&[&str]) -> Call) -> Call {
        make(&["admin", &self.plural, &self.subject.id]).to(&self.family)
    }
}

/// All that there is, whatever the kind calls it.
fn fields(object: &Map<String, Value>) -> String {
    let names: Vec<(String, String)> = object
        .iter()
        .map(|(name, value)| (name.replace('_', " ").to_uppercase(), text(value)))
        .collect();
    let pairs: Vec<(&str, String)> =
        names.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    table::fields(&pairs)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_shown_in_the_words_of_its_kind() {
        let object = json!({ "desired_rhino_version": "1.1", "id": "1", "multi_az": false });
        let text = fields(object.as_object().unwrap());
        let want = "\
DESIRED RHINO VERSION  1.1
ID                     1
MULTI AZ               false
";
        assert_eq!(text, want);
    }
}
