//! `paddock admin quota`: manages quotas of organizations, and quota grants of service kinds.

use serde::Deserialize;
use wire::quota::{Grant, Grants, NewGrant, OrganizationQuotas, QuotaChange, QuotaLimit};

use crate::client::call::{Call, request};
use crate::client::error::Error;
use crate::client::format;
use crate::client::http::{Api, ApiResponse};
use crate::client::page;
use crate::client::parse;
use crate::client::print::Printer;
use crate::client::prompt;
use crate::client::quota::{self, limit};
use crate::client::subject;
use crate::client::table::Table;

/// `paddock admin quota …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Set quotas of an organization
    #[command(after_help = "\
KIND is deployments, clusters, instances, environments, templates, members, invites, tokens,
service_accounts, streams, storage, or a resource type such as cpu, ram, gpu or disk. A quota below
the usage stops nothing: requests that add to the usage are refused.

Example:
  paddock admin quota set acme cpu=8 ram=16Gi deployments=100
  paddock admin quota set acme cpu=none clusters=unlimited")]
    Set {
        /// Name or id of the organization
        #[arg(value_name = "ORG")]
        org: String,
        /// Limits; `none` restores the default of the platform
        #[arg(value_name = "KIND=LIMIT", required = true, value_parser = parse::pair)]
        quotas: Vec<(String, String)>,
    },
    /// Show the quotas and usage of an organization
    #[command(after_help = "Example:\n  paddock admin quota show acme")]
    Show {
        /// Name or id of the organization
        #[arg(value_name = "ORG")]
        org: String,
    },
    /// Grant quota of a service kind; replaces an existing grant of the same type to the same holder
    #[command(after_help = "\
While no grant exists, usage is not limited. Once one exists, all users are limited to granted quota
and trials.

Example:
  paddock admin quota grant --org acme --type standard --limit 3
  paddock admin quota grant --user ann --kind kafka --type standard --limit 1 --expires-at 30d")]
    Grant(GrantArgs),
    /// List quota grants
    #[command(visible_alias = "ls", after_help = "Example:\n  paddock admin quota list --org acme")]
    List {
        #[command(flatten)]
        holder: HolderFilter,
    },
    /// Revoke a grant; its instances are suspended, and deleted after the grace period
    #[command(after_help = "Example:\n  paddock admin quota revoke ID --yes")]
    Revoke {
        /// Id of the grant
        id: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
}

/// `paddock admin quota grant`.
#[derive(clap::Args)]
pub(crate) struct GrantArgs {
    #[command(flatten)]
    holder: Holder,
    /// Service kind [default: all kinds with this type]
    #[arg(long)]
    kind: Option<String>,
    /// Instance type
    #[arg(long = "type", value_name = "TYPE")]
    instance_type: String,
    /// Billing model [default: standard]
    #[arg(long, value_name = "NAME")]
    billing_model: Option<String>,
    /// Maximum number of units (see "paddock service kinds") [default: unlimited]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Expiry: a time, or a duration from now, such as 30d
    #[arg(long, value_name = "TIME", value_parser = parse::until)]
    expires_at: Option<String>,
}

/// Holder of a grant.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Holder {
    /// Name or id of an organization
    #[arg(long, value_name = "NAME-OR-ID")]
    org: Option<String>,
    /// Name of a user
    #[arg(long, value_name = "USERNAME")]
    user: Option<String>,
}

/// Filter by holder.
#[derive(clap::Args)]
#[group(multiple = false)]
pub(crate) struct HolderFilter {
    /// Filter by organization, by name or id
    #[arg(long, value_name = "NAME-OR-ID")]
    org: Option<String>,
    /// Filter by user name
    #[arg(long, value_name = "USERNAME")]
    user: Option<String>,
}

/// Runs a command.
pub(super) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Set { org, quotas } => set(api, printer, &org, quotas).await,
        Command::Show { org } => show(api, printer, &org).await,
        Command::Grant(args) => grant(api, printer, args).await,
        Command::List { holder } => list(api, printer, holder).await,
        Command::Revoke { id, yes } => revoke(api, printer, &id, yes).await,
    }
}

async fn set(
    api: &Api,
    printer: &mut Printer,
    org: &str,
    quotas: Vec<(String, String)>,
) -> Result<(), Error> {
    let limit = |text: String| (text != "none").then_some(QuotaLimit(text));
    let quotas = quotas.into_iter().map(|(kind, text)| (kind, limit(text))).collect();
    let id = organization(api, org).await?;
    let body = request(&QuotaChange { quotas });
    let response = api.send(&Call::patch(&["admin", "organizations", &id, "quotas"], body)).await?;
    printer.response(&response, || quotas_of(api, &response))
}

async fn show(api: &Api, printer: &mut Printer, org: &str) -> Result<(), Error> {
    let id = organization(api, org).await?;
    let response = api.send(&Call::get(&["organizations", &id, "quotas"])).await?;
    printer.response(&response, || quotas_of(api, &response))
}

fn quotas_of(api: &Api, response: &ApiResponse) -> Result<String, Error> {
    let quotas: OrganizationQuotas = api.read(response)?;
    Ok(quota::organization(&quotas.items))
}

async fn grant(api: &Api, printer: &mut Printer, args: GrantArgs) -> Result<(), Error> {
    let body = request(&args.request(api).await?);
    let response = api.send(&Call::create(&["admin", "quota"], body)).await?;
    printer.response(&response, || Ok(table(&[api.read(&response)?])))
}

async fn list(api: &Api, printer: &mut Printer, holder: HolderFilter) -> Result<(), Error> {
    let org = match holder.org {
        Some(which) => Some(format!("organization/{}", organization(api, &which).await?)),
        None => None,
    };
    let user = holder.user.map(|name| format!("user/{name}"));
    let response = api.send(&Call::get(&["admin", "quota"]).query("holder", org.or(user))).await?;
    printer.response(&response, || Ok(table(&api.read::<Grants>(&response)?.items)))
}

async fn revoke(api: &Api, printer: &mut Printer, id: &str, yes: bool) -> Result<(), Error> {
    prompt::confirm(&format!("Revoke grant {id}?"), yes)?;
    let response = api.send(&Call::delete(&["admin", "quota", id])).await.map_err(|error| {
        match error.status() {
            Some(404) => error.or_hint(r#"run "paddock admin quota list" to see all grants"#),
            _ => error,
        }
    })?;
    printer.response_or_note(&response, &format!("grant {id} revoked"))
}

impl GrantArgs {
    async fn request(self, api: &Api) -> Result<NewGrant, Error> {
        let organization_id = match self.holder.org {
            Some(which) => Some(organization(api, &which).await?),
            None => None,
        };
        Ok(NewGrant {
            organization_id,
            username: self.holder.user,
            kind: self.kind,
            instance_type: self.instance_type,
            billing_model: self.billing_model,
            limit: self.limit.map(Into::into),
            expires_at: self.expires_at,
        })
    }
}

/// Id of an organization. A text in the format of an id is one, unless it is a name.
pub(super) async fn organization(api: &Api, which: &str) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct Organization {
        id: String,
        name: String,
    }
    let all = page::list(api, Call::get(&["organizations"]), usize::MAX).await?;
    let all: Vec<Organization> = all.read(api)?;
    let named: Vec<&Organization> = all.iter().filter(|org| org.name == which).collect();
    match named.as_slice() {
        [one] => Ok(one.id.clone()),
        [] if subject::is_id(which) => Ok(which.into()),
        [] => Err(Error::failed_with_hint(
            format!("organization {which:?} not found"),
            "only the platform administrator sees all organizations",
        )),
        several => {
            let ids: Vec<String> = several.iter().map(|org| org.id.clone()).collect();
            Err(subject::ambiguous("organizations", which, &ids))
        }
    }
}

fn table(grants: &[Grant]) -> String {
    let header = ["ID", "HOLDER", "KIND", "TYPE", "BILLING MODEL", "LIMIT", "EXPIRES", "CREATED"];
    let row = |table: Table, grant: &Grant| {
        table.row([
            grant.id.clone(),
            grant.holder.clone(),
            grant.kind.clone().unwrap_or_else(|| "all".into()),
            grant.instance_type.clone(),
            grant.billing_model.clone(),
            limit(grant.limit),
            format::timestamp(grant.expires_at),
            format::timestamp(grant.created_at),
        ])
    };
    grants.iter().fold(Table::new(&header), row).render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grant_without_kind_applies_to_all_kinds() {
        let grants: Vec<Grant> = serde_json::from_str(
            r#"[{"id":"1","holder":"user/ann","kind":null,"instance_type":"grown",
                 "billing_model":"standard","limit":2,"expires_at":null,"created_by":"u",
                 "created_at":"2026-01-02T03:04:05.6Z"},
                {"id":"2","holder":"user/bob","kind":"rhino","instance_type":"grown",
                 "billing_model":"","created_by":"u","created_at":"2026-01-02T03:04:05Z"}]"#,
        )
        .unwrap();
        let want = "\
ID  HOLDER    KIND   TYPE   BILLING MODEL  LIMIT      EXPIRES  CREATED
1   user/ann  all    grown  standard       2          -        2026-01-02T03:04:05Z
2   user/bob  rhino  grown  -              unlimited  -        2026-01-02T03:04:05Z
";
        assert_eq!(table(&grants), want);
    }
}
