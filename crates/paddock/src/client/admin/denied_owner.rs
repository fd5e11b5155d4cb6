//! `paddock admin denied-owner`: manages users who may not own instances.

use serde_json::json;
use wire::denied_owner::{DeniedOwner, DeniedOwners, NewDeniedOwner};

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::format;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::prompt;
use crate::client::table::Table;

const PATH: [&str; 2] = ["admin", "denied-owners"];

/// `paddock admin denied-owner …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Forbid a user to own instances, and delete the user's instances
    #[command(after_help = "\
Example:
  paddock admin denied-owner add eve --reason \"Sends spam\" --yes")]
    Add {
        /// User name
        username: String,
        /// Reason, shown in the list
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
    /// List users who may not own instances
    #[command(visible_alias = "ls", after_help = "Example:\n  paddock admin denied-owner list")]
    List,
    /// Allow a user to own instances again
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock admin denied-owner remove eve"
    )]
    Remove {
        /// User name
        username: String,
    },
}

/// Runs a command.
pub(super) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Add { username, reason, yes } => add(api, printer, &username, reason, yes).await,
        Command::List => {
            let response = api.send(&Call::get(&PATH)).await?;
            printer.response(&response, || Ok(table(&api.read::<DeniedOwners>(&response)?.items)))
        }
        Command::Remove { username } => remove(api, printer, &username).await,
    }
}

async fn add(
    api: &Api,
    printer: &mut Printer,
    username: &str,
    reason: Option<String>,
    yes: bool,
) -> Result<(), Error> {
    let question = format!("Forbid {username} to own instances, and delete existing ones?");
    prompt::confirm(&question, yes)?;
    let new = NewDeniedOwner { owner: username.into(), reason: reason.unwrap_or_default() };
    let response = api.send(&Call::create(&PATH, json!(new))).await?;
    printer.response(&response, || Ok(table(&[api.read(&response)?])))
}

async fn remove(api: &Api, printer: &mut Printer, username: &str) -> Result<(), Error> {
    let [admin, denied] = PATH;
    let response = api.send(&Call::delete(&[admin, denied, username])).await.map_err(|error| {
        match error.status() {
            Some(404) => {
                error.or_hint(r#"run "paddock admin denied-owner list" to see denied users"#)
            }
            _ => error,
        }
    })?;
    printer.response_or_note(&response, &format!("{username} may own instances again"))
}

fn table(denied: &[DeniedOwner]) -> String {
    let row = |table: Table, item: &DeniedOwner| {
        let created = format::timestamp(item.created_at);
        table.row([item.owner.clone(), created, item.reason.clone()])
    };
    denied.iter().fold(Table::new(&["OWNER", "CREATED", "REASON"]), row).render()
}
