//! `paddock deployment`: making, listing, showing and deleting deployments.

mod spec;
mod view;

use clap::builder::PossibleValuesParser;
use model::deployment::Status;

use super::call::Call;
use super::error::Error;
use super::http::Api;
use super::page::{self, Limit};
use super::print::Printer;
use super::subject::{self, CLUSTER, DEPLOYMENT};
use super::wait::Wait;
pub(crate) use spec::Spec;

/// `paddock deployment …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Makes a deployment; without an image it only holds its resources
    #[command(after_help = "\
Example:
  paddock deployment create --name web --image nginx:1 --cpu 500m --ram 256Mi --port 80 --wait
  paddock deployment create --image busybox:1 --cpu 100m --ram 32Mi -- echo hello")]
    Create {
        /// The container image
        #[arg(long)]
        image: Option<String>,
        #[command(flatten)]
        spec: Box<Spec>,
        #[command(flatten)]
        wait: Wait,
    },
    /// Lists deployments
    #[command(
        visible_alias = "ls",
        after_help = "Example:\n  paddock deployment list --cluster prod --status queued"
    )]
    List {
        /// Only those on this cluster, by name or id
        #[arg(long, value_name = "NAME-OR-ID")]
        cluster: Option<String>,
        /// Only those with this status
        #[arg(long, value_parser = statuses())]
        status: Option<String>,
        #[command(flatten)]
        limit: Limit,
    },
    /// Shows all of one deployment
    #[command(after_help = "Example:\n  paddock deployment show web")]
    Show {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Stops and deletes a deployment
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock deployment delete web --yes --wait"
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

fn statuses() -> PossibleValuesParser {
    Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().into()
}

/// Carries out one of the commands.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Create { image, spec, wait } => create(api, printer, image, *spec, wait).await,
        Command::List { cluster, status, limit } => {
            list(api, printer, cluster.as_deref(), status.as_deref(), limit.limit).await
        }
        Command::Show { which } => show(api, printer, &which).await,
        Command::Delete { which, yes, wait } => {
            subject::delete(api, printer, &DEPLOYMENT, &which, yes, wait.limit()).await
        }
    }
}

/// Makes a deployment of `image`, or of nothing but its resources.
pub(crate) async fn create(
    api: &Api,
    printer: &mut Printer,
    image: Option<String>,
    spec: Spec,
    wait: Wait,
) -> Result<(), Error> {
    let cluster_id = cluster_id(api, spec.cluster.as_deref()).await?;
    let body = spec.request(image, cluster_id)?;
    let answer = subject::create(api, &DEPLOYMENT, body, wait.limit()).await?;
    printer.answer(&answer, || Ok(view::table(&[api.read(&answer)?])))
}

async fn list(
    api: &Api,
    printer: &mut Printer,
    cluster: Option<&str>,
    status: Option<&str>,
    limit: usize,
) -> Result<(), Error> {
    let call = Call::get(&["deployments"])
        .query("cluster_id", cluster_id(api, cluster).await?)
        .query("status", status);
    page::list(api, call, limit).await?.print(api, printer, view::table)
}

async fn show(api: &Api, printer: &mut Printer, which: &str) -> Result<(), Error> {
    let id = subject::find(api, &DEPLOYMENT, which).await?.id;
    let answer = api.send(&Call::get(&["deployments", &id])).await?;
    printer.answer(&answer, || Ok(view::details(&api.read(&answer)?)))
}

async fn cluster_id(api: &Api, which: Option<&str>) -> Result<Option<String>, Error> {
    match which {
        Some(which) => Ok(Some(subject::find(api, &CLUSTER, which).await?.id)),
        None => Ok(None),
    }
}
