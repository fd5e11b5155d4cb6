//! Where service accounts and agents get their tokens: an OpenID provider's token endpoint, as far as they
//! need one.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base::entropy;
use data_encoding::BASE64;
use model::event::Actor;
use model::{Time, kind::Catalog};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::cluster::hosting;
use store::{Db, agent_token, service_account, token, user};
use utoipa::ToSchema;

use super::Error;
use super::agent::client_id;
use super::error::ApiPath;
use super::tenant::Of;
use super::wire::Origin;
use crate::App;
use crate::caller::authorization;

/// Where the realm is, under the server's own address.
pub(crate) const REALM: &str = "/auth/realms/paddock";
/// How long a token is good.
const LIFE: Duration = Duration::from_mins(10);
/// What lent tokens of agents begin with: they are not good for getting others.
const LENT: &str = "lent-";

/// Where programs sign in.
#[derive(Serialize, ToSchema)]
pub(crate) struct SsoProvider {
    /// Always empty.
    id: &'static str,
    /// Always empty.
    kind: &'static str,
    /// Always empty.
    href: &'static str,
    /// Its name.
    name: &'static str,
    /// Where it is.
    base_url: String,
    /// Where tokens are to be had.
    token_url: String,
    /// Where its keys are; tokens of Paddock need none.
    jwks: String,
    /// Who issues its tokens.
    valid_issuer: String,
}

/// Where programs sign in with their service accounts.
#[utoipa::path(get, path = "/api/{api}/v1/sso_providers", tag = "service accounts", params(ApiPath),
    security(()), responses((status = 200, body = SsoProvider, description = "The provider"), Error))]
pub(crate) async fn sso_provider_get(
    Of(kind): Of,
    Origin(origin): Origin,
) -> Result<Answer<SsoProvider>, Error> {
    if !kind.offers.service_accounts {
        return Err(Error::new(7, format!("{} has no service accounts.", kind.display_name)));
    }
    Ok(Answer(SsoProvider {
        id: "",
        kind: "",
        href: "",
        name: "mas_sso",
        token_url: format!("{origin}{REALM}/protocol/openid-connect/token"),
        jwks: String::new(),
        valid_issuer: format!("{origin}{REALM}"),
        base_url: origin,
    }))
}

/// What a program asks for, as a form.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "describes the form; the handler reads it by name")]
pub(crate) struct TokenForm {
    /// Must be `client_credentials`.
    grant_type: String,
    /// What it signs in as, unless that is in the header (Basic).
    client_id: Option<String>,
    /// What it signs in with.
    client_secret: Option<String>,
}

/// A token.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the fields are named as in RFC 6749")]
pub(crate) struct AccessToken {
    /// Send it as bearer.
    access_token: String,
    /// Always `Bearer`.
    token_type: &'static str,
    /// For how many seconds it is good.
    expires_in: u64,
    /// Always empty: it is good for all that its account may do.
    scope: &'static str,
}

/// Why there is no token, as RFC 6749 has it.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenError {
    /// `invalid_client`, `invalid_request` or `unsupported_grant_type`.
    error: &'static str,
    /// The same as a sentence.
    error_description: &'static str,
}

/// Gives a service account, or the account of a cluster's agent, a token for ten minutes.
#[utoipa::path(post, path = "/auth/realms/paddock/protocol/openid-connect/token",
    tag = "service accounts", security(()),
    request_body(content = TokenForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = AccessToken, description = "The token"),
        (status = "default", body = TokenError, description = "Why there is none")))]
pub(crate) async fn token_create(
    State(app): State<App>,
    headers: HeaderMap,
    form: Result<Form<BTreeMap<String, String>>, axum::extract::rejection::FormRejection>,
) -> Response {
    let Ok(Form(form)) = form else {
        return refuse(StatusCode::BAD_REQUEST, "invalid_request", "Send a form with grant_type.");
    };
    if form.get("grant_type").map(String::as_str) != Some("client_credentials") {
        let why = "Only the grant client_credentials is supported.";
        return refuse(StatusCode::BAD_REQUEST, "unsupported_grant_type", why);
    }
    let Some((account, secret)) = shown(&headers, &form) else {
        let why = "Send client_id and client_secret in the form, or as Basic.";
        return refuse(StatusCode::UNAUTHORIZED, "invalid_client", why);
    };
    match issue(&app, &account, &secret).await {
        Ok(Some(access_token)) => {
            let expires_in = LIFE.as_secs();
            let token = AccessToken { access_token, token_type: "Bearer", expires_in, scope: "" };
            ([(header::CACHE_CONTROL, "no-store")], Answer(token)).into_response()
        }
        Ok(None) => {
            let why = "There is no such account, or its secret is another.";
            refuse(StatusCode::UNAUTHORIZED, "invalid_client", why)
        }
        Err(error) => {
            tracing::error!(%error, "no token could be given");
            let why = "It does not work right now; try again in a moment.";
            refuse(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", why)
        }
    }
}

fn refuse(status: StatusCode, error: &'static str, error_description: &'static str) -> Response {
    (status, Answer(json!({"error": error, "error_description": error_description})))
        .into_response()
}

/// The account and its secret, from the header or the form.
fn shown(headers: &HeaderMap, form: &BTreeMap<String, String>) -> Option<(String, String)> {
    let basic = authorization(headers).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let Some((_, value)) = basic else {
        return Some((form.get("client_id")?.clone(), form.get("client_secret")?.clone()));
    };
    let text = String::from_utf8(BASE64.decode(value.as_bytes()).ok()?).ok()?;
    text.split_once(':').map(|(account, secret)| (account.to_owned(), secret.to_owned()))
}

/// A token for the account, if that is its secret.
async fn issue(app: &App, account: &str, secret: &str) -> store::Result<Option<String>> {
    let ends = app.db.now() + LIFE;
    let hash = entropy::hash(secret);
    let known = service_account::find(&mut app.db.read().await?, account).await?;
    if let Some((known, kept)) = known {
        return if kept == hash { for_account(&app.db, &known, ends).await } else { Ok(None) };
    }
    if secret.starts_with(LENT) {
        return Ok(None);
    }
    for_agent(app, account, &hash, ends).await
}

/// A token of the account's owner: what it may do, the account may do.
async fn for_account(
    db: &Db,
    of: &service_account::ServiceAccount,
    ends: Time,
) -> store::Result<Option<String>> {
    let owner = user::credentials(&mut db.read().await?, &of.owner).await?;
    let owner = owner.filter(|(owner, _)| owner.organization_id == of.organization_id);
    let Some((owner, _)) = owner else { return Ok(None) };
    let made = entropy::secret(db.entropy());
    let mut tx = db.begin(Actor::User(owner.id)).await?;
    token::create(&mut tx, owner.id, &entropy::hash(&made), ends).await?;
    tx.commit().await?;
    Ok(Some(made))
}

/// A token for the agent of a cluster, which is named in what it signs in as.
async fn for_agent(
    app: &App,
    account: &str,
    hash: &str,
    ends: Time,
) -> store::Result<Option<String>> {
    let mut read = app.db.read().await?;
    let now = app.db.now();
    let Some(of) = agent_token::find(&mut read, hash, now).await? else { return Ok(None) };
    let on = hosting::find(&mut read, &of.to_string()).await?;
    drop(read);
    let catalog = app.rules.catalog();
    if !on.is_some_and(|on| is_account(&catalog, account, &on)) {
        return Ok(None);
    }
    let made = format!("{LENT}{}", entropy::secret(app.db.entropy()));
    let mut tx = app.db.begin(Actor::Agent).await?;
    agent_token::lend(&mut tx, of, &entropy::hash(&made), ends).await?;
    tx.commit().await?;
    Ok(Some(made))
}

/// Is that what the cluster's agent signs in as, for whichever kind?
fn is_account(catalog: &Catalog, account: &str, on: &model::cluster::Cluster) -> bool {
    catalog.kinds().any(|kind| client_id(kind, on) == account)
}
