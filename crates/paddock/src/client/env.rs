//! `paddock env`: manages environments.

mod apply;
mod commands;
mod drift;
#[cfg(test)]
pub(super) mod fixture;
mod graph;
mod logs;
pub(crate) mod plan;
mod spec;
mod view;

use clap::builder::PossibleValuesParser;
use model::environment::Status;

use super::call::Call;
use super::error::Error;
use super::http::Api;
use super::page::{self, Limit};
use super::print::Printer;
use super::subject::{self, ENVIRONMENT};

/// `paddock env …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show the planned changes without making them
    Plan(plan::Args),
    /// Create or update an environment
    Apply(Box<apply::Args>),
    /// List environments
    #[command(
        visible_alias = "ls",
        after_help = "Example:\n  paddock env list --status failed\n  paddock env list --all"
    )]
    List {
        /// Filter by status
        #[arg(long, value_parser = statuses())]
        status: Option<String>,
        /// Include destroyed environments
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        limit: Limit,
    },
    /// Show an environment and its resources
    #[command(visible_alias = "get", after_help = "Example:\n  paddock env show shop")]
    Show {
        /// Name or id of the environment
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Show the dependency graph of an environment
    Graph(graph::Args),
    /// Show the operation log of a resource
    Logs(logs::Args),
    /// Show drift, field by field
    Drift(drift::Args),
    /// Repair drifted resources
    Repair(commands::Repair),
    /// Set the time at which an environment is destroyed
    Extend(commands::Extend),
    /// Retry a failed operation
    #[command(after_help = "Example:\n  paddock env retry shop --wait")]
    Retry(commands::Which),
    /// Cancel the running operation
    #[command(after_help = "\
Running steps stop in a state from which \"paddock env retry\" can continue.

Example:
  paddock env cancel shop --wait")]
    Cancel(commands::Which),
    /// Destroy an environment and all its resources
    Destroy(commands::Destroy),
    /// Adopt an existing object as a resource that is not yet created
    Adopt(commands::Adopt),
}

fn statuses() -> PossibleValuesParser {
    Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().into()
}

/// Runs a command.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Plan(args) => plan::run(args, api, printer).await,
        Command::Apply(args) => apply::run(*args, api, printer).await,
        Command::List { status, all, limit } => {
            // `--status destroyed` implies `--all`.
            let all = all || status.as_deref() == Some(Status::Destroyed.as_str());
            let call = Call::get(&["environments"])
                .query("status", status)
                .query("destroyed", all.then_some(true));
            page::list(api, call, limit.limit).await?.print(api, printer, view::table)
        }
        Command::Show { which } => show(api, printer, &which).await,
        Command::Graph(args) => graph::run(args, api, printer).await,
        Command::Logs(args) => logs::run(args, api, printer).await,
        Command::Drift(args) => drift::run(args, api, printer).await,
        Command::Repair(args) => commands::repair(args, api, printer).await,
        Command::Extend(args) => commands::extend(args, api, printer).await,
        Command::Retry(args) => commands::retry(args, api, printer).await,
        Command::Cancel(args) => commands::cancel(args, api, printer).await,
        Command::Destroy(args) => commands::destroy(args, api, printer).await,
        Command::Adopt(args) => commands::adopt(args, api, printer).await,
    }
}

async fn show(api: &Api, printer: &mut Printer, which: &str) -> Result<(), Error> {
    let id = subject::find(api, &ENVIRONMENT, which).await?.id;
    let response = api.send(&Call::get(&["environments", &id])).await?;
    printer.response(&response, || Ok(view::details(&api.read(&response)?)))
}
