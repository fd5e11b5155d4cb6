//! `paddock admin instance`: manages instances of all organizations, through the admin API of each
//! service kind.

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
    /// List instances of all organizations
    #[command(
        visible_alias = "ls",
        after_help = "\
Example:
  paddock admin instance list --kind kafka --status failed
  paddock admin instance list --search \"owner = ann\" --order \"created_at desc\""
    )]
    List {
        /// Filter by service kind
        #[arg(long)]
        kind: Option<String>,
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        limit: Limit,
    },
    /// Show an instance, including fields for administrators
    #[command(visible_alias = "get", after_help = "Example:\n  paddock admin instance show orders")]
    Show {
        /// Name or id of the instance
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Suspend an instance: stop it, but keep its capacity and data
    #[command(after_help = "Example:\n  paddock admin instance suspend orders --wait")]
    Suspend {
        /// Name or id of the instance
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        #[command(flatten)]
        wait: Wait,
    },
    /// Resume a suspended instance
    #[command(after_help = "Example:\n  paddock admin instance resume orders --wait")]
    Resume {
        /// Name or id of the instance
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        #[command(flatten)]
        wait: Wait,
    },
    /// Delete an instance and all its data
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock admin instance delete orders --yes --wait"
    )]
    Delete {
        /// Name or id of the instance
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        wait: Wait,
    },
}

/// Runs a command.
pub(super) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    dispatch(command, api, printer).await.map_err(|error| match error.status() {
        // The admin API responds with 404 to other users.
        Some(404) => error.or_hint(super::LOGIN_HINT),
        _ => error,
    })
}

async fn dispatch(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::List { kind, filter, limit } => {
            let services = catalog::find_or_all(api, kind.as_deref()).await?;
            list::all_organizations(api, &services, &filter, limit.limit).await?.print(
                api,
                printer,
                view::admin_table,
            )
        }
        Command::Show { which } => show(api, printer, &which).await,
        Command::Suspend { which, wait } => {
            set_suspended(api, printer, &which, true, wait.limit()).await
        }
        Command::Resume { which, wait } => {
            set_suspended(api, printer, &which, false, wait.limit()).await
        }
        Command::Delete { which, yes, wait } => {
            delete(api, printer, &which, yes, wait.limit()).await
        }
    }
}

async fn show(api: &Api, printer: &mut Printer, which: &str) -> Result<(), Error> {
    let target = Target::find(api, which).await?;
    let response = api.send(&target.call(Call::get)).await?;
    printer.response(&response, || Ok(fields(&api.read(&response)?)))
}

/// Suspends or resumes an instance.
async fn set_suspended(
    api: &Api,
    printer: &mut Printer,
    which: &str,
    suspended: bool,
    limit: Option<Duration>,
) -> Result<(), Error> {
    let target = Target::find(api, which).await?;
    api.send(&target.call(|path| Call::patch(path, json!({ "suspended": suspended })))).await?;
    if let Some(limit) = limit {
        let up: &[&str] = if suspended { &["suspended"] } else { &["ready"] };
        let kind = Kind { up, ..INSTANCE };
        wait(api, &kind, &target.subject, Goal::up(&kind), limit).await?;
    }
    let response = api.send(&Call::get(&[INSTANCE.path, &target.subject.id])).await?;
    printer.response(&response, || Ok(view::admin_table(&[api.read(&response)?])))
}

async fn delete(
    api: &Api,
    printer: &mut Printer,
    which: &str,
    yes: bool,
    limit: Option<Duration>,
) -> Result<(), Error> {
    let target = Target::find(api, which).await?;
    let call = target.call(Call::delete).query("async", Some(true));
    subject::delete_by(api, printer, &INSTANCE, &target.subject, call, yes, limit).await
}

/// An instance and its location in the admin API.
struct Target {
    subject: Subject,
    family: String,
    plural: String,
}

impl Target {
    async fn find(api: &Api, which: &str) -> Result<Self, Error> {
        let subject = subject::find(api, &INSTANCE, which).await?;
        let kind = subject.kind.clone().ok_or_else(|| api.invalid_response())?;
        let service = catalog::find(api, &kind).await?;
        let plural = catalog::plural(api, &service).await?;
        Ok(Self { subject, family: service.api, plural })
    }

    fn call(&self, method: impl FnOnce(&[&str]) -> Call) -> Call {
        method(&["admin", &self.plural, &self.subject.id]).to(&self.family)
    }
}

/// All fields, with the names that the service kind uses.
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
    fn field_names_are_those_of_the_service_kind() {
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
