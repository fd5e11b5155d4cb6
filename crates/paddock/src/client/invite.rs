//! Invites: codes with which others join an organization.

use serde::Deserialize;
use serde_json::{Value, json};

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::{Answer, Api};
use super::page;
use super::parse;
use super::print::Printer;
use super::prompt;
use super::table::{self, Table};

const HELP: &str = "\
Without a flag a new invite is made. Its code is shown only then.

Example:
  paddock org invite --expires-in 7d
  paddock org invite --list
  paddock org invite --reopen ID --expires-in 1d";

/// `paddock org invite`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// How long the code works, such as 12h or 7d
    #[arg(long, value_name = "SPAN", value_parser = parse::seconds, conflicts_with_all = ["list", "revoke", "check"])]
    expires_in: Option<u64>,
    #[command(flatten)]
    verb: Verb,
    /// Revokes without asking
    #[arg(long, short)]
    yes: bool,
}

/// At most one of these.
#[derive(clap::Args)]
#[group(multiple = false)]
struct Verb {
    /// Lists the invites of the organization
    #[arg(long)]
    list: bool,
    /// Lets a code work again
    #[arg(long, value_name = "ID")]
    reopen: Option<String>,
    /// Stops a code from working
    #[arg(long, value_name = "ID")]
    revoke: Option<String>,
    /// Says what a code is good for; needs no login
    #[arg(long, value_name = "CODE")]
    check: Option<String>,
}

/// The most invites that are listed.
const MAX_INVITES: usize = 10_000;

#[derive(Deserialize)]
struct Invite {
    id: String,
    active: bool,
    expired: bool,
    #[serde(default)]
    used_by: Option<String>,
    #[serde(default)]
    times_used: Option<u64>,
    #[serde(default)]
    expires_at: Option<String>,
    #[serde(default)]
    code: Option<String>,
}

/// Carries out what the flags say.
pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match args.verb {
        Verb { list: true, .. } => list(api, printer).await,
        Verb { reopen: Some(id), .. } => reopen(api, printer, &id, args.expires_in).await,
        Verb { revoke: Some(id), .. } => revoke(api, printer, &id, args.yes).await,
        Verb { check: Some(code), .. } => check(api, printer, &code).await,
        _ => create(api, printer, args.expires_in).await,
    }
}

async fn create(api: &Api, printer: &mut Printer, expires_in: Option<u64>) -> Result<(), Error> {
    let answer = api.send(&Call::post(&["invites"], Some(expiry(expires_in)))).await?;
    printer.answer(&answer, || created(api, &answer))
}

async fn list(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    page::list(api, Call::get(&["invites"]), MAX_INVITES).await?.print(api, printer, invite_table)
}

async fn reopen(
    api: &Api,
    printer: &mut Printer,
    id: &str,
    expires_in: Option<u64>,
) -> Result<(), Error> {
    let call = Call::post(&["invites", id, "reopen"], Some(expiry(expires_in)));
    let answer = api.send(&call).await?;
    printer.answer(&answer, || Ok(invite_table(&[api.read(&answer)?])))
}

async fn revoke(api: &Api, printer: &mut Printer, id: &str, yes: bool) -> Result<(), Error> {
    prompt::confirm(&format!("Revoke invite {id}?"), yes)?;
    let answer = api.send(&Call::delete(&["invites", id])).await?;
    printer.answer_or_note(&answer, &format!("invite {id} is revoked"))
}

async fn check(api: &Api, printer: &mut Printer, code: &str) -> Result<(), Error> {
    let call = Call::post(&["invites", "check"], Some(json!({ "code": code }))).open();
    let answer = api.send(&call).await?;
    printer.answer(&answer, || checked(api, &answer))
}

fn expiry(expires_in: Option<u64>) -> Value {
    expires_in.map_or_else(|| json!({}), |seconds| json!({ "expires_in": seconds }))
}

fn created(api: &Api, answer: &Answer) -> Result<String, Error> {
    let invite: Invite = api.read(answer)?;
    Ok(table::fields(&[
        ("CODE", format::optional(invite.code.as_ref())),
        ("ID", invite.id),
        ("EXPIRES", format::time(invite.expires_at.as_deref())),
    ]))
}

fn checked(api: &Api, answer: &Answer) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct Checked {
        active: bool,
        expired: bool,
        #[serde(default)]
        used_by: Option<String>,
        #[serde(default)]
        organization: Value,
        #[serde(default)]
        expires_at: Option<String>,
    }
    let checked: Checked = api.read(answer)?;
    Ok(table::fields(&[
        ("ORGANIZATION", name(&checked.organization)),
        ("STATE", state(checked.active, checked.expired, checked.used_by.as_ref()).into()),
        ("EXPIRES", format::time(checked.expires_at.as_deref())),
    ]))
}

/// The organization of a code: its name, or an object that has one.
fn name(organization: &Value) -> String {
    let name = organization.get("name").unwrap_or(organization);
    name.as_str().unwrap_or_default().into()
}

fn invite_table(invites: &[Invite]) -> String {
    let table = Table::new(&["ID", "STATE", "USED", "USED BY", "EXPIRES"]);
    let row = |table: Table, invite: &Invite| {
        table.row([
            invite.id.clone(),
            state(invite.active, invite.expired, invite.used_by.as_ref()).into(),
            invite.times_used.map(|times| times.to_string()).unwrap_or_default(),
            format::optional(invite.used_by.as_ref()),
            format::time(invite.expires_at.as_deref()),
        ])
    };
    invites.iter().fold(table, row).render()
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
    use super::*;

    #[test]
    fn a_list_says_how_each_invite_is_doing() {
        let invites = r#"[
            {"id":"1","active":true,"expired":false,"used_by":null,"times_used":0,"expires_at":"x"},
            {"id":"2","active":false,"expired":true,"used_by":"bob","times_used":2},
            {"id":"3","active":false,"expired":true,"used_by":null},
            {"id":"4","active":false,"expired":false}]"#;
        let invites: Vec<Invite> = serde_json::from_str(invites).unwrap();
        let want = "\
ID  STATE    USED  USED BY  EXPIRES
1   active   0     -        x
2   used     2     bob      -
3   expired  -     -        -
4   revoked  -     -        -
";
        assert_eq!(invite_table(&invites), want);
    }

    #[test]
    fn an_organization_is_named_in_either_form() {
        for (value, want) in
            [(json!("acme"), "acme"), (json!({"name": "acme"}), "acme"), (Value::Null, "")]
        {
            assert_eq!(name(&value), want);
        }
    }
}
