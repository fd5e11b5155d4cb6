//! `paddock env logs`: shows the operation log of a resource.

use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::operation_log::{self, Options, Owner};
use crate::client::print::Printer;
use crate::client::subject::{self, ENVIRONMENT};

/// `paddock env logs`.
#[derive(clap::Args)]
#[command(after_help = "\
-f follows until the operation ends or Ctrl-C. For container logs, use \"paddock deployment logs\".

Example:
  paddock env logs shop network
  paddock env logs shop web-0 -f --tail 20")]
pub(crate) struct Args {
    /// Name or id of the environment
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Name of the resource
    resource: String,
    #[command(flatten)]
    options: Options,
}

/// Shows the log of a resource.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let found = subject::find(api, &ENVIRONMENT, &args.which).await?;
    let owner = Owner::Resource { environment: &found.id, name: &args.resource };
    operation_log::show(api, printer, owner, &args.options).await.map_err(|error| {
        match error.status() {
            Some(404) => error.or_hint(format!(
                r#"run "paddock env show {}" to see its resources"#,
                found.label()
            )),
            _ => error,
        }
    })
}
