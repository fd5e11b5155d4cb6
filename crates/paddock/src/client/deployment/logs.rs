//! `paddock deployment logs`: what a deployment's replicas say.

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

/// The largest number of lines that the server counts back.
const MAX_TAIL: i64 = 100_000;

/// `paddock deployment logs`.
#[derive(clap::Args)]
#[command(after_help = "\
With -f it goes on until everything has ended; Ctrl-C ends it before. With -o json each line is
one of JSON.

Example:
  paddock deployment logs web --tail 100
  paddock deployment logs web -f --replica 2 --timestamps")]
pub(crate) struct Args {
    /// Its name or its id
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Goes on as more is said
    #[arg(long, short)]
    follow: bool,
    /// Only the last lines of each replica
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MAX_TAIL))]
    tail: Option<u32>,
    /// Only of the replica of this number
    #[arg(long, value_name = "N")]
    replica: Option<u32>,
    /// With the time of each line
    #[arg(long)]
    timestamps: bool,
}

/// The replicas of a deployment.
fn replicas(deployment: &Deployment) -> &[ReplicaStatus] {
    deployment.replica_statuses.as_deref().unwrap_or_default()
}

/// Where a replica runs.
fn place(replica: &ReplicaStatus) -> Option<(ClusterId, String)> {
    replica.cluster_id.zip(replica.node.clone())
}

/// Whether a replica says nothing more.
fn has_ended(replica: &ReplicaStatus) -> bool {
    matches!(replica.status.as_str(), "completed" | "failed")
}

/// Whose log is wanted.
struct Log<'a> {
    api: &'a Api,
    id: String,
    only: Option<u32>,
}

impl Log<'_> {
    /// What the deployment is now; of its replicas only those that are wanted.
    async fn look(&self) -> Result<Deployment, Error> {
        let answer = self.api.send(&Call::get(&["deployments", &self.id])).await?;
        let mut deployment: Deployment = self.api.read(&answer)?;
        let is_wanted = |replica: &ReplicaStatus| self.only.is_none_or(|n| n == replica.number);
        deployment.replica_statuses.iter_mut().for_each(|all| all.retain(is_wanted));
        Ok(deployment)
    }

    fn call(&self) -> Call {
        Call::get(&["deployments", &self.id, "logs"])
    }
}

/// Shows a log, and with `-f` goes on.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    tokio::select! {
        outcome = read(args, api, printer) => outcome,
        // Whoever has seen enough has not failed.
        () = base::signals::interrupted() => Ok(()),
    }
}

async fn read(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &DEPLOYMENT, &args.which).await?;
    let log = Log { api, id: subject.id.clone(), only: args.replica };
    let deployment = log.look().await?;
    check(&deployment, subject.label(), args.replica)?;
    let replicas = replicas(&deployment);
    if !replicas.iter().any(|replica| has_ended(replica) || place(replica).is_some()) {
        let Deployment { status, status_reason, .. } = &deployment;
        printer
            .note(&format!("{} has said nothing yet: {status}: {status_reason}", subject.label()));
    }
    let show = Show::new(args.timestamps, replicas.len() > 1);
    if args.follow {
        return Follow::new(log, show, args.tail).run(deployment, printer).await;
    }
    once(&log, show, args.tail, printer).await
}

/// What can't have a log is told at once.
fn check(deployment: &Deployment, label: &str, only: Option<u32>) -> Result<(), Error> {
    let next = format!(r#"run "paddock deployment show {label}""#);
    if deployment.image.is_none() {
        let what = format!("{label} has no image: nothing of it runs that could say anything");
        return Err(Error::failed_but(what, next));
    }
    match only {
        Some(number) if replicas(deployment).is_empty() => {
            Err(Error::failed_but(format!("{label} has no replica {number}"), next))
        }
        _ => Ok(()),
    }
}

/// What was said until now.
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
            Err(End::Whole) => return Ok(()),
            Err(End::Broken) => {
                return Err(Error::failed_but("the log broke off", "run the command again"));
            }
            Err(End::Foreign) => return Err(log.api.foreign()),
        }
    }
}
