//! `paddock cluster drain`, `paddock cluster retry` and `paddock cluster cancel`.

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::subject::{self, CLUSTER};
use crate::client::wait::{Goal, Wait, settle};

use super::view;

/// `paddock cluster drain`.
#[derive(clap::Args)]
pub(crate) struct Drain {
    /// Name or id of the cluster
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// End the drain: accept new replicas again
    #[arg(long, conflicts_with = "wait")]
    end: bool,
    #[command(flatten)]
    wait: Wait,
}

/// `paddock cluster retry`.
#[derive(clap::Args)]
pub(crate) struct Retry {
    /// Name or id of the cluster
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    #[command(flatten)]
    wait: Wait,
}

pub(crate) async fn drain(args: Drain, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let found = subject::find(api, &CLUSTER, &args.which).await?;
    let path = ["clusters", found.id.as_str(), "drain"];
    let call = if args.end { Call::delete(&path) } else { Call::post(&path, None) };
    let response = api.send(&call).await?;
    let response = settle(api, &CLUSTER, response, Goal::EMPTY, args.wait.limit()).await?;
    printer.response(&response, || Ok(view::table(&[api.read(&response)?])))
}

pub(crate) async fn retry(args: Retry, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let found = subject::find(api, &CLUSTER, &args.which).await?;
    let path = ["clusters", found.id.as_str(), "retry"];
    let response = api.send(&Call::post(&path, None)).await?;
    let response = settle(api, &CLUSTER, response, Goal::up(&CLUSTER), args.wait.limit()).await?;
    printer.response(&response, || Ok(view::table(&[api.read(&response)?])))
}

pub(crate) async fn cancel(api: &Api, printer: &mut Printer, which: &str) -> Result<(), Error> {
    let found = subject::find(api, &CLUSTER, which).await?;
    let response = api.send(&Call::post(&["clusters", &found.id, "cancel"], None)).await?;
    printer.response(&response, || Ok(view::table(&[api.read(&response)?])))
}
