//! `paddock env graph`: shows the dependency graph of an environment.

use crate::client::error::Error;
use crate::client::graph::{Drawing, draw};
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::subject::{self, ENVIRONMENT};

/// `paddock env graph`.
#[derive(clap::Args)]
#[command(after_help = "\
Like \"paddock graph environment/NAME\", but also accepts an id.

Example:
  paddock env graph shop
  paddock env graph shop --format svg > shop.svg
  paddock env graph shop --format dot | dot -Tpng > shop.png")]
pub(crate) struct Args {
    /// Name or id of the environment
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    #[command(flatten)]
    drawing: Drawing,
}

/// Shows the graph around an environment.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &ENVIRONMENT, &args.which).await?;
    draw(api, printer, &subject.id, &args.drawing).await
}
