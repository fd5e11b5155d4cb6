//! Token endpoint for service accounts and agents: the required subset of an OIDC provider.

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
use super::tenant::ApiKind;
use super::wire::Origin;
use crate::App;
use crate::caller::authorization;

/// Path of the realm below the server's address.
pub(crate) const REALM: &str = "/auth/realms/paddock";
/// Lifetime of tokens.
const LIFE: Duration = Duration::from_mins(10);
/// Prefix of agents' short-lived tokens, which cannot be used to obtain others.
const AGENT_TOKEN_PREFIX: &str = "lent-";

/// SSO provider for service accounts.
#[derive(Serialize, ToSchema)]
pub(crate) struct SsoProvider {
    /// Always empty.
    id: &'static str,
    /// Always empty.
    kind: &'static str,
    /// Always empty.
    href: &'static str,
    /// Name.
    name: &'static str,
    /// Base URL.
    base_url: String,
    /// Token endpoint.
    token_url: String,
    /// URL of the signing keys; empty, because Paddock's tokens are opaque.
    jwks: String,
    /// Token issuer.
    valid_issuer: String,
}

/// Returns the SSO provider for service accounts.
#[utoipa::path(get, path = "/api/{api}/v1/sso_providers", tag = "service accounts", params(ApiPath),
    security(()), responses((status = 200, body = SsoProvider, description = "SSO provider"), Error))]
pub(crate) async fn sso_provider_get(
    ApiKind(kind): ApiKind,
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

/// Form of a token request.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "describes the form; the handler reads it by name")]
pub(crate) struct TokenForm {
    /// Must be `client_credentials`.
    grant_type: String,
    /// Client ID, unless it is sent as Basic credentials.
    client_id: Option<String>,
    /// Client secret.
    client_secret: Option<String>,
}

/// An access token.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the fields are named as in RFC 6749")]
pub(crate) struct AccessToken {
    /// Bearer token.
    access_token: String,
    /// Always `Bearer`.
    token_type: &'static str,
    /// Lifetime in seconds.
    expires_in: u64,
    /// Always empty: the token has all rights of its account.
    scope: &'static str,
}

/// Error response of RFC 6749.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenError {
    /// `invalid_client`, `invalid_request` or `unsupported_grant_type`.
    error: &'static str,
    /// Human-readable message.
    error_description: &'static str,
}

/// Issues a token for a service account or a cluster's agent. It is valid for ten minutes.
#[utoipa::path(post, path = "/auth/realms/paddock/protocol/openid-connect/token",
    tag = "service accounts", security(()),
    request_body(content = TokenForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = AccessToken, description = "Access token"),
        (status = "default", body = TokenError, description = "Error")))]
pub(crate) async fn token_create(
    State(app): State<App>,
    headers: HeaderMap,
    form: Result<Form<BTreeMap<String, String>>, axum::extract::rejection::FormRejection>,
) -> Response {
    let Ok(Form(form)) = form else {
        return refuse(
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "The body must be a form with grant_type.",
        );
    };
    if form.get("grant_type").map(String::as_str) != Some("client_credentials") {
        let why = "Only the grant client_credentials is supported.";
        return refuse(StatusCode::BAD_REQUEST, "unsupported_grant_type", why);
    }
    let Some((account, secret)) = client_credentials(&headers, &form) else {
        let why = "Send client_id and client_secret in the form, or as Basic credentials.";
        return refuse(StatusCode::UNAUTHORIZED, "invalid_client", why);
    };
    match issue(&app, &account, &secret).await {
        Ok(Some(access_token)) => {
            let expires_in = LIFE.as_secs();
            let token = AccessToken { access_token, token_type: "Bearer", expires_in, scope: "" };
            ([(header::CACHE_CONTROL, "no-store")], Answer(token)).into_response()
        }
        Ok(None) => {
            let why = "Unknown client_id or wrong client_secret.";
            refuse(StatusCode::UNAUTHORIZED, "invalid_client", why)
        }
        Err(error) => {
            tracing::error!(%error, "issuing a token failed");
            let why = "Temporarily unavailable; try again.";
            refuse(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", why)
        }
    }
}

fn refuse(status: StatusCode, error: &'static str, error_description: &'static str) -> Response {
    (status, Answer(json!({"error": error, "error_description": error_description})))
        .into_response()
}

/// Returns the client ID and the secret from the header or the form.
fn client_credentials(
    headers: &HeaderMap,
    form: &BTreeMap<String, String>,
) -> Option<(String, String)> {
    let basic = authorization(headers).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let Some((_, value)) = basic else {
        return Some((form.get("client_id")?.clone(), form.get("client_secret")?.clone()));
    };
    let text = String::from_utf8(BASE64.decode(value.as_bytes()).ok()?).ok()?;
    text.split_once(':').map(|(account, secret)| (account.to_owned(), secret.to_owned()))
}

/// Issues a token for the account if the secret matches.
async fn issue(app: &App, account: &str, secret: &str) -> store::Result<Option<String>> {
    let expires_at = app.db.now() + LIFE;
    let hash = entropy::hash(secret);
    let known = service_account::find(&mut app.db.read().await?, account).await?;
    if let Some((account, stored_hash)) = known {
        return if stored_hash == hash {
            for_account(&app.db, &account, expires_at).await
        } else {
            Ok(None)
        };
    }
    if secret.starts_with(AGENT_TOKEN_PREFIX) {
        return Ok(None);
    }
    for_agent(app, account, &hash, expires_at).await
}

/// Issues a token of the account's owner: the account has the owner's rights.
async fn for_account(
    db: &Db,
    account: &service_account::ServiceAccount,
    expires_at: Time,
) -> store::Result<Option<String>> {
    let owner = user::credentials(&mut db.read().await?, &account.owner).await?;
    let owner = owner.filter(|(owner, _)| owner.organization_id == account.organization_id);
    let Some((owner, _)) = owner else { return Ok(None) };
    let secret = entropy::secret(db.entropy());
    let mut tx = db.begin(Actor::User(owner.id)).await?;
    token::create(&mut tx, owner.id, &entropy::hash(&secret), expires_at).await?;
    tx.commit().await?;
    Ok(Some(secret))
}

/// Issues a token for a cluster's agent, whose client ID contains the cluster.
async fn for_agent(
    app: &App,
    account: &str,
    hash: &str,
    expires_at: Time,
) -> store::Result<Option<String>> {
    let mut read = app.db.read().await?;
    let now = app.db.now();
    let Some(cluster_id) = agent_token::find(&mut read, hash, now).await? else { return Ok(None) };
    let cluster = hosting::find(&mut read, &cluster_id.to_string()).await?;
    drop(read);
    let catalog = app.rules.catalog();
    if !cluster.is_some_and(|cluster| is_account(&catalog, account, &cluster)) {
        return Ok(None);
    }
    let secret = format!("{AGENT_TOKEN_PREFIX}{}", entropy::secret(app.db.entropy()));
    let mut tx = app.db.begin(Actor::Agent).await?;
    agent_token::create_temporary(&mut tx, cluster_id, &entropy::hash(&secret), expires_at).await?;
    tx.commit().await?;
    Ok(Some(secret))
}

/// Whether `account` is the client ID of the cluster's agent, for any kind.
fn is_account(catalog: &Catalog, account: &str, cluster: &model::cluster::Cluster) -> bool {
    catalog.kinds().any(|kind| client_id(kind, cluster) == account)
}
