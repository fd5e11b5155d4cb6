//! `paddock admin user`: manages users of all organizations.

use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::member;
use crate::client::print::Printer;

/// `paddock admin user …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Reset the password of a user; shows a code with which the user sets a new one
    #[command(after_help = "\
The user's sessions and tokens are revoked. The code is shown only once and works for a day.

Example:
  paddock admin user reset-password ann --yes")]
    ResetPassword {
        /// User name
        username: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
}

/// Runs a command.
pub(super) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::ResetPassword { username, yes } => {
            member::reset_password(api, printer, &username, yes).await
        }
    }
}
