//! Signing in and out, and who one is.

use serde_json::json;
use wire::user::{Credentials, User};

use super::call::Call;
use super::config::{Session, Token};
use super::error::Error;
use super::http::{Answer, Api};
use super::password;
use super::print::Printer;
use super::prompt;
use super::table;

const LOGIN_HELP: &str = "\
With -o json the server's answer is printed, and the token is in it.

Example:
  paddock login --server http://127.0.0.1:8001 --username ann
  printf %s \"$SECRET\" | paddock login --username ann --password-stdin";

/// `paddock login`.
#[derive(clap::Args)]
#[command(after_help = LOGIN_HELP)]
pub(crate) struct Args {
    /// Who signs in [default: who did the last time, or asked for]
    #[arg(long)]
    username: Option<String>,
    #[command(flatten)]
    password: password::Source,
}

/// Asks for what is missing, and signs in.
pub(crate) async fn run(
    args: Args,
    api: &Api,
    mut session: Session,
    printer: &mut Printer,
) -> Result<(), Error> {
    let username = username(args.username, session.username.as_deref())?;
    let password = args.password.read()?;
    let answer = sign_in(api, &mut session, &username, &password).await?;
    printer.answer_or_note(&answer, &format!("signed in to {} as {username}", api.address()))
}

/// Signs in and remembers the token.
pub(crate) async fn sign_in(
    api: &Api,
    session: &mut Session,
    username: &str,
    password: &str,
) -> Result<Answer, Error> {
    let body = json!(Credentials { username: username.into(), password: password.into() });
    let answer = api.send(&Call::post(&["login"], Some(body)).open()).await?;
    let made: wire::user::Session = api.read(&answer)?;
    session.remember(username, &Token::from(made.token))?;
    Ok(answer)
}

/// Signs in somebody who was made by the call before. That one can't be repeated, so a failure
/// must not look as if nothing had happened.
pub(crate) async fn sign_in_new(
    api: &Api,
    session: &mut Session,
    printer: &Printer,
    username: &str,
    password: &str,
) -> Result<(), Error> {
    match sign_in(api, session, username, password).await {
        Ok(_) => {
            printer.note(&format!("signed in to {} as {username}", api.address()));
            Ok(())
        }
        Err(error) => Err(Error::failed_but(
            format!("user {username} was made, but could not sign in: {}", error.what()),
            format!(r#"run "paddock login --username {username}""#),
        )),
    }
}

/// Signs out here and at the server.
pub(crate) async fn logout(
    api: &Api,
    mut session: Session,
    printer: &mut Printer,
) -> Result<(), Error> {
    let ended = api.send(&Call::post(&["logout"], None)).await;
    // Whatever the server says, this machine forgets the token.
    session.forget()?;
    match ended {
        Ok(answer) => printer.answer_or_note(&answer, &format!("signed out of {}", api.address())),
        Err(error) if error.status() == Some(401) => {
            printer.note("the token was no longer valid; it is forgotten");
            Ok(())
        }
        Err(Error::Unreachable { server, why }) => Err(Error::failed_but(
            format!("can't reach {server}: {why}"),
            "the token is forgotten here, but lives at the server until it expires",
        )),
        Err(error) => Err(error),
    }
}

/// Shows who is signed in.
pub(crate) async fn whoami(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let answer = api.send(&Call::get(&["users", "me"])).await?;
    printer.answer(&answer, || {
        let user: User = api.read(&answer)?;
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
        return Err(Error::Usage("nobody to sign in: use --username".into()));
    }
    Ok(username)
}
