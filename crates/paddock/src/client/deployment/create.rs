//! Making a deployment: `paddock deploy`, `paddock deployment create`, and what either would do.

use super::super::call::Call;
use super::super::error::Error;
use super::super::http::Api;
use super::super::print::Printer;
use super::super::subject::{self, CLUSTER, DEPLOYMENT};
use super::super::wait::Wait;
use super::spec::Spec;
use super::{forecast, view};

/// `paddock deploy`.
#[derive(clap::Args)]
#[command(after_help = "\
Without --cpu, --ram and --resource each replica gets 100m of cpu and 64Mi of ram.

Example:
  paddock deploy nginx:1 --name web --port 80 --wait
  paddock deploy nginx:1 --replicas 3 --spread --on-label zone=a --dry-run
  paddock deploy busybox:1 --restart never --run-for 10m -- sh -c \"echo hello; sleep 60\"")]
pub(crate) struct Deploy {
    /// The container image, such as nginx:1 or registry.example/team/web:2
    image: String,
    #[command(flatten)]
    spec: Box<Spec>,
    #[command(flatten)]
    how: How,
}

/// Whether it is done, and whether the command waits for it.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct How {
    /// Only shows what would happen; nothing is done
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    #[command(flatten)]
    wait: Wait,
}

/// Deploys an image.
pub(crate) async fn deploy(args: Deploy, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    run(api, printer, Some(args.image), *args.spec, args.how).await
}

/// Makes a deployment of `image`, or of nothing but its resources.
pub(super) async fn run(
    api: &Api,
    printer: &mut Printer,
    image: Option<String>,
    spec: Spec,
    how: How,
) -> Result<(), Error> {
    let cluster_id = subject::id_if_named(api, &CLUSTER, spec.cluster.as_deref()).await?;
    let body = spec.request(image, cluster_id)?;
    if how.dry_run {
        let call = Call::create(&["deployments"], body).query("dry_run", Some(true));
        return forecast::print(api, printer, &api.send(&call).await?).await;
    }
    let answer = subject::create(api, &DEPLOYMENT, body, how.wait.limit()).await?;
    printer.answer(&answer, || Ok(view::table(&[api.read(&answer)?])))
}
