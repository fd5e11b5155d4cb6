//! `paddock cluster token`: creates a token for a cluster's agent.

use serde_json::json;
use wire::cluster::{ClusterToken, TokenRequest};

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::subject::{self, CLUSTER};

pub(crate) const AFTER_HELP: &str = "\
The token is shown only once, on stdout. Instructions go to stderr.

Example:
  paddock cluster token far > far.token
  paddock cluster token far --overlap 3600 > far.token";

/// `paddock cluster token`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name or id of the cluster
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Seconds for which the previous token stays valid [default: 60]
    #[arg(long, value_name = "SECONDS")]
    overlap: Option<u64>,
}

pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let id = subject::find(api, &CLUSTER, &args.which).await?.id;
    create(&id, args.overlap, api, printer).await
}

/// Creates and prints a token for the agent of a cluster.
pub(super) async fn create(
    id: &str,
    overlap: Option<u64>,
    api: &Api,
    printer: &mut Printer,
) -> Result<(), Error> {
    let body = json!(TokenRequest { overlap_secs: overlap });
    let response = api.send(&Call::post(&["clusters", id, "token"], Some(body))).await?;
    let created: ClusterToken = api.read(&response)?;
    printer.response(&response, || Ok(created.token))?;
    let server = api.address();
    printer.note(&format!(
        "save the token to a file, then run on the cluster: paddock agent --server {server} \
         --token-file FILE"
    ));
    Ok(())
}
