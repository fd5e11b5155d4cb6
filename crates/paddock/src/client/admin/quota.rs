//! `paddock admin quota`: granting and taking back.

use serde::Deserialize;
use wire::quota::{Grant, Grants, NewGrant};

use crate::client::call::{Call, request};
use crate::client::error::Error;
use crate::client::format;
use crate::client::http::Api;
use crate::client::page;
use crate::client::parse;
use crate::client::print::Printer;
use crate::client::prompt;
use crate::client::quota::limit;
use crate::client::subject;
use crate::client::table::Table;

/// `paddock admin quota …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Grants quota; the same to the same holder replaces what was granted before
    #[command(after_help = "\
Once anything is granted, everybody else may have only what they were granted, and trials.

Example:
  paddock admin quota grant --org acme --type standard --limit 3
  paddock admin quota grant --user ann --kind kafka --type standard --limit 1 --expires-at 30d")]
    Grant(GrantArgs),
    /// Lists what was granted to whom
    #[command(visible_alias = "ls", after_help = "Example:\n  paddock admin quota list --org acme")]
    List {
        #[command(flatten)]
        holder: MaybeHolder,
    },
    /// Takes a grant back; what it was for is suspended for its grace, and then deleted
    #[command(after_help = "Example:\n  paddock admin quota revoke ID --yes")]
    Revoke {
        /// The grant's id
        id: String,
        /// Takes it back without asking
        #[arg(long, short)]
        yes: bool,
    },
}

/// What is granted.
#[derive(clap::Args)]
pub(crate) struct GrantArgs {
    #[command(flatten)]
    holder: Holder,
    /// Of which kind of service [default: of every kind that has the type]
    #[arg(long)]
    kind: Option<String>,
    /// Of which instance type
    #[arg(long = "type", value_name = "TYPE")]
    instance_type: String,
    /// Paid how [default: standard]
    #[arg(long, value_name = "NAME")]
    billing_model: Option<String>,
    /// How many units at most [default: as many as they like]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Until when: a time, or how long from now, such as 30d
    #[arg(long, value_name = "TIME", value_parser = parse::until)]
    expires_at: Option<String>,
}

/// To whom.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Holder {
    /// An organization, by name or id
    #[arg(long, value_name = "NAME-OR-ID")]
    org: Option<String>,
    /// A user, by name
    #[arg(long, value_name = "USERNAME")]
    user: Option<String>,
}

/// To whom, if that matters.
#[derive(clap::Args)]
#[group(multiple = false)]
pub(crate) struct MaybeHolder {
    /// Only what was granted to this organization, by name or id
    #[arg(long, value_name = "NAME-OR-ID")]
    org: Option<String>,
    /// Only what was granted to this user, by name
    #[arg(long, value_name = "USERNAME")]
    user: Option<String>,
}

/// Carries out one of the commands.
pub(super) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Grant(args) => grant(api, printer, args).await,
        Command::List { holder } => list(api, printer, holder).await,
        Command::Revoke { id, yes } => revoke(api, printer, &id, yes).await,
    }
}

async fn grant(api: &Api, printer: &mut Printer, args: GrantArgs) -> Result<(), Error> {
    let body = request(&args.request(api).await?);
    let answer = api.send(&Call::create(&["admin", "quota"], body)).await?;
    printer.answer(&answer, || Ok(table(&[api.read(&answer)?])))
}

async fn list(api: &Api, printer: &mut Printer, holder: MaybeHolder) -> Result<(), Error> {
    let org = match holder.org {
        Some(which) => Some(format!("organization/{}", organization(api, &which).await?)),
        None => None,
    };
    let user = holder.user.map(|name| format!("user/{name}"));
    let answer = api.send(&Call::get(&["admin", "quota"]).query("holder", org.or(user))).await?;
    printer.answer(&answer, || Ok(table(&api.read::<Grants>(&answer)?.items)))
}

async fn revoke(api: &Api, printer: &mut Printer, id: &str, yes: bool) -> Result<(), Error> {
    prompt::confirm(&format!("Take grant {id} back?"), yes)?;
    let answer =
        api.send(&Call::delete(&["admin", "quota", id])).await.map_err(|error| {
            match error.status() {
                Some(404) => error.or_next(r#""paddock admin quota list" shows what was granted"#),
                _ => error,
            }
        })?;
    printer.answer_or_note(&answer, &format!("grant {id} is taken back"))
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

/// The id of an organization. What has the form of an id is taken for one, unless it is a name.
async fn organization(api: &Api, which: &str) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct Organization {
        id: String,
        name: String,
    }
    let all = page::list(api, Call::get(&["organizations"]), usize::MAX).await?;
    let all: Vec<Organization> = all.read(api)?;
    let named: Vec<&Organization> = all.iter().filter(|one| one.name == which).collect();
    match named.as_slice() {
        [one] => Ok(one.id.clone()),
        [] if subject::is_id(which) => Ok(which.into()),
        [] => Err(Error::failed_but(
            format!("there is no organization {which:?} that you see"),
            "the platform administrator sees all of them",
        )),
        several => {
            let ids: Vec<String> = several.iter().map(|one| one.id.clone()).collect();
            Err(subject::ambiguous("organizations", which, &ids))
        }
    }
}

fn table(grants: &[Grant]) -> String {
    let header = ["ID", "HOLDER", "KIND", "TYPE", "BILLING MODEL", "LIMIT", "EXPIRES", "CREATED"];
    let row = |table: Table, one: &Grant| {
        table.row([
            one.id.clone(),
            one.holder.clone(),
            one.kind.clone().unwrap_or_else(|| "all".into()),
            one.instance_type.clone(),
            one.billing_model.clone(),
            limit(one.limit),
            format::timestamp(one.expires_at),
            format::timestamp(one.created_at),
        ])
    };
    grants.iter().fold(Table::new(&header), row).render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_without_a_kind_is_for_all() {
        let grants: Vec<Grant> = serde_json::from_str(
            r#"[{"id":"1","holder":"user/ann","kind":null,"instance_type":"grown",
                 "billing_model":"standard","limit":2,"expires_at":null,"created_by":"u",
                 "created_at":"2026-01-02T03:04:05.6Z"},
                {"id":"2","holder":"user/bob","kind":"rhino","instance_type":"grown",
                 "billing_model":"","created_by":"u","created_at":"2026-01-02T03:04:05Z"}]"#,
        )
        .unwrap();
        let want = "\
ID  HOLDER    KIND   TYPE   BILLING MODEL  LIMIT  EXPIRES  CREATED
1   user/ann  all    grown  standard       2      -        2026-01-02T03:04:05Z
2   user/bob  rhino  grown  -              none   -        2026-01-02T03:04:05Z
";
        assert_eq!(table(&grants), want);
    }
}
