//! `paddock cluster drain`, `paddock cluster retry` and `paddock cluster cancel`.

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::subject::{self, CLUSTER};
use crate::client::wait::{Goal, Wait, settle};

use super::view;

/// Which cluster is drained, and whether that begins or ends.
#[derive(clap::Args)]
pub(crate) struct Drain {
    /// Its name or its id
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Ends the drain: the cluster takes what is new again
    #[arg(long, conflicts_with = "wait")]
    end: bool,
    #[command(flatten)]
    wait: Wait,
}

/// Which cluster is tried again.
#[derive(clap::Args)]
pub(crate) struct Retry {
    /// Its name or its id
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    #[command(flatten)]
    wait: Wait,
}

pub(crate) async fn drain(args: Drain, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let found = subject::find(api, &CLUSTER, &args.which).await?;
    let path = ["clusters", found.id.as_str(), "drain"];
    let call = if args.end { Call::delete(&path) } else { Call::post(&path, None) };
    let answer = api.send(&call).await?;
    let answer = settle(api, &CLUSTER, answer, Goal::EMPTY, args.wait.limit()).await?;
    printer.answer(&answer, || Ok(view::table(&[api.read(&answer)?])))
}

pub(crate) async fn retry(args: Retry, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let found = subject::find(api, &CLUSTER, &args.which).await?;
    let path = ["clusters", found.id.as_str(), "retry"];
    let answer = api.send(&Call::post(&path, None)).await?;
    let answer = settle(api, &CLUSTER, answer, Goal::up(&CLUSTER), args.wait.limit()).await?;
    printer.answer(&answer, || Ok(view::table(&[api.read(&answer)?])))
}

pub(crate) async fn cancel(api: &Api, printer: &mut Printer, which: &str) -> Result<(), Error> {
    let found = subject::find(api, &CLUSTER, which).await?;
    let answer = api.send(&Call::post(&["clusters", &found.id, "cancel"], None)).await?;
    printer.answer(&answer, || Ok(view::table(&[api.read(&answer)?])))
}
