//! `paddock admin`: commands of the platform administrator.

mod auditor;
mod denied_owner;
mod instance;
mod organization;
mod quota;
mod rekey;
mod scaling;
mod user;

use super::error::Error;
use super::http::Api;
use super::print::Printer;

/// `paddock admin …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Manage quotas of organizations, and quota grants of service kinds
    #[command(subcommand, after_help = "Example:\n  paddock admin quota show acme")]
    Quota(quota::Command),
    /// Manage instances of all organizations
    #[command(subcommand, after_help = "Example:\n  paddock admin instance list")]
    Instance(instance::Command),
    /// Set what organizations are allowed
    #[command(
        subcommand,
        after_help = "Example:\n  paddock admin organization set acme --max-priority 500"
    )]
    Organization(organization::Command),
    /// Manage users who may not own instances
    #[command(subcommand, after_help = "Example:\n  paddock admin denied-owner list")]
    DeniedOwner(denied_owner::Command),
    /// Let a user read everything of all organizations, and change nothing
    #[command(after_help = "\
Example:
  paddock admin auditor eve
  paddock admin auditor eve --remove")]
    Auditor(auditor::Args),
    /// Manage users of all organizations
    #[command(subcommand, after_help = "Example:\n  paddock admin user reset-password ann")]
    User(user::Command),
    /// Show autoscaled cluster pools and their last decision
    #[command(
        after_help = "Example:\n  paddock admin scaling\n  paddock admin scaling --output json"
    )]
    Scaling,
    /// Rotate the key that encrypts stored secrets, and encrypt them again
    #[command(after_help = "\
Example:
  paddock admin rekey --wait
  paddock admin rekey --prepare")]
    Rekey(rekey::Args),
}

/// Runs a command.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let outcome = match command {
        Command::Quota(command) => quota::run(command, api, printer).await,
        Command::Instance(command) => instance::run(command, api, printer).await,
        Command::Organization(command) => organization::run(command, api, printer).await,
        Command::DeniedOwner(command) => denied_owner::run(command, api, printer).await,
        Command::Auditor(args) => auditor::run(args, api, printer).await,
        Command::User(command) => user::run(command, api, printer).await,
        Command::Scaling => scaling::run(api, printer).await,
        Command::Rekey(args) => rekey::run(args, api, printer).await,
    };
    outcome.map_err(|error| match error.status() {
        Some(403) => error.or_hint(LOGIN_HINT),
        _ => error,
    })
}

/// Hint for users who are not administrators.
const LOGIN_HINT: &str =
    r#"log in as the platform administrator: run "paddock login --username admin""#;
