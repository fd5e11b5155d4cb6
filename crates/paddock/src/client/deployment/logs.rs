//! `paddock deployment logs`: shows the logs of a deployment's replicas.

mod follow;
mod line;
mod reader;
mod show;

use model::ClusterId;
use wire::deployment::{Deployment, ReplicaStatus};

use super::super::call::Call;
use super::super::error::Error;
use super::super::http::Api;
use super::super::lines::{End, Lines};
use super::super::print::Printer;
use super::super::subject::{self, DEPLOYMENT};
use follow::Follow;
use line::Line;
use show::Show;

/// The server's maximum for `tail`.
const MAX_TAIL: i64 = 100_000;

/// `paddock deployment logs`.
#[derive(clap::Args)]
#[command(after_help = "\
-f follows until all replicas have ended or Ctrl-C. With -o json, each line is a JSON object.

Example:
  paddock deployment logs web --tail 100
  paddock deployment logs web -f --replica 2 --timestamps")]
pub(crate) struct Args {
    /// Name or id of the deployment
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Follow the log
    #[arg(long, short)]
    follow: bool,
    /// Number of most recent lines to show per replica
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MAX_TAIL))]
    tail: Option<u32>,
    /// Show only this replica
    #[arg(long, value_name = "N")]
    replica: Option<u32>,
    /// Show the time of each line
    #[arg(long)]
    timestamps: bool,
}

/// The replicas of a deployment.
fn replicas(deployment: &Deployment) -> &[ReplicaStatus] {
    deployment.replica_statuses.as_deref().unwrap_or_default()
}

/// Cluster and node of a replica.
fn place(replica: &ReplicaStatus) -> Option<(ClusterId, String)> {
    replica.cluster_id.zip(replica.node.clone())
}

/// Whether a replica produces no more output.
fn has_ended(replica: &ReplicaStatus) -> bool {
    matches!(replica.status.as_str(), "completed" | "failed")
}

/// Deployment, and optionally the replica, whose log is shown.
struct Log<'a> {
    api: &'a Api,
    id: String,
    only: Option<u32>,
}

impl Log<'_> {
    /// Fetches the deployment with the selected replicas.
    async fn fetch(&self) -> Result<Deployment, Error> {
        let response = self.api.send(&Call::get(&["deployments", &self.id])).await?;
        let mut deployment: Deployment = self.api.read(&response)?;
        let is_selected = |replica: &ReplicaStatus| self.only.is_none_or(|n| n == replica.number);
        deployment.replica_statuses.iter_mut().for_each(|all| all.retain(is_selected));
        Ok(deployment)
    }

    fn call(&self) -> Call {
        Call::get(&["deployments", &self.id, "logs"])
    }
}

/// Shows a log, and with `-f` follows it.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    tokio::select! {
        outcome = read(args, api, printer) => outcome,
        // Ctrl-C is a normal way to stop following.
        () = base::signals::interrupted() => Ok(()),
    }
}

async fn read(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &DEPLOYMENT, &args.which).await?;
    let log = Log { api, id: subject.id.clone(), only: args.replica };
    let deployment = log.fetch().await?;
    check(&deployment, subject.label(), args.replica)?;
    let replicas = replicas(&deployment);
    if !replicas.iter().any(|replica| has_ended(replica) || place(replica).is_some()) {
        let Deployment { status, status_reason, .. } = &deployment;
        printer.note(&format!("{} has no logs yet: {status}: {status_reason}", subject.label()));
    }
    let show = Show::new(args.timestamps, replicas.len() > 1);
    if args.follow {
        return Follow::new(log, show, args.tail).run(deployment, printer).await;
    }
    once(&log, show, args.tail, printer).await
}

/// Rejects deployments and replicas that cannot have a log.
fn check(deployment: &Deployment, label: &str, only: Option<u32>) -> Result<(), Error> {
    let hint = format!(r#"run "paddock deployment show {label}""#);
    if deployment.image.is_none() {
        return Err(Error::failed_with_hint(
            format!("{label} has no image, so it has no logs"),
            hint,
        ));
    }
    match only {
        Some(number) if replicas(deployment).is_empty() => {
            Err(Error::failed_with_hint(format!("{label} has no replica {number}"), hint))
        }
        _ => Ok(()),
    }
}

/// Prints the log up to now.
async fn once(
    log: &Log<'_>,
    show: Show,
    tail: Option<u32>,
    printer: &mut Printer,
) -> Result<(), Error> {
    let call = log.call().query("replica", log.only).query("tail", tail);
    let mut lines = Lines::open(log.api, &call).await?;
    loop {
        match lines.next(Line::read).await {
            Ok(line) => show.print(printer, &line)?,
            Err(End::Complete) => return Ok(()),
            Err(End::Broken) => {
                return Err(Error::failed_with_hint("connection lost", "run the command again"));
            }
            Err(End::Invalid) => return Err(log.api.invalid_response()),
        }
    }
}
