//! `paddock credential` and `paddock registry`: the organization's own credentials for external
//! systems. Secrets are read from standard input and never shown.

use std::io::Read as _;

use serde_json::json;
use wire::credential::{Credential, CredentialList, SetCredential};

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::Api;
use super::print::Printer;
use super::table::Table;
use super::{password, prompt};

const PATH: &str = "credentials";
/// Maximum size of a secret that is read.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// `paddock credential …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Set a credential of your organization; the secret is read from standard input
    #[command(after_help = "\
Example:
  paddock credential set vault < token.txt
  paddock credential set terraform AWS_SECRET_ACCESS_KEY < key.txt")]
    Set {
        /// System: `consul`, `vault`, `terraform` or `registry`
        system: String,
        /// Environment variable of Terraform, or host of a registry [default: token]
        #[arg(default_value = "token", hide_default_value = true)]
        name: String,
        /// User of a registry
        #[arg(long, value_name = "NAME")]
        username: Option<String>,
    },
    /// List the credentials of your organization, without secrets
    #[command(visible_alias = "ls", after_help = "Example:\n  paddock credential list")]
    List,
    /// Delete a credential of your organization; the platform's is used instead, if there is one
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock credential delete vault --yes"
    )]
    Delete {
        /// System: `consul`, `vault`, `terraform` or `registry`
        system: String,
        /// Environment variable of Terraform, or host of a registry [default: token]
        #[arg(default_value = "token", hide_default_value = true)]
        name: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
}

/// `paddock registry …`.
#[derive(clap::Subcommand)]
pub(crate) enum Registry {
    /// Register credentials with which your organization pulls images from a registry
    #[command(after_help = "\
Example:
  paddock registry login registry.example.com --username ci --password-stdin < password.txt")]
    Login {
        /// Host of the registry, as images name it
        host: String,
        /// User
        #[arg(long, short, value_name = "NAME")]
        username: String,
        #[command(flatten)]
        password: password::Source,
    },
    /// Delete the credentials of a registry
    #[command(after_help = "Example:\n  paddock registry logout registry.example.com")]
    Logout {
        /// Host of the registry
        host: String,
    },
}

/// Runs `paddock credential`.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Set { system, name, username } => {
            let secret = read_secret()?;
            set(api, printer, (&system, &name), SetCredential { secret, username }).await
        }
        Command::List => {
            let response = api.send(&Call::get(&[PATH])).await?;
            printer.response(&response, || Ok(table(&api.read::<CredentialList>(&response)?.items)))
        }
        Command::Delete { system, name, yes } => {
            prompt::confirm(&format!("Delete credential {system} {name}?"), yes)?;
            delete(api, printer, &system, &name).await
        }
    }
}

/// Runs `paddock registry`.
pub(crate) async fn run_registry(
    command: Registry,
    api: &Api,
    printer: &mut Printer,
) -> Result<(), Error> {
    match command {
        Registry::Login { host, username, password } => {
            let (secret, username) = (password.read()?, Some(username));
            set(api, printer, ("registry", &host), SetCredential { secret, username }).await
        }
        Registry::Logout { host } => delete(api, printer, "registry", &host).await,
    }
}

async fn set(
    api: &Api,
    printer: &mut Printer,
    (system, name): (&str, &str),
    request: SetCredential,
) -> Result<(), Error> {
    let response = api.send(&Call::put(&[PATH, system, name], json!(request))).await?;
    printer.response(&response, || Ok(table(&[api.read(&response)?])))
}

async fn delete(api: &Api, printer: &mut Printer, system: &str, name: &str) -> Result<(), Error> {
    let response =
        api.send(&Call::delete(&[PATH, system, name])).await.map_err(|error| {
            match error.status() {
                Some(404) => {
                    error.or_hint(r#"run "paddock credential list" to see all credentials"#)
                }
                _ => error,
            }
        })?;
    printer.response_or_note(&response, &format!("credential {system} {name} deleted"))
}

/// Reads a secret from standard input, without the line break at its end.
fn read_secret() -> Result<String, Error> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_SECRET_BYTES).read_to_string(&mut text);
    read.map_err(|error| Error::failed(format!("cannot read the secret: {error}")))?;
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        return Err(Error::Usage("no secret on stdin".into()));
    }
    Ok(secret.to_owned())
}

fn table(credentials: &[Credential]) -> String {
    let row = |table: Table, credential: &Credential| {
        table.row([
            credential.system.clone(),
            credential.name.clone(),
            format::optional(credential.username.as_ref()),
            format::timestamp(credential.updated_at),
        ])
    };
    let header = ["SYSTEM", "NAME", "USERNAME", "UPDATED"];
    credentials.iter().fold(Table::new(&header), row).render()
}
