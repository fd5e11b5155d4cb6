//! `paddock template`: publishing templates, looking at them, comparing versions, and their end.

mod commit;
mod pack;
mod publish;
mod versions;
mod view;

use serde_json::json;

use super::call::Call;
use super::error::Error;
use super::http::Api;
use super::page::{self, Limit};
use super::print::Printer;
use super::prompt;
use versions::Versions;

/// `paddock template …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Publishes a version of a template, for good
    Publish(publish::Args),
    /// Lists templates: one's own, and those that all share
    #[command(
        visible_alias = "ls",
        after_help = "Example:\n  paddock template list --name web-shop"
    )]
    List {
        /// Only versions of the one of this name
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        limit: Limit,
    },
    /// Shows all of one version of a template
    #[command(
        visible_alias = "get",
        after_help = "\
Without a version, the newest one that is not deprecated is meant.

Example:
  paddock template show web-shop
  paddock template show web-shop@1.4.0 --source"
    )]
    Show {
        /// Which one
        #[arg(value_name = "NAME[@VERSION]")]
        reference: String,
        /// Shows the text as it was published
        #[arg(long)]
        source: bool,
    },
    /// Shows what is different between two versions
    #[command(after_help = "\
Example:
  paddock template diff web-shop 1.4.0 1.5.0
  paddock template diff web-shop@1.4.0 web-shop@1.5.0")]
    Diff(Versions),
    /// Shows what would be done to each environment if it moved from one version to another
    #[command(after_help = "\
Nothing is changed. \"paddock env plan\" shows the whole plan of one environment.

Example:
  paddock template impact web-shop 1.4.0 1.5.0")]
    Impact(Versions),
    /// Lists who can carry out resources on this server, and what the others need
    #[command(after_help = "Example:\n  paddock template executors")]
    Executors,
    /// Has nothing new be made from a version; what is made from it stays
    #[command(after_help = "\
Example:
  paddock template deprecate web-shop@1.4.0 --why \"1.5.0 has the new broker\"
  paddock template deprecate web-shop@1.4.0 --undo")]
    Deprecate {
        /// Which one
        #[arg(value_name = "NAME@VERSION")]
        reference: String,
        /// Why, for those who want to use it
        #[arg(long, value_name = "TEXT", required_unless_present = "undo")]
        why: Option<String>,
        /// Takes it back
        #[arg(long, conflicts_with = "why")]
        undo: bool,
    },
    /// Deletes a version that no environment is made from
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock template delete web-shop@1.4.0 --yes"
    )]
    Delete {
        /// Which one
        #[arg(value_name = "NAME@VERSION")]
        reference: String,
        /// Deletes without asking
        #[arg(long, short)]
        yes: bool,
    },
}

/// Carries out one of the commands.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Publish(args) => publish::run(args, api, printer).await,
        Command::List { name, limit } => {
            let call = Call::get(&["templates"]).query("name", name);
            page::list(api, call, limit.limit).await?.print(api, printer, view::table)
        }
        Command::Show { reference, source } => show(api, printer, &reference, source).await,
        Command::Diff(versions) => versions::diff(&versions, api, printer).await,
        Command::Impact(versions) => versions::impact(&versions, api, printer).await,
        Command::Executors => executors(api, printer).await,
        Command::Deprecate { reference, why, undo } => {
            deprecate(api, printer, &reference, why, undo).await
        }
        Command::Delete { reference, yes } => delete(api, printer, &reference, yes).await,
    }
}

/// Where to look for what is there, for who has named what is not.
fn unknown(error: Error) -> Error {
    if error.status() == Some(404) {
        return error.or_next(r#""paddock template list" shows them all"#);
    }
    error
}

async fn show(
    api: &Api,
    printer: &mut Printer,
    reference: &str,
    source: bool,
) -> Result<(), Error> {
    if source {
        let answer = api.send(&Call::get(&["templates", reference, "source"])).await;
        return printer.bytes(answer.map_err(unknown)?.body.as_bytes());
    }
    let answer = api.send(&Call::get(&["templates", reference])).await.map_err(unknown)?;
    printer.answer(&answer, || Ok(view::details(&api.read(&answer)?)))
}

async fn executors(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let answer = api.send(&Call::get(&["executors"])).await?;
    printer.answer(&answer, || Ok(view::executors(&api.read(&answer)?)))
}

async fn deprecate(
    api: &Api,
    printer: &mut Printer,
    reference: &str,
    why: Option<String>,
    undo: bool,
) -> Result<(), Error> {
    let path = ["templates", reference, "deprecate"];
    let (call, note) = if undo {
        (Call::delete(&path), "may be used again")
    } else {
        (Call::post(&path, Some(json!({ "why": why }))), "is deprecated")
    };
    let answer = api.send(&call).await.map_err(unknown)?;
    printer.answer_or_note(&answer, &format!("{reference} {note}"))
}

async fn delete(api: &Api, printer: &mut Printer, reference: &str, yes: bool) -> Result<(), Error> {
    prompt::confirm(&format!("Delete the template {reference}?"), yes)?;
    let answer = api.send(&Call::delete(&["templates", reference])).await;
    let answer = answer.map_err(|error| match error.status() {
        Some(409) => error.or_next(r#""paddock env list" shows what is made from it"#),
        _ => unknown(error),
    })?;
    printer.answer_or_note(&answer, &format!("{reference} is gone"))
}
