//! `paddock login`, `paddock logout` and `paddock whoami`.

use serde_json::json;
use wire::user::{Credentials, User};

use super::call::Call;
use super::config::{Session, Token};
use super::error::Error;
use super::http::{Api, ApiResponse};
use super::password;
use super::print::Printer;
use super::prompt;
use super::table;

const LOGIN_HELP: &str = "\
-o json prints the server's response, including the token.

Example:
  paddock login --server http://127.0.0.1:8001 --username ann
  printf %s \"$SECRET\" | paddock login --username ann --password-stdin";

/// `paddock login`.
#[derive(clap::Args)]
#[command(after_help = LOGIN_HELP)]
pub(crate) struct Args {
    /// User name [default: that of the last login, or prompted]
    #[arg(long)]
    username: Option<String>,
    #[command(flatten)]
    password: password::Source,
}

/// Prompts for missing values and logs in.
pub(crate) async fn run(
    args: Args,
    api: &Api,
    mut session: Session,
    printer: &mut Printer,
) -> Result<(), Error> {
    let username = username(args.username, session.username.as_deref())?;
    let password = args.password.read()?;
    let response = log_in(api, &mut session, &username, &password).await?;
    printer.response_or_note(&response, &format!("logged in to {} as {username}", api.address()))
}

/// Logs in and stores the token.
pub(crate) async fn log_in(
    api: &Api,
    session: &mut Session,
    username: &str,
    password: &str,
) -> Result<ApiResponse, Error> {
    let body = json!(Credentials { username: username.into(), password: password.into() });
    let response = api.send(&Call::post(&["login"], Some(body)).without_token()).await?;
    let created: wire::user::Session = api.read(&response)?;
    session.store(username, &Token::from(created.token))?;
    Ok(response)
}

/// Logs in a user that the previous call created. A failure must say that the user exists, because
/// the creation cannot be retried.
pub(crate) async fn log_in_new_user(
    api: &Api,
    session: &mut Session,
    printer: &Printer,
    username: &str,
    password: &str,
) -> Result<(), Error> {
    match log_in(api, session, username, password).await {
        Ok(_) => {
            printer.note(&format!("logged in to {} as {username}", api.address()));
            Ok(())
        }
        Err(error) => Err(Error::failed_with_hint(
            format!("user {username} was created, but login failed: {}", error.message()),
            format!(r#"run "paddock login --username {username}""#),
        )),
    }
}

/// Removes the stored token and revokes it at the server.
pub(crate) async fn logout(
    api: &Api,
    mut session: Session,
    printer: &mut Printer,
) -> Result<(), Error> {
    let revoked = api.send(&Call::post(&["logout"], None)).await;
    // The stored token is removed even if the server fails.
    session.remove_token()?;
    match revoked {
        Ok(response) => {
            printer.response_or_note(&response, &format!("logged out of {}", api.address()))
        }
        Err(error) if error.status() == Some(401) => {
            printer.note("the stored token was no longer valid and was removed");
            Ok(())
        }
        Err(Error::Unreachable { server, why }) => Err(Error::failed_with_hint(
            format!("cannot reach {server}: {why}"),
            "the stored token was removed, but stays valid at the server until it expires",
        )),
        Err(error) => Err(error),
    }
}

/// Shows the current user.
pub(crate) async fn whoami(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let response = api.send(&Call::get(&["users", "me"])).await?;
    printer.response(&response, || {
        let user: User = api.read(&response)?;
        Ok(table::fields(&[
            ("USERNAME", user.username),
            ("DISPLAY NAME", user.display_name),
            ("ID", user.id.to_string()),
            ("ROLE", user.role),
            ("ACCESS", user.access),
            ("ORGANIZATION", user.organization_id.to_string()),
            ("SERVER", api.address()),
        ]))
    })
}

fn username(given: Option<String>, last: Option<&str>) -> Result<String, Error> {
    if let Some(username) = given {
        return Ok(username);
    }
    let username = match last {
        last if prompt::is_interactive() => prompt::line("Username", last)?,
        last => last.unwrap_or_default().to_owned(),
    };
    if username.is_empty() {
        return Err(Error::Usage("no user name: use --username".into()));
    }
    Ok(username)
}
