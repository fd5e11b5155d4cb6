//! `paddock deploy` and `paddock deployment create`.

use super::super::call::Call;
use super::super::error::Error;
use super::super::http::Api;
use super::super::print::Printer;
use super::super::subject::{self, CLUSTER, DEPLOYMENT};
use super::super::wait::Wait;
use super::spec::Spec;
use super::{dry_run, view};

/// `paddock deploy`.
#[derive(clap::Args)]
#[command(after_help = "\
Each replica requests 100m cpu and 64Mi ram unless --cpu or --ram is given.

Example:
  paddock deploy nginx:1 --name web --port 80 --wait
  paddock deploy nginx:1 --replicas 3 --spread --on-label zone=a --dry-run
  paddock deploy busybox:1 --restart never --run-for 10m -- sh -c \"echo hello; sleep 60\"")]
pub(crate) struct Deploy {
    /// Container image, such as nginx:1 or registry.example/team/web:2
    image: String,
    #[command(flatten)]
    spec: Box<Spec>,
    #[command(flatten)]
    mode: Mode,
}

/// Dry run, and waiting.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Mode {
    /// Show the expected placement without creating the deployment
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    #[command(flatten)]
    wait: Wait,
}

/// Deploys an image.
pub(crate) async fn deploy(args: Deploy, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    run(api, printer, Some(args.image), *args.spec, args.mode).await
}

/// Creates a deployment of `image`, or a reservation without an image.
pub(super) async fn run(
    api: &Api,
    printer: &mut Printer,
    image: Option<String>,
    spec: Spec,
    mode: Mode,
) -> Result<(), Error> {
    let cluster_id = subject::id_if_named(api, &CLUSTER, spec.cluster.as_deref()).await?;
    let body = spec.request(image, cluster_id)?;
    if mode.dry_run {
        let call = Call::create(&["deployments"], body).query("dry_run", Some(true));
        return dry_run::print(api, printer, &api.send(&call).await?).await;
    }
    let response = subject::create(api, &DEPLOYMENT, body, mode.wait.limit()).await?;
    printer.response(&response, || Ok(view::table(&[api.read(&response)?])))
}
