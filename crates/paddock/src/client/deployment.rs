//! `paddock deployment`: manages deployments, their logs and placement explanations.

mod create;
mod dry_run;
mod explain;
mod logs;
mod scale;
mod spec;
mod view;
mod why;

use clap::builder::PossibleValuesParser;
use model::deployment::Status;

use super::call::Call;
use super::error::Error;
use super::http::Api;
use super::page::{self, Limit};
use super::print::Printer;
use super::subject::{self, CLUSTER, DEPLOYMENT};
use super::wait::Wait;
use create::Mode;
pub(crate) use create::{Deploy, deploy};
use spec::Spec;

/// `paddock deployment …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Create a deployment; without an image it only reserves resources
    #[command(after_help = "\
With an image, each replica requests 100m cpu and 64Mi ram unless --cpu or --ram is given.

Example:
  paddock deployment create --name web --image nginx:1 --cpu 500m --ram 256Mi --port 80 --wait
  paddock deployment create --image busybox:1 --cpu 100m --ram 32Mi -- echo hello
  paddock deployment create --cpu 2 --ram 1Gi --run-for 2h --dry-run")]
    Create {
        /// Container image
        #[arg(long)]
        image: Option<String>,
        #[command(flatten)]
        spec: Box<Spec>,
        #[command(flatten)]
        mode: Mode,
    },
    /// List deployments
    #[command(
        visible_alias = "ls",
        after_help = "Example:\n  paddock deployment list --cluster prod --status queued"
    )]
    List {
        /// Filter by cluster name or id
        #[arg(long, value_name = "NAME-OR-ID")]
        cluster: Option<String>,
        /// Filter by status
        #[arg(long, value_parser = statuses())]
        status: Option<String>,
        #[command(flatten)]
        limit: Limit,
    },
    /// Show a deployment and its replicas
    #[command(visible_alias = "get", after_help = "Example:\n  paddock deployment show web")]
    Show {
        /// Name or id of the deployment
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Show the logs of a deployment
    Logs(logs::Args),
    /// Explain placement: missing capacity per node, blockers and estimated start
    #[command(after_help = "Example:\n  paddock deployment explain web")]
    Explain {
        /// Name or id of the deployment
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Set the number of replicas of a deployment
    #[command(after_help = "Example:\n  paddock deployment scale web 3 --wait")]
    Scale {
        /// Name or id of the deployment
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        /// Number of replicas
        #[arg(value_name = "N", value_parser = scale::count, allow_negative_numbers = true)]
        replicas: u32,
        #[command(flatten)]
        wait: Wait,
    },
    /// Stop and delete a deployment
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock deployment delete web --yes --wait"
    )]
    Delete {
        /// Name or id of the deployment
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        wait: Wait,
    },
}

fn statuses() -> PossibleValuesParser {
    Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().into()
}

/// Runs a command.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Create { image, spec, mode } => {
            create::run(api, printer, image, *spec, mode).await
        }
        Command::List { cluster, status, limit } => {
            list(api, printer, cluster.as_deref(), status.as_deref(), limit.limit).await
        }
        Command::Show { which } => show(api, printer, &which).await,
        Command::Logs(args) => logs::run(args, api, printer).await,
        Command::Explain { which } => explain::run(api, printer, &which).await,
        Command::Scale { which, replicas, wait } => {
            scale::run(api, printer, &which, replicas, wait.limit()).await
        }
        Command::Delete { which, yes, wait } => {
            subject::delete(api, printer, &DEPLOYMENT, &which, yes, wait.limit()).await
        }
    }
}

async fn list(
    api: &Api,
    printer: &mut Printer,
    cluster: Option<&str>,
    status: Option<&str>,
    limit: usize,
) -> Result<(), Error> {
    let call = Call::get(&["deployments"])
        .query("cluster_id", subject::id_if_named(api, &CLUSTER, cluster).await?)
        .query("status", status);
    page::list(api, call, limit).await?.print(api, printer, view::table)
}

async fn show(api: &Api, printer: &mut Printer, which: &str) -> Result<(), Error> {
    let id = subject::find(api, &DEPLOYMENT, which).await?.id;
    let response = api.send(&Call::get(&["deployments", &id])).await?;
    printer.response(&response, || Ok(view::details(&api.read(&response)?)))
}
