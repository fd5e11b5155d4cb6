//! `paddock admin`: what only the platform administrator does.

mod denied_owner;
mod instance;
mod quota;
mod scaling;

use super::error::Error;
use super::http::Api;
use super::print::Printer;

/// `paddock admin …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Who may have how much of which service
    #[command(subcommand, after_help = "Example:\n  paddock admin quota list")]
    Quota(quota::Command),
    /// Instances of all organizations
    #[command(subcommand, after_help = "Example:\n  paddock admin instance list")]
    Instance(instance::Command),
    /// Users who may not have instances
    #[command(subcommand, after_help = "Example:\n  paddock admin denied-owner list")]
    DeniedOwner(denied_owner::Command),
    /// What grows and shrinks by itself, and why it does or does not
    #[command(
        after_help = "Example:\n  paddock admin scaling\n  paddock admin scaling --output json"
    )]
    Scaling,
}

/// Carries out one of the commands.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let outcome = match command {
        Command::Quota(command) => quota::run(command, api, printer).await,
        Command::Instance(command) => instance::run(command, api, printer).await,
        Command::DeniedOwner(command) => denied_owner::run(command, api, printer).await,
        Command::Scaling => scaling::run(api, printer).await,
    };
    outcome.map_err(|error| match error.status() {
        Some(403) => error.or_next(NEXT),
        _ => error,
    })
}

/// What to do for who is not the administrator.
const NEXT: &str = r#"sign in as the platform administrator: run "paddock login --username admin""#;
