//! `paddock admin denied-owner`: users who may not have instances.

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
    /// Denies a user instances; those that the user has are deleted
    #[command(after_help = "\
Example:
  paddock admin denied-owner add eve --reason \"Sends spam\" --yes")]
    Add {
        /// The user's name
        username: String,
        /// Why, for those who look at the list
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Denies without asking
        #[arg(long, short)]
        yes: bool,
    },
    /// Lists the users who may not have instances
    #[command(visible_alias = "ls", after_help = "Example:\n  paddock admin denied-owner list")]
    List,
    /// Lets a user have instances again
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock admin denied-owner remove eve"
    )]
    Remove {
        /// The user's name
        username: String,
    },
}

/// Carries out one of the commands.
pub(super) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Add { username, reason, yes } => add(api, printer, &username, reason, yes).await,
        Command::List => {
            let answer = api.send(&Call::get(&PATH)).await?;
            printer.answer(&answer, || Ok(table(&api.read::<DeniedOwners>(&answer)?.items)))
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
    prompt::confirm(&format!("Deny {username} instances, and delete all that there are?"), yes)?;
    let new = NewDeniedOwner { owner: username.into(), reason: reason.unwrap_or_default() };
    let answer = api.send(&Call::create(&PATH, json!(new))).await?;
    printer.answer(&answer, || Ok(table(&[api.read(&answer)?])))
}

async fn remove(api: &Api, printer: &mut Printer, username: &str) -> Result<(), Error> {
    let [admin, denied] = PATH;
    let answer = api.send(&Call::delete(&[admin, denied, username])).await.map_err(|error| {
        match error.status() {
            Some(404) => error.or_next(r#""paddock admin denied-owner list" shows who is denied"#),
            _ => error,
        }
    })?;
    printer.answer_or_note(&answer, &format!("{username} may have instances again"))
}

fn table(denied: &[DeniedOwner]) -> String {
    let row = |table: Table, one: &DeniedOwner| {
        let created = format::timestamp(one.created_at);
        table.row([one.owner.clone(), created, one.reason.clone()])
    };
    denied.iter().fold(Table::new(&["OWNER", "CREATED", "REASON"]), row).render()
}
