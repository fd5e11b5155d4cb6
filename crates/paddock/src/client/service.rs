//! `paddock service`: manages instances of managed services.
//!
//! The service kinds come from the server; none is hard-coded here.

pub(crate) mod catalog;
mod create;
mod kinds;
pub(crate) mod list;
pub(crate) mod view;

use wire::instance::InstanceChange;

use super::call::{Call, request};
use super::error::Error;
use super::http::Api;
use super::page::Limit;
use super::print::Printer;
use super::subject::{self, INSTANCE, Kind};
use super::wait::Wait;
use create::Spec;
use list::Filter;

/// `paddock service …`.
#[derive(clap::Args)]
#[command(
    override_usage = "paddock service kinds\n       paddock service <KIND> <COMMAND>",
    after_help = "\
Example:
  paddock service kinds
  paddock service kafka create orders --wait
  paddock service kafka list"
)]
pub(crate) struct Args {
    /// Service kind, such as kafka; see "paddock service kinds"
    #[arg(value_name = "KIND")]
    kind: Option<String>,
    #[command(subcommand)]
    verb: Verb,
}

/// Commands of a service kind.
#[derive(clap::Subcommand)]
enum Verb {
    /// List service kinds with their plans, resources and regions
    #[command(
        override_usage = "paddock service kinds [OPTIONS]",
        after_help = "Example:\n  paddock service kinds"
    )]
    Kinds,
    /// Create an instance; defaults follow from your quota and the service kind
    #[command(
        override_usage = "paddock service <KIND> create [OPTIONS] <NAME>",
        after_help = "\
Example:
  paddock service kafka create orders --wait
  paddock service kafka create orders --plan standard.x1 --cloud-provider aws --region us-east-1"
    )]
    Create {
        /// Name of the instance
        name: String,
        #[command(flatten)]
        spec: Spec,
        #[command(flatten)]
        wait: Wait,
    },
    /// List instances of your organization
    #[command(
        visible_alias = "ls",
        override_usage = "paddock service <KIND> list [OPTIONS]",
        after_help = "\
Example:
  paddock service kafka list --status ready
  paddock service kafka list --search \"region like 'us-%' and owner = ann\" --order \"name desc\""
    )]
    List {
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        limit: Limit,
    },
    /// Show an instance
    #[command(
        visible_alias = "get",
        override_usage = "paddock service <KIND> show [OPTIONS] <NAME-OR-ID>",
        after_help = "Example:\n  paddock service kafka show orders"
    )]
    Show {
        /// Name or id of the instance
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Update an instance
    #[command(
        override_usage = "paddock service <KIND> update [OPTIONS] <NAME-OR-ID>",
        after_help = "Example:\n  paddock service kafka update orders --owner bob"
    )]
    Update {
        /// Name or id of the instance
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        #[command(flatten)]
        change: Change,
    },
    /// Delete an instance and all its data
    #[command(
        visible_alias = "rm",
        override_usage = "paddock service <KIND> delete [OPTIONS] <NAME-OR-ID>",
        after_help = "Example:\n  paddock service kafka delete orders --yes --wait"
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

/// Fields to update.
#[derive(clap::Args)]
#[group(required = true, multiple = true)]
struct Change {
    /// User name of the new owner
    #[arg(long, value_name = "USERNAME")]
    owner: Option<String>,
    /// Require clients to reauthenticate periodically
    #[arg(long, value_name = "TRUE-OR-FALSE")]
    reauthentication: Option<bool>,
}

/// Runs a command.
pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let name = match (args.kind, &args.verb) {
        (Some(name), _) => name,
        (None, Verb::Kinds) => return kinds::run(api, printer).await,
        (None, _) => {
            let message = "no service kind: use \"paddock service KIND COMMAND\", with a KIND \
                           from \"paddock service kinds\"";
            return Err(Error::Usage(message.into()));
        }
    };
    let service = catalog::find(api, &name).await?;
    let command = format!("service {name}");
    let kind = Kind { noun: &name, command: &command, service: Some(&name), ..INSTANCE };
    match args.verb {
        Verb::Kinds => kinds::run(api, printer).await,
        Verb::Create { name, spec, wait } => {
            create::run(api, printer, &kind, &name, spec, wait.limit()).await
        }
        Verb::List { filter, limit } => list::organization(api, &service, &filter, limit.limit)
            .await?
            .print(api, printer, view::table),
        Verb::Show { which } => show(api, printer, &kind, &which).await,
        Verb::Update { which, change } => update(api, printer, &kind, &which, change).await,
        Verb::Delete { which, yes, wait } => {
            subject::delete(api, printer, &kind, &which, yes, wait.limit()).await
        }
    }
}

async fn show(api: &Api, printer: &mut Printer, kind: &Kind<'_>, which: &str) -> Result<(), Error> {
    let id = subject::find(api, kind, which).await?.id;
    let response = api.send(&Call::get(&[kind.path, &id])).await?;
    printer.response(&response, || Ok(view::details(&api.read(&response)?)))
}

async fn update(
    api: &Api,
    printer: &mut Printer,
    kind: &Kind<'_>,
    which: &str,
    change: Change,
) -> Result<(), Error> {
    let id = subject::find(api, kind, which).await?.id;
    let Change { owner, reauthentication } = change;
    let body = request(&InstanceChange { owner, reauthentication });
    let response = api.send(&Call::patch(&[kind.path, &id], body)).await?;
    printer.response(&response, || Ok(view::table(&[api.read(&response)?])))
}
