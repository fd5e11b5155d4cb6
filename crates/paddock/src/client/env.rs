//! `paddock env`: planning, making, changing, watching and destroying environments.

mod apply;
mod change;
mod drift;
#[cfg(test)]
pub(super) mod fixture;
mod graph;
mod logs;
pub(crate) mod plan;
mod view;
mod wish;

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
    /// Shows what would be done; nothing is changed
    Plan(plan::Args),
    /// Makes an environment, or changes the one of that name
    Apply(Box<apply::Args>),
    /// Lists environments
    #[command(
        visible_alias = "ls",
        after_help = "Example:\n  paddock env list --status failed\n  paddock env list --all"
    )]
    List {
        /// Only those with this status
        #[arg(long, value_parser = statuses())]
        status: Option<String>,
        /// Also those that are destroyed
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        limit: Limit,
    },
    /// Shows all of one environment, with its resources
    #[command(visible_alias = "get", after_help = "Example:\n  paddock env show shop")]
    Show {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Shows what needs what in an environment
    Graph(graph::Args),
    /// Shows what was said while a resource was made, changed or destroyed
    Logs(logs::Args),
    /// Shows what is not as it was made, field by field
    Drift(drift::Args),
    /// Mends what is not as it was made
    Repair(change::Repair),
    /// Sets when an environment is destroyed
    Extend(change::Extend),
    /// Goes on with what failed
    #[command(after_help = "Example:\n  paddock env retry shop --wait")]
    Retry(change::Which),
    /// Stops what goes on
    #[command(after_help = "\
What is being done to a resource is brought to an end that can be gone on from.

Example:
  paddock env cancel shop --wait")]
    Cancel(change::Which),
    /// Destroys an environment, and all that was made for it
    Destroy(change::Destroy),
    /// Has a resource that is not made yet take over what exists
    Adopt(change::Adopt),
}

fn statuses() -> PossibleValuesParser {
    Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().into()
}

/// Carries out one of the commands.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Plan(args) => plan::run(args, api, printer).await,
        Command::Apply(args) => apply::run(*args, api, printer).await,
        Command::List { status, all, limit } => {
            // Who asks for what is destroyed wants to see it.
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
        Command::Repair(args) => change::repair(args, api, printer).await,
        Command::Extend(args) => change::extend(args, api, printer).await,
        Command::Retry(args) => change::retry(args, api, printer).await,
        Command::Cancel(args) => change::cancel(args, api, printer).await,
        Command::Destroy(args) => change::destroy(args, api, printer).await,
        Command::Adopt(args) => change::adopt(args, api, printer).await,
    }
}

async fn show(api: &Api, printer: &mut Printer, which: &str) -> Result<(), Error> {
    let id = subject::find(api, &ENVIRONMENT, which).await?.id;
    let answer = api.send(&Call::get(&["environments", &id])).await?;
    printer.answer(&answer, || Ok(view::details(&api.read(&answer)?)))
}
