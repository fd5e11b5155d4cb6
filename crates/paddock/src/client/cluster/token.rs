//! `paddock cluster token`: a new token for a cluster's agent.

use serde_json::json;
use wire::cluster::{ClusterToken, TokenRequest};

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::subject::{self, CLUSTER};

pub(crate) const AFTER_HELP: &str = "\
The token is shown only now. It goes to stdout, and what to do with it to stderr.

Example:
  paddock cluster token far > far.token
  paddock cluster token far --overlap 3600 > far.token";

/// Which cluster's.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Its name or its id
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// How long the token of before goes on being good [default: 60]
    #[arg(long, value_name = "SECONDS")]
    overlap: Option<u64>,
}

pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let id = subject::find(api, &CLUSTER, &args.which).await?.id;
    make(&id, args.overlap, api, printer).await
}

/// Makes a token for the agent of a cluster.
pub(super) async fn make(
    id: &str,
    overlap: Option<u64>,
    api: &Api,
    printer: &mut Printer,
) -> Result<(), Error> {
    let body = json!(TokenRequest { overlap_secs: overlap });
    let answer = api.send(&Call::post(&["clusters", id, "token"], Some(body))).await?;
    let made: ClusterToken = api.read(&answer)?;
    printer.answer(&answer, || Ok(made.token))?;
    let server = api.address();
    printer.note(&format!(
        "keep it in a file, and beside the cluster run: paddock agent --server {server} --token-file FILE"
    ));
    Ok(())
}
