//! `paddock service-account`: manages credentials of programs. A secret is shown only once, by the
//! command that created it.

use serde::Deserialize;
use serde_json::json;
use wire::kind::Kind;

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::{Api, ApiResponse};
use super::print::Printer;
use super::prompt;
use super::service::catalog;
use super::subject;
use super::table::{self, Table};

/// Path in the API of a service kind.
const PATH: &str = "service_accounts";
/// Maximum number of listed accounts.
const MAX_ACCOUNTS: usize = 10_000;

/// `paddock service-account …`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  paddock service-account create importer
  paddock service-account list")]
pub(crate) struct Args {
    /// Service kind whose API to use [default: the first one with service accounts]
    #[arg(long, global = true, value_name = "KIND")]
    kind: Option<String>,
    #[command(subcommand)]
    verb: Verb,
}

/// Commands.
#[derive(clap::Subcommand)]
enum Verb {
    /// Create a service account; its secret is shown only once
    #[command(after_help = "\
Example:
  paddock service-account create importer --description \"Nightly import\"")]
    Create {
        /// Name of the service account
        name: String,
        /// Description
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// List the service accounts of your organization
    #[command(visible_alias = "ls", after_help = "Example:\n  paddock service-account list")]
    List,
    /// Show a service account, without its secret
    #[command(
        visible_alias = "get",
        after_help = "Example:\n  paddock service-account show importer"
    )]
    Show {
        /// Name, id or client id of the service account
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Reset the secret of a service account; the old one is revoked at once
    #[command(after_help = "Example:\n  paddock service-account reset importer --yes")]
    Reset {
        /// Name, id or client id of the service account
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
    /// Delete a service account and revoke its credentials
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock service-account delete importer --yes"
    )]
    Delete {
        /// Name, id or client id of the service account
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
}

/// The displayed fields of a service account.
#[derive(Deserialize)]
struct Account {
    id: String,
    name: String,
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    created_by: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
}

#[derive(Deserialize)]
struct Accounts {
    items: Vec<Account>,
}

/// Runs a command.
pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let service = find_kind(api, args.kind.as_deref()).await?;
    let family = service.api.as_str();
    match args.verb {
        Verb::Create { name, description } => {
            create(api, printer, family, &name, description).await
        }
        Verb::List => {
            let response = list(api, family).await?;
            printer
                .response(&response, || Ok(accounts_table(&api.read::<Accounts>(&response)?.items)))
        }
        Verb::Show { which } => show(api, printer, family, &which).await,
        Verb::Reset { which, yes } => reset(api, printer, family, &which, yes).await,
        Verb::Delete { which, yes } => delete(api, printer, family, &which, yes).await,
    }
}

/// The named service kind, or the first one with service accounts.
async fn find_kind(api: &Api, named: Option<&str>) -> Result<Kind, Error> {
    for service in catalog::find_or_all(api, named).await? {
        if catalog::has(api, &service, PATH).await? {
            return Ok(service);
        }
    }
    let message = named.map_or_else(
        || "no service kind on this server supports service accounts".to_owned(),
        |kind| format!("service kind {kind} does not support service accounts"),
    );
    Err(Error::failed_with_hint(message, "omit --kind to use a kind that supports them"))
}

async fn create(
    api: &Api,
    printer: &mut Printer,
    family: &str,
    name: &str,
    description: Option<String>,
) -> Result<(), Error> {
    let mut body = json!({ "name": name });
    if let Some(description) = description {
        body["description"] = description.into();
    }
    // No idempotency key: this API does not support it, so a retry could create a second account.
    let response = api.send(&Call::post(&[PATH], Some(body)).to(family)).await?;
    reveal(api, printer, family, &response).await
}

async fn reset(
    api: &Api,
    printer: &mut Printer,
    family: &str,
    which: &str,
    yes: bool,
) -> Result<(), Error> {
    let account = find(api, family, which).await?;
    prompt::confirm(&format!("Reset the secret of {} ({})?", account.name, account.id), yes)?;
    let call = Call::post(&[PATH, &account.id, "reset_credentials"], None).to(family);
    let response = api.send(&call).await?;
    reveal(api, printer, family, &response).await
}

async fn show(api: &Api, printer: &mut Printer, family: &str, which: &str) -> Result<(), Error> {
    let account = find(api, family, which).await?;
    let response = api.send(&Call::get(&[PATH, &account.id]).to(family)).await?;
    printer.response(&response, || Ok(fields(&api.read(&response)?)))
}

async fn delete(
    api: &Api,
    printer: &mut Printer,
    family: &str,
    which: &str,
    yes: bool,
) -> Result<(), Error> {
    let account = find(api, family, which).await?;
    let label = format!("service account {}", account.name);
    prompt::confirm(&format!("Delete {label} ({})?", account.id), yes)?;
    let response = api.send(&Call::delete(&[PATH, &account.id]).to(family)).await?;
    printer.response_or_note(&response, &format!("{label} deleted"))
}

async fn list(api: &Api, family: &str) -> Result<ApiResponse, Error> {
    api.send(&Call::get(&[PATH]).to(family).query("size", Some(MAX_ACCOUNTS))).await
}

async fn find(api: &Api, family: &str, which: &str) -> Result<Account, Error> {
    choose(api.read::<Accounts>(&list(api, family).await?)?.items, which)
}

fn choose(accounts: Vec<Account>, which: &str) -> Result<Account, Error> {
    let is_match =
        |a: &Account| [&a.id, &a.client_id, &a.name].into_iter().any(|text| text == which);
    let mut matches: Vec<Account> = accounts.into_iter().filter(is_match).collect();
    match matches.len() {
        1 => Ok(matches.remove(0)),
        0 => Err(Error::failed_with_hint(
            format!("service account {which:?} not found"),
            r#"run "paddock service-account list" to see all service accounts"#,
        )),
        _ => {
            let ids: Vec<String> = matches.into_iter().map(|account| account.id).collect();
            Err(subject::ambiguous("service accounts", which, &ids))
        }
    }
}

/// Prints an account with its secret.
async fn reveal(
    api: &Api,
    printer: &mut Printer,
    family: &str,
    response: &ApiResponse,
) -> Result<(), Error> {
    printer.response(response, || Ok(fields(&api.read(response)?)))?;
    printer.note("the secret is shown only once: store it safely");
    if let Some(url) = token_url(api, family).await {
        printer.note(&format!("token endpoint: {url}"));
    }
    Ok(())
}

/// Token endpoint; best effort.
async fn token_url(api: &Api, family: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Provider {
        token_url: String,
    }
    let call = Call::get(&["sso_providers"]).to(family).without_token();
    let provider: Provider = api.read(&api.send(&call).await.ok()?).ok()?;
    Some(provider.token_url)
}

fn fields(account: &Account) -> String {
    let mut pairs = vec![
        ("ID", account.id.clone()),
        ("NAME", account.name.clone()),
        ("CLIENT ID", account.client_id.clone()),
    ];
    pairs.extend(account.client_secret.clone().map(|secret| ("CLIENT SECRET", secret)));
    pairs.extend([
        ("DESCRIPTION", format::optional(account.description.as_ref())),
        ("OWNER", format::optional(account.created_by.as_ref())),
        ("CREATED", format::time(account.created_at.as_deref())),
    ]);
    table::fields(&pairs)
}

fn accounts_table(accounts: &[Account]) -> String {
    let header = ["ID", "NAME", "CLIENT ID", "OWNER", "CREATED", "DESCRIPTION"];
    let row = |table: Table, account: &Account| {
        table.row([
            account.id.clone(),
            account.name.clone(),
            account.client_id.clone(),
            format::optional(account.created_by.as_ref()),
            format::time(account.created_at.as_deref()),
            format::optional(account.description.as_ref()),
        ])
    };
    accounts.iter().fold(Table::new(&header), row).render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> Vec<Account> {
        serde_json::from_str(
            r#"[{"id":"u-1","name":"a","client_id":"acct-u-1","created_by":"ann"},
                {"id":"u-2","name":"b","client_id":"acct-u-2"},
                {"id":"u-3","name":"b","client_id":"acct-u-3"}]"#,
        )
        .unwrap()
    }

    #[test]
    fn account_is_found_by_name_id_or_client_id() {
        for which in ["a", "u-1", "acct-u-1"] {
            assert_eq!(choose(accounts(), which).ok().unwrap().id, "u-1");
        }
        for (which, message) in [
            ("c", "service account \"c\" not found"),
            ("b", "2 service accounts have the name \"b\":\n  u-2\n  u-3"),
        ] {
            assert_eq!(choose(accounts(), which).err().unwrap().message(), message);
        }
    }

    #[test]
    fn secret_is_shown_only_if_present_and_never_in_lists() {
        let mut account = accounts().remove(0);
        assert!(!fields(&account).contains("SECRET"));
        account.client_secret = Some("s3cret".into());
        assert!(fields(&account).contains("CLIENT SECRET  s3cret\n"));
        assert!(!accounts_table(&[account]).contains("s3cret"));
    }
}
