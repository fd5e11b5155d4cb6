//! `paddock env logs`: what was said while a resource was made, changed or destroyed.

use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::operation_log::{self, Of, Options};
use crate::client::print::Printer;
use crate::client::subject::{self, ENVIRONMENT};

/// `paddock env logs`.
#[derive(clap::Args)]
#[command(after_help = "\
With -f it goes on until the step of the resource is over; Ctrl-C ends it before. What a deployment's
containers say is in \"paddock deployment logs\".

Example:
  paddock env logs shop network
  paddock env logs shop web-0 -f --tail 20")]
pub(crate) struct Args {
    /// The environment, by name or id
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// The resource
    resource: String,
    #[command(flatten)]
    options: Options,
}

/// Shows the log of a resource.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let found = subject::find(api, &ENVIRONMENT, &args.which).await?;
    let of = Of::Resource { environment: &found.id, name: &args.resource };
    operation_log::show(api, printer, of, &args.options).await.map_err(|error| {
        match error.status() {
            Some(404) => error
                .or_next(format!(r#""paddock env show {}" shows its resources"#, found.label())),
            _ => error,
        }
    })
}
