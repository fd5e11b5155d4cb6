//! `paddock org invite`: manages invite codes of the organization.

use serde_json::{Value, json};
use wire::invite::{Invite, InviteCode, InviteStatus, NewInvite};

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::{Api, ApiResponse};
use super::page;
use super::parse;
use super::print::Printer;
use super::prompt;
use super::table;

const HELP: &str = "\
Without --list, --reopen, --revoke or --check, creates an invite. Its code is shown only once.

Example:
  paddock org invite --expires-in 7d --role viewer
  paddock org invite --list
  paddock org invite --reopen ID --expires-in 1d";

/// `paddock org invite`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Lifetime of the invite, such as 12h or 7d [default: 7d]
    #[arg(long, value_name = "DURATION", value_parser = parse::seconds, conflicts_with_all = ["list", "revoke", "check"])]
    expires_in: Option<u64>,
    /// Role of users who join with the invite: viewer, member or owner [default: member]
    #[arg(long, value_name = "ROLE", conflicts_with_all = ["list", "reopen", "revoke", "check"])]
    role: Option<String>,
    #[command(flatten)]
    verb: Verb,
    /// Skip the confirmation prompt
    #[arg(long, short)]
    yes: bool,
}

/// Action; at most one.
#[derive(clap::Args)]
#[group(multiple = false)]
struct Verb {
    /// List the invites of the organization
    #[arg(long)]
    list: bool,
    /// Reopen an invite, so that its code can be used again
    #[arg(long, value_name = "ID")]
    reopen: Option<String>,
    /// Revoke an invite
    #[arg(long, value_name = "ID")]
    revoke: Option<String>,
    /// Show the organization and state of an invite; needs no login
    #[arg(long, value_name = "CODE")]
    check: Option<String>,
}

/// Maximum number of listed invites.
const MAX_INVITES: usize = 10_000;

/// Runs the selected action.
pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let expires_in = args.expires_in.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX));
    match args.verb {
        Verb { list: true, .. } => list(api, printer).await,
        Verb { reopen: Some(id), .. } => reopen(api, printer, &id, expires_in).await,
        Verb { revoke: Some(id), .. } => revoke(api, printer, &id, args.yes).await,
        Verb { check: Some(code), .. } => check(api, printer, &code).await,
        _ => create(api, printer, expires_in, args.role).await,
    }
}

async fn create(
    api: &Api,
    printer: &mut Printer,
    expires_in: Option<i64>,
    role: Option<String>,
) -> Result<(), Error> {
    let body = json!(NewInvite { expires_in, role });
    let response = api.send(&Call::post(&["invites"], Some(body))).await?;
    printer.response(&response, || created(api, &response))
}

async fn list(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    page::list(api, Call::get(&["invites"]), MAX_INVITES).await?.print(api, printer, invite_table)
}

async fn reopen(
    api: &Api,
    printer: &mut Printer,
    id: &str,
    expires_in: Option<i64>,
) -> Result<(), Error> {
    let call = Call::post(&["invites", id, "reopen"], Some(expiry(expires_in)));
    let response = api.send(&call).await?;
    printer.response(&response, || Ok(invite_table(&[api.read(&response)?])))
}

async fn revoke(api: &Api, printer: &mut Printer, id: &str, yes: bool) -> Result<(), Error> {
    prompt::confirm(&format!("Revoke invite {id}?"), yes)?;
    let response = api.send(&Call::delete(&["invites", id])).await?;
    printer.response_or_note(&response, &format!("invite {id} revoked"))
}

async fn check(api: &Api, printer: &mut Printer, code: &str) -> Result<(), Error> {
    let call = Call::post(&["invites", "check"], Some(json!(InviteCode { code: code.into() })))
        .without_token();
    let response = api.send(&call).await?;
    printer.response(&response, || checked(api, &response))
}

fn expiry(expires_in: Option<i64>) -> Value {
    json!(NewInvite { expires_in, role: None })
}

fn created(api: &Api, response: &ApiResponse) -> Result<String, Error> {
    let invite: Invite = api.read(response)?;
    Ok(table::fields(&[
        ("CODE", format::optional(invite.code.as_ref())),
        ("ID", invite.id.to_string()),
        ("ROLE", invite.role),
        ("EXPIRES", format::timestamp(invite.expires_at)),
    ]))
}

fn checked(api: &Api, response: &ApiResponse) -> Result<String, Error> {
    let checked: InviteStatus = api.read(response)?;
    Ok(table::fields(&[
        ("ORGANIZATION", checked.organization),
        ("STATE", state(checked.active, checked.expired, checked.used_by.as_ref()).into()),
        ("EXPIRES", format::timestamp(checked.expires_at)),
    ]))
}

fn invite_table(invites: &[Invite]) -> String {
    table::render(
        invites,
        &[
            ("ID", |invite| invite.id.to_string()),
            ("STATE", |invite| {
                state(invite.active, invite.expired, invite.used_by.as_ref()).into()
            }),
            ("ROLE", |invite| invite.role.clone()),
            ("USED", |invite| invite.times_used.to_string()),
            ("USED BY", |invite| format::optional(invite.used_by.as_ref())),
            ("EXPIRES", |invite| format::timestamp(invite.expires_at)),
        ],
    )
}

fn state(active: bool, expired: bool, used_by: Option<&String>) -> &'static str {
    match (active, used_by, expired) {
        (true, _, _) => "active",
        (false, Some(_), _) => "used",
        (false, None, true) => "expired",
        (false, None, false) => "revoked",
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn table_shows_state_of_each_invite() {
        let invites = [
            json!({"id": sample::id("1"), "active": true}),
            json!({"id": sample::id("2"), "expired": true, "used_by": "bob", "times_used": 2}),
            json!({"id": sample::id("3"), "expired": true}),
            json!({"id": sample::id("4"), "role": "viewer"}),
        ];
        let want = "\
ID                    STATE    ROLE    USED  USED BY  EXPIRES
10000000000000000000  active   member  0     -        2026-01-09T03:04:05Z
20000000000000000000  used     member  2     bob      2026-01-09T03:04:05Z
30000000000000000000  expired  member  0     -        2026-01-09T03:04:05Z
40000000000000000000  revoked  viewer  0     -        2026-01-09T03:04:05Z
";
        assert_eq!(invite_table(&invites.map(sample::invite)), want);
    }
}
