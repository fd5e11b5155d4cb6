//! `paddock service-account`: what programs sign in with. A secret is shown once, by the command that made it.

use serde::Deserialize;
use serde_json::json;
use wire::kind::Kind;

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::{Answer, Api};
use super::print::Printer;
use super::prompt;
use super::service::catalog;
use super::subject;
use super::table::{self, Table};

/// Where the API of a kind has them.
const PATH: &str = "service_accounts";
/// The most that are listed.
const MAX_ACCOUNTS: usize = 10_000;

/// `paddock service-account …`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  paddock service-account create importer
  paddock service-account list")]
pub(crate) struct Args {
    /// The kind of service whose API is asked [default: the first that has service accounts]
    #[arg(long, global = true, value_name = "KIND")]
    kind: Option<String>,
    #[command(subcommand)]
    verb: Verb,
}

/// What to do.
#[derive(clap::Subcommand)]
enum Verb {
    /// Makes a service account; its secret is shown only now
    #[command(after_help = "\
Example:
  paddock service-account create importer --description \"Nightly import\"")]
    Create {
        /// What the account is called
        name: String,
        /// What it is for
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Lists the service accounts of the organization
    #[command(visible_alias = "ls", after_help = "Example:\n  paddock service-account list")]
    List,
    /// Shows one service account, without its secret
    #[command(
        visible_alias = "get",
        after_help = "Example:\n  paddock service-account show importer"
    )]
    Show {
        /// Its name, its id or its client id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Gives a service account another secret, which is shown only now; the old one is dead at once
    #[command(after_help = "Example:\n  paddock service-account reset importer --yes")]
    Reset {
        /// Its name, its id or its client id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        /// Resets without asking
        #[arg(long, short)]
        yes: bool,
    },
    /// Deletes a service account: nobody can sign in with it any more
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock service-account delete importer --yes"
    )]
    Delete {
        /// Its name, its id or its client id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        /// Deletes without asking
        #[arg(long, short)]
        yes: bool,
    },
}

/// The part of a service account that the client shows.
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

/// Carries out one of the commands.
pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let service = offering(api, args.kind.as_deref()).await?;
    let family = service.api.as_str();
    match args.verb {
        Verb::Create { name, description } => {
            create(api, printer, family, &name, description).await
        }
        Verb::List => {
            let answer = list(api, family).await?;
            printer.answer(&answer, || Ok(accounts_table(&api.read::<Accounts>(&answer)?.items)))
        }
        Verb::Show { which } => show(api, printer, family, &which).await,
        Verb::Reset { which, yes } => reset(api, printer, family, &which, yes).await,
        Verb::Delete { which, yes } => delete(api, printer, family, &which, yes).await,
    }
}

/// The kind that was named, or the first that has service accounts.
async fn offering(api: &Api, named: Option<&str>) -> Result<Kind, Error> {
    for service in catalog::some(api, named).await? {
        if catalog::has(api, &service, PATH).await? {
            return Ok(service);
        }
    }
    let what = named.map_or_else(
        || "no kind of service here has service accounts".to_owned(),
        |kind| format!("{kind} has no service accounts"),
    );
    Err(Error::failed_but(what, "leave --kind out to take a kind that has them"))
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
    // The server remembers no key for this call: a second arrival would be a second account.
    let answer = api.send(&Call::post(&[PATH], Some(body)).to(family)).await?;
    reveal(api, printer, family, &answer).await
}

async fn reset(
    api: &Api,
    printer: &mut Printer,
    family: &str,
    which: &str,
    yes: bool,
) -> Result<(), Error> {
    let account = find(api, family, which).await?;
    prompt::confirm(&format!("Make a new secret for {} ({})?", account.name, account.id), yes)?;
    let call = Call::post(&[PATH, &account.id, "reset_credentials"], None).to(family);
    let answer = api.send(&call).await?;
    reveal(api, printer, family, &answer).await
}

async fn show(api: &Api, printer: &mut Printer, family: &str, which: &str) -> Result<(), Error> {
    let account = find(api, family, which).await?;
    let answer = api.send(&Call::get(&[PATH, &account.id]).to(family)).await?;
    printer.answer(&answer, || Ok(fields(&api.read(&answer)?)))
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
    let answer = api.send(&Call::delete(&[PATH, &account.id]).to(family)).await?;
    printer.answer_or_note(&answer, &format!("{label} is gone"))
}

async fn list(api: &Api, family: &str) -> Result<Answer, Error> {
    api.send(&Call::get(&[PATH]).to(family).query("size", Some(MAX_ACCOUNTS))).await
}

async fn find(api: &Api, family: &str, which: &str) -> Result<Account, Error> {
    choose(api.read::<Accounts>(&list(api, family).await?)?.items, which)
}

fn choose(accounts: Vec<Account>, which: &str) -> Result<Account, Error> {
    let is_meant =
        |one: &Account| [&one.id, &one.client_id, &one.name].into_iter().any(|text| text == which);
    let mut meant: Vec<Account> = accounts.into_iter().filter(is_meant).collect();
    match meant.len() {
        1 => Ok(meant.remove(0)),
        0 => Err(Error::failed_but(
            format!("there is no service account {which:?}"),
            r#""paddock service-account list" shows them all"#,
        )),
        _ => {
            let ids: Vec<String> = meant.into_iter().map(|one| one.id).collect();
            Err(subject::ambiguous("service accounts", which, &ids))
        }
    }
}

/// Prints an account with its secret, and says that it is for the last time.
async fn reveal(
    api: &Api,
    printer: &mut Printer,
    family: &str,
    answer: &Answer,
) -> Result<(), Error> {
    printer.answer(answer, || Ok(fields(&api.read(answer)?)))?;
    printer.note("the secret is shown only now: keep it where nobody else reads");
    if let Some(url) = token_url(api, family).await {
        printer.note(&format!("with it, programs get tokens at {url}"));
    }
    Ok(())
}

/// Where tokens are to be had. It is a courtesy: nothing fails without it.
async fn token_url(api: &Api, family: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Provider {
        token_url: String,
    }
    let call = Call::get(&["sso_providers"]).to(family).open();
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
    fn an_account_is_known_by_its_name_and_its_ids() {
        for which in ["a", "u-1", "acct-u-1"] {
            assert_eq!(choose(accounts(), which).ok().unwrap().id, "u-1");
        }
        for (which, what) in [
            ("c", "there is no service account \"c\""),
            ("b", "2 service accounts have the name \"b\":\n  u-2\n  u-3"),
        ] {
            assert_eq!(choose(accounts(), which).err().unwrap().what(), what);
        }
    }

    #[test]
    fn a_secret_is_shown_where_there_is_one() {
        let mut account = accounts().remove(0);
        assert!(!fields(&account).contains("SECRET"));
        account.client_secret = Some("s3cret".into());
        assert!(fields(&account).contains("CLIENT SECRET  s3cret\n"));
        assert!(!accounts_table(&[account]).contains("s3cret"));
    }
}
