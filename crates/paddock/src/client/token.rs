//! `paddock token`: manages tokens of the user and of the organization's service accounts. A secret
//! is shown only once, by the command that created it.

use serde_json::json;
use wire::token::{NewToken, Token, TokenScope};

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::{Api, ApiResponse};
use super::page;
use super::parse;
use super::print::Printer;
use super::prompt;
use super::subject;
use super::table;

/// Maximum number of listed tokens.
const MAX_TOKENS: usize = 10_000;

const CREATE_HELP: &str = "\
The token is shown only once. Use it as PADDOCK_TOKEN, or as Authorization: Bearer TOKEN.

Example:
  paddock token create laptop --expires 30d
  paddock token create dashboard --read-only --kind deployment --kind cluster
  paddock token create pipeline --service-account ci --role member";

/// `paddock token …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Create a token; its secret is shown only once
    #[command(after_help = CREATE_HELP)]
    Create(Create),
    /// List your tokens and logins; owners also see those of service accounts
    #[command(visible_alias = "ls", after_help = "Example:\n  paddock token list")]
    List,
    /// Revoke a token or a login at once
    #[command(
        visible_alias = "rm",
        after_help = "\
Example:
  paddock token revoke pipeline
  paddock token revoke --service-account ci"
    )]
    Revoke {
        /// Name or id of the token
        #[arg(value_name = "NAME-OR-ID", required_unless_present = "service_account")]
        which: Option<String>,
        /// Delete this service account and revoke all of its tokens
        #[arg(long, value_name = "NAME", conflicts_with = "which")]
        service_account: Option<String>,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
}

/// `paddock token create`.
#[derive(clap::Args)]
pub(crate) struct Create {
    /// Name that tells the token from others
    name: String,
    /// Allow only reading
    #[arg(long)]
    read_only: bool,
    /// Kind of subject that the token may be used for, such as deployment; repeatable [default: all]
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Lifetime of the token, such as 12h or 30d [default: 90d]
    #[arg(long, value_name = "DURATION", value_parser = parse::seconds)]
    expires: Option<u64>,
    /// Create the token for this service account of the organization, which is created if needed
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// Role of a new service account: member or viewer [default: member]
    #[arg(long, requires = "service_account")]
    role: Option<String>,
}

/// Runs a command.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Create(args) => create(api, printer, args).await,
        Command::List => list(api).await?.print(api, printer, token_table),
        Command::Revoke { service_account: Some(name), yes, .. } => {
            delete_account(api, printer, &name, yes).await
        }
        Command::Revoke { which, yes, .. } => {
            revoke(api, printer, &which.unwrap_or_default(), yes).await
        }
    }
}

async fn create(api: &Api, printer: &mut Printer, args: Create) -> Result<(), Error> {
    let new = NewToken {
        name: args.name,
        expires_in: args.expires.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX)),
        scope: TokenScope { read_only: args.read_only, kinds: args.kind },
        service_account: args.service_account,
        role: args.role,
    };
    // Not repeated: a repeated response would lack the secret.
    let response = api.send(&Call::post(&["tokens"], Some(json!(new)))).await?;
    printer.response(&response, || created(api, &response))
}

async fn list(api: &Api) -> Result<page::List, Error> {
    page::list(api, Call::get(&["tokens"]), MAX_TOKENS).await
}

async fn revoke(api: &Api, printer: &mut Printer, which: &str, yes: bool) -> Result<(), Error> {
    let all: Vec<Token> = list(api).await?.read(api)?;
    let token = choose(&all, which)?;
    let name = if token.name.is_empty() { "login" } else { &token.name };
    prompt::confirm(&format!("Revoke token {name} ({})?", token.id), yes)?;
    let response = api.send(&Call::delete(&["tokens", &token.id.to_string()])).await?;
    printer.response_or_note(&response, &format!("token {name} ({}) revoked", token.id))
}

/// The token with that id, or the only one with that name.
fn choose<'a>(tokens: &'a [Token], which: &str) -> Result<&'a Token, Error> {
    if let Some(token) = tokens.iter().find(|token| token.id.to_string() == which) {
        return Ok(token);
    }
    let named: Vec<&Token> = tokens.iter().filter(|token| token.name == which).collect();
    match named.as_slice() {
        [] => Err(Error::failed_with_hint(
            format!("no token has the name or id {which:?}"),
            r#"run "paddock token list" to see your tokens"#,
        )),
        [token] => Ok(token),
        many => {
            let lines: Vec<String> = many
                .iter()
                .map(|token| {
                    let account = format::optional(token.service_account.as_ref());
                    format!("{}  {account}  {}", token.id, format::timestamp(token.created_at))
                })
                .collect();
            Err(subject::ambiguous("tokens", which, &lines))
        }
    }
}

/// Deletes the service account that one of the listed tokens belongs to.
async fn delete_account(
    api: &Api,
    printer: &mut Printer,
    name: &str,
    yes: bool,
) -> Result<(), Error> {
    let all: Vec<Token> = list(api).await?.read(api)?;
    let of = |token: &&Token| token.service_account.as_deref() == Some(name);
    let Some(token) = all.iter().find(of) else {
        return Err(Error::failed_with_hint(
            format!("no service account {name:?} has a token"),
            r#"run "paddock token list" to see tokens of service accounts; only owners see them"#,
        ));
    };
    prompt::confirm(&format!("Delete service account {name} and revoke its tokens?"), yes)?;
    let response = api.send(&Call::delete(&["users", &token.user_id.to_string()])).await?;
    printer.response_or_note(&response, &format!("service account {name} deleted"))
}

fn created(api: &Api, response: &ApiResponse) -> Result<String, Error> {
    let token: Token = api.read(response)?;
    Ok(table::fields(&[
        ("TOKEN", format::optional(token.token.as_ref())),
        ("ID", token.id.to_string()),
        ("NAME", token.name.clone()),
        ("SCOPE", scope(&token)),
        ("SERVICE ACCOUNT", format::optional(token.service_account.as_ref())),
        ("EXPIRES", format::timestamp(token.expires_at)),
    ]))
}

fn scope(token: &Token) -> String {
    let verb = if token.scope.read_only { "read" } else { "read,write" };
    match token.scope.kinds.as_slice() {
        [] => verb.to_owned(),
        kinds => format!("{verb}: {}", kinds.join(",")),
    }
}

fn token_table(tokens: &[Token]) -> String {
    table::render(
        tokens,
        &[
            ("ID", |token| token.id.to_string()),
            ("NAME", |token| {
                let current = if token.is_current { " (current)" } else { "" };
                let name = if token.name.is_empty() { "-" } else { &token.name };
                format!("{name}{current}")
            }),
            ("KIND", |token| token.kind.clone()),
            ("SERVICE ACCOUNT", |token| format::optional(token.service_account.as_ref())),
            ("SCOPE", scope),
            ("LAST USED", |token| format::timestamp(token.last_used_at)),
            ("EXPIRES", |token| format::timestamp(token.expires_at)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn tokens() -> [Token; 3] {
        [
            json!({"id": sample::id("1"), "kind": "session", "name": "", "is_current": true}),
            json!({"id": sample::id("2"), "scope": {"read_only": true, "kinds": ["cluster", "image"]}}),
            json!({"id": sample::id("3"), "kind": "service_account", "service_account": "ci",
                "last_used_at": "2026-01-03T03:04:05Z"}),
        ]
        .map(sample::token)
    }

    #[test]
    fn table_shows_scope_and_last_use_of_each_token() {
        let want = "\
ID                    NAME         KIND             SERVICE ACCOUNT  SCOPE                LAST USED             EXPIRES
10000000000000000000  - (current)  session          -                read,write           -                     2026-01-09T03:04:05Z
20000000000000000000  laptop       personal         -                read: cluster,image  -                     2026-01-09T03:04:05Z
30000000000000000000  laptop       service_account  ci               read,write           2026-01-03T03:04:05Z  2026-01-09T03:04:05Z
";
        assert_eq!(token_table(&tokens()), want);
    }

    #[test]
    fn token_is_chosen_by_id_or_unique_name() {
        let tokens = tokens();
        assert_eq!(choose(&tokens, &sample::id("3")).unwrap().id, tokens[2].id);
        assert!(choose(&tokens, "laptop").is_err());
        assert_eq!(choose(&tokens[..2], "laptop").unwrap().id, tokens[1].id);
        assert!(choose(&tokens, "other").is_err());
    }
}
