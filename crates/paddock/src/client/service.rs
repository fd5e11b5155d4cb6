//! `paddock service`: what managed services can be had, and making, listing, showing, changing and
//! deleting instances of them.
//!
//! Which kinds there are is the server's to say: no kind has a name here.

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
    /// The kind of service, such as kafka; "paddock service kinds" lists them
    #[arg(value_name = "KIND")]
    kind: Option<String>,
    #[command(subcommand)]
    verb: Verb,
}

/// What to do.
#[derive(clap::Subcommand)]
enum Verb {
    /// Lists the kinds of service: their plans, what these take, and where they can be had
    #[command(
        override_usage = "paddock service kinds [OPTIONS]",
        after_help = "Example:\n  paddock service kinds"
    )]
    Kinds,
    /// Makes an instance; what is not said is chosen by your quota and the kind's defaults
    #[command(
        override_usage = "paddock service <KIND> create [OPTIONS] <NAME>",
        after_help = "\
Example:
  paddock service kafka create orders --wait
  paddock service kafka create orders --plan standard.x1 --cloud-provider aws --region us-east-1"
    )]
    Create {
        /// What the instance is called
        name: String,
        #[command(flatten)]
        spec: Spec,
        #[command(flatten)]
        wait: Wait,
    },
    /// Lists instances of the organization
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
    /// Shows all of one instance
    #[command(
        visible_alias = "get",
        override_usage = "paddock service <KIND> show [OPTIONS] <NAME-OR-ID>",
        after_help = "Example:\n  paddock service kafka show orders"
    )]
    Show {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Changes an instance
    #[command(
        override_usage = "paddock service <KIND> update [OPTIONS] <NAME-OR-ID>",
        after_help = "Example:\n  paddock service kafka update orders --owner bob"
    )]
    Update {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        #[command(flatten)]
        change: Change,
    },
    /// Deletes an instance, and all that it holds
    #[command(
        visible_alias = "rm",
        override_usage = "paddock service <KIND> delete [OPTIONS] <NAME-OR-ID>",
        after_help = "Example:\n  paddock service kafka delete orders --yes --wait"
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

/// What shall be another.
#[derive(clap::Args)]
#[group(required = true, multiple = true)]
struct Change {
    /// Its new owner, by user name
    #[arg(long, value_name = "USERNAME")]
    owner: Option<String>,
    /// Whether its clients must sign in again from time to time
    #[arg(long, value_name = "TRUE-OR-FALSE")]
    reauthentication: Option<bool>,
}

/// Carries out one of the commands.
pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let name = match (args.kind, &args.verb) {
        (Some(name), _) => name,
        (None, Verb::Kinds) => return kinds::run(api, printer).await,
        (None, _) => {
            let what = "name the kind of service before the verb: paddock service KIND …";
            return Err(Error::Usage(what.into()));
        }
    };
    let service = catalog::find(api, &name).await?;
    let command = format!("service {name}");
    let kind = Kind { word: &name, command: &command, service: Some(&name), ..INSTANCE };
    match args.verb {
        Verb::Kinds => kinds::run(api, printer).await,
        Verb::Create { name, spec, wait } => {
            create::run(api, printer, &kind, &name, spec, wait.limit()).await
        }
        Verb::List { filter, limit } => list::of_tenant(api, &service, &filter, limit.limit)
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
    let answer = api.send(&Call::get(&[kind.path, &id])).await?;
    printer.answer(&answer, || Ok(view::details(&api.read(&answer)?)))
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
    let answer = api.send(&Call::patch(&[kind.path, &id], body)).await?;
    printer.answer(&answer, || Ok(view::table(&[api.read(&answer)?])))
}
