//! `paddock admin auditor`: lets users read everything of all organizations.

use wire::user::UserChange;

use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::member;
use crate::client::print::Printer;

/// `paddock admin auditor`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// User name
    username: String,
    /// End the access; the user stays a viewer of its organization
    #[arg(long)]
    remove: bool,
}

/// Sets the access of the user.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let access = if args.remove { "tenant" } else { "auditor" };
    let change = UserChange { access: Some(access.into()), ..UserChange::default() };
    let note = format!("access of {} is {access}", args.username);
    member::change(api, printer, &args.username, &change, &note).await
}
