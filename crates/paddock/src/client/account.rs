//! `paddock password`: changes the user's password, or sets a new one with a reset code.

use serde_json::json;
use wire::password::{PasswordRedemption, PasswordReset};
use wire::user::{User, UserChange};

use super::call::{Call, request};
use super::config::Session;
use super::error::Error;
use super::format;
use super::http::{Api, ApiResponse};
use super::login;
use super::password;
use super::print::Printer;
use super::table;

const CHANGE_HELP: &str = "\
Ends all of your sessions and revokes your tokens, then logs in again.
--password-stdin reads the current password from the first line and the new one from the second.

Example:
  paddock password change
  printf '%s\\n%s\\n' \"$OLD\" \"$NEW\" | paddock password change --password-stdin";

/// `paddock password …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Change your password
    #[command(after_help = CHANGE_HELP)]
    Change {
        #[command(flatten)]
        password: password::Source,
    },
    /// Set a new password with the code of a reset, and log in
    #[command(after_help = "Example:\n  paddock password reset CODE")]
    Reset {
        /// Code from an owner of the organization or the platform administrator
        code: String,
        #[command(flatten)]
        password: password::Source,
    },
}

/// Runs a command.
pub(crate) async fn run(
    command: Command,
    api: &Api,
    session: Session,
    printer: &mut Printer,
) -> Result<(), Error> {
    match command {
        Command::Change { password } => change(api, session, printer, password).await,
        Command::Reset { code, password } => redeem(api, session, printer, code, password).await,
    }
}

async fn change(
    api: &Api,
    mut session: Session,
    printer: &mut Printer,
    source: password::Source,
) -> Result<(), Error> {
    let (current, new) = source.read_change()?;
    let change = UserChange {
        password: Some(new.clone()),
        current_password: Some(current),
        ..UserChange::default()
    };
    let response = api.send(&Call::patch(&["users", "me"], request(&change))).await?;
    let user: User = api.read(&response)?;
    login::log_in(api, &mut session, &user.username, &new).await?;
    printer.response_or_note(&response, &format!("password of {} changed", user.username))
}

async fn redeem(
    api: &Api,
    mut session: Session,
    printer: &mut Printer,
    code: String,
    source: password::Source,
) -> Result<(), Error> {
    let password = source.read_new()?;
    let body = json!(PasswordRedemption { code, password: password.clone() });
    let call = Call::post(&["password-resets", "redeem"], Some(body)).without_token();
    let response = api.send(&call).await?;
    let user: User = api.read(&response)?;
    login::log_in(api, &mut session, &user.username, &password).await?;
    printer.response_or_note(&response, &format!("password of {} set", user.username))
}

/// Resets the password of a user and shows the code.
pub(crate) async fn reset(api: &Api, printer: &mut Printer, user: &User) -> Result<(), Error> {
    let call = Call::post(&["users", &user.id.to_string(), "password-reset"], None);
    let response = api.send(&call).await?;
    printer.response(&response, || created(api, &response))
}

fn created(api: &Api, response: &ApiResponse) -> Result<String, Error> {
    let reset: PasswordReset = api.read(response)?;
    Ok(table::fields(&[
        ("CODE", reset.code.clone()),
        ("USERNAME", reset.username),
        ("EXPIRES", format::timestamp(reset.expires_at)),
        ("NEXT", format!("paddock password reset {}", reset.code)),
    ]))
}
