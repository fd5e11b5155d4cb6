//! `paddock template`: manages templates and their versions.

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
    /// Publish an immutable version of a template
    Publish(publish::Args),
    /// List your templates and shared templates
    #[command(
        visible_alias = "ls",
        after_help = "Example:\n  paddock template list --name web-shop"
    )]
    List {
        /// Filter by template name
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        limit: Limit,
    },
    /// Show a version of a template
    #[command(
        visible_alias = "get",
        after_help = "\
Without a version, shows the newest one that is not deprecated.

Example:
  paddock template show web-shop
  paddock template show web-shop@1.4.0 --source"
    )]
    Show {
        /// Template, optionally with version
        #[arg(value_name = "NAME[@VERSION]")]
        reference: String,
        /// Print the published source
        #[arg(long)]
        source: bool,
    },
    /// Compare two versions
    #[command(after_help = "\
Example:
  paddock template diff web-shop 1.4.0 1.5.0
  paddock template diff web-shop@1.4.0 web-shop@1.5.0")]
    Diff(Versions),
    /// Show the changes to each environment if it moved from one version to another
    #[command(after_help = "\
No changes are made. \"paddock env plan\" shows the full plan of one environment.

Example:
  paddock template impact web-shop 1.4.0 1.5.0")]
    Impact(Versions),
    /// List the executors that create resources, and the settings that unavailable ones need
    #[command(after_help = "Example:\n  paddock template executors")]
    Executors,
    /// Deprecate a version: existing environments keep it, new ones cannot use it
    #[command(after_help = "\
Example:
  paddock template deprecate web-shop@1.4.0 --why \"1.5.0 has the new broker\"
  paddock template deprecate web-shop@1.4.0 --undo")]
    Deprecate {
        /// Template and version
        #[arg(value_name = "NAME@VERSION")]
        reference: String,
        /// Reason, shown to users of the template
        #[arg(long, value_name = "TEXT", required_unless_present = "undo")]
        why: Option<String>,
        /// Undo the deprecation
        #[arg(long, conflicts_with = "why")]
        undo: bool,
    },
    /// Delete a version that no environment uses
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock template delete web-shop@1.4.0 --yes"
    )]
    Delete {
        /// Template and version
        #[arg(value_name = "NAME@VERSION")]
        reference: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
}

/// Runs a command.
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

/// Adds a hint to a 404.
fn unknown(error: Error) -> Error {
    if error.status() == Some(404) {
        return error.or_hint(r#"run "paddock template list" to see all templates"#);
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
        let response = api.send(&Call::get(&["templates", reference, "source"])).await;
        return printer.bytes(response.map_err(unknown)?.body.as_bytes());
    }
    let response = api.send(&Call::get(&["templates", reference])).await.map_err(unknown)?;
    printer.response(&response, || Ok(view::details(&api.read(&response)?)))
}

async fn executors(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let response = api.send(&Call::get(&["executors"])).await?;
    printer.response(&response, || Ok(view::executors(&api.read(&response)?)))
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
        (Call::delete(&path), "is no longer deprecated")
    } else {
        (Call::post(&path, Some(json!({ "why": why }))), "deprecated")
    };
    let response = api.send(&call).await.map_err(unknown)?;
    printer.response_or_note(&response, &format!("{reference} {note}"))
}

async fn delete(api: &Api, printer: &mut Printer, reference: &str, yes: bool) -> Result<(), Error> {
    prompt::confirm(&format!("Delete template {reference}?"), yes)?;
    let response = api.send(&Call::delete(&["templates", reference])).await;
    let response = response.map_err(|error| match error.status() {
        Some(409) => error.or_hint(r#"run "paddock env list" to see the environments that use it"#),
        _ => unknown(error),
    })?;
    printer.response_or_note(&response, &format!("template {reference} deleted"))
}
