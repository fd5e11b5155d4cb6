//! `paddock admin organization`: sets what an organization is allowed.

use wire::organization::{Organization, OrganizationChange};

use super::quota::organization;
use crate::client::call::{Call, request};
use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::table;

/// `paddock admin organization …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Set the priority ceiling and the weight of an organization
    #[command(after_help = "\
Deployments that exceed a lowered ceiling keep running. The weight counts in fair shares: on shared
clusters, an organization within its fair share is not preempted by other organizations.

Example:
  paddock admin organization set acme --max-priority 500
  paddock admin organization set acme --max-priority default --weight 2")]
    Set(SetArgs),
}

/// `paddock admin organization set`.
#[derive(clap::Args)]
pub(crate) struct SetArgs {
    /// Name or id of the organization
    #[arg(value_name = "NAME-OR-ID")]
    organization: String,
    /// Highest priority of its deployments; `default` for the server's
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = ceiling)]
    max_priority: Option<Ceiling>,
    /// Weight in fair shares, from 1 to 1000
    #[arg(long, value_name = "N", required_unless_present = "max_priority")]
    weight: Option<i64>,
}

/// A priority ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ceiling {
    /// The server's.
    Default,
    Max(i64),
}

fn ceiling(text: &str) -> Result<Ceiling, String> {
    match text {
        "default" => Ok(Ceiling::Default),
        _ => {
            text.parse().map(Ceiling::Max).map_err(|_| "must be a whole number or `default`".into())
        }
    }
}

/// Runs a command.
pub(super) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let Command::Set(args) = command;
    let id = organization(api, &args.organization).await?;
    let max_priority = args.max_priority.map(|ceiling| match ceiling {
        Ceiling::Default => None,
        Ceiling::Max(max) => Some(max),
    });
    let change = OrganizationChange { max_priority, weight: args.weight, name: None };
    let response = api.send(&Call::patch(&["organizations", &id], request(&change))).await?;
    printer.response(&response, || {
        let changed: Organization = api.read(&response)?;
        let max = changed.max_priority.map_or("default".into(), |max| max.to_string());
        Ok(table::fields(&[
            ("ID", changed.id.to_string()),
            ("NAME", changed.name),
            ("MAX PRIORITY", max),
            ("WEIGHT", changed.weight.to_string()),
        ]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceiling_is_a_number_or_the_default() {
        assert_eq!(ceiling("default"), Ok(Ceiling::Default));
        assert_eq!(ceiling("-5"), Ok(Ceiling::Max(-5)));
        assert!(ceiling("high").is_err());
    }
}
