//! Tokens of users and service accounts. A secret is returned once; only its hash is stored.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use base::entropy;
use model::access::{Action, SubjectKind, Verb};
use model::user::{self, Role, User};
use model::{name, token};
use store::Tx;
use store::token::{Manager, create_named};
use wire::token::{NewToken, Token};

use crate::Problem;
use crate::body::Json;
use crate::caller::{Call, Caller, NAMED_TOKEN_PREFIX, token_hash};
use crate::idempotency::IdempotencyKey;
use crate::page::{List, PageQuery, Query, id};

const MANAGE_ACCOUNTS: Action = Action::new(SubjectKind::ServiceAccount, Verb::Administer);

/// Creates a token of the caller, or of a service account. Only this response has its secret.
///
/// A token creates only tokens within its own scope and lifetime; a login has no such limit.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "tokens", request_body = NewToken,
    params(("Idempotency-Key" = Option<String>, Header, description = "Key that makes retries safe: the request is executed at most once")),
    responses((status = 201, body = Token, description = "Created"), Problem))]
pub(crate) async fn token_create(
    Call(app, caller): Call,
    key: IdempotencyKey,
    Json(request): Json<NewToken>,
) -> Result<Response, Problem> {
    let name = token::name("name", &request.name)?;
    let scope = token::Scope::check("scope", request.scope.read_only, &request.scope.kinds)?;
    let life =
        token::check_lifetime("expires_in", request.expires_in, app.settings.token_max_life)?;
    let account = requested_account(&caller, &request)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = key.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let is_default = request.expires_in.is_none();
    let expires_at = caller.may_grant(&scope, tx.now() + life, is_default)?;
    let (user, kind) = match account {
        Some((name, role)) => {
            (service_account(&mut tx, &caller, name, role).await?, token::Kind::ServiceAccount)
        }
        None => (caller.user.clone(), own_kind(&caller)),
    };
    let secret = format!("{NAMED_TOKEN_PREFIX}{}", entropy::secret(app.db.entropy()));
    let hash = token_hash(&secret);
    let new = store::token::NewToken {
        user: &user,
        kind,
        name: &name,
        scope: &scope,
        hash: &hash,
        expires_at,
    };
    let stored = Token::new(create_named(&mut tx, &new).await?, caller.token_id());
    // A replayed response has no secret: secrets are not stored.
    let returned = Token { token: Some(secret), ..stored.clone() };
    key.finish_with_secret(&app, tx, &caller, &stored, &returned, ()).await
}

/// Name and role of the requested service account, if any.
fn requested_account<'a>(
    caller: &Caller,
    request: &'a NewToken,
) -> Result<Option<(&'a str, Option<Role>)>, Problem> {
    let role = request.role.as_deref().map(str::parse::<Role>).transpose()?;
    let role = role.map(|role| user::service_account_role("role", role)).transpose()?;
    let Some(account) = request.service_account.as_deref() else {
        if role.is_some() {
            return Err(Problem::field("role", "is only for service accounts: name one"));
        }
        if caller.external.is_some() {
            return Err(Problem::forbidden(
                "Users of OIDC logins have no personal tokens, because their rights come with each \
                 login. Ask an owner of the organization for a token of a service account.",
            ));
        }
        return Ok(None);
    };
    name::dns_label("service_account", account)?;
    caller.may(MANAGE_ACCOUNTS)?;
    Ok(Some((account, role)))
}

/// The service account with that name, which is created if it does not exist.
async fn service_account(
    tx: &mut Tx,
    caller: &Caller,
    name: &str,
    role: Option<Role>,
) -> Result<User, Problem> {
    let own = caller.user.organization_id;
    // Two concurrent calls must not both create it.
    tx.lock(&format!("service account/{own}/{name}")).await?;
    let Some(existing) = store::user::find_service_account(tx, own, name).await? else {
        let role = role.unwrap_or(Role::Member);
        return Ok(store::user::create_service_account(tx, own, name, role).await?);
    };
    if role.is_some_and(|role| role != existing.role) {
        return Err(Problem::conflict(format!(
            "Service account {name} exists with role {}. Omit role, or change the role with PATCH \
             /api/v1/users/{}.",
            existing.role, existing.id
        )));
    }
    Ok(existing)
}

fn own_kind(caller: &Caller) -> token::Kind {
    match caller.user.kind {
        user::Kind::Person => token::Kind::Personal,
        user::Kind::ServiceAccount => token::Kind::ServiceAccount,
    }
}

/// Whose tokens the caller manages: its own, and for owners those of service accounts.
fn manager(caller: &Caller) -> Manager {
    let organization = caller.user.organization_id;
    let service_accounts_of = caller.role_allows(MANAGE_ACCOUNTS).then_some(organization);
    Manager { user: caller.user.id, service_accounts_of }
}

/// Lists the caller's valid tokens, including logins; for owners also those of service accounts.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "tokens", params(PageQuery),
    responses((status = 200, body = List<Token>, description = "A page of the list"), Problem))]
pub(crate) async fn token_list(
    Call(app, caller): Call,
    Query(paging): Query<PageQuery>,
) -> Result<Answer<List<Token>>, Problem> {
    let page = paging.page()?;
    let (mut read, now) = (app.db.read().await?, app.db.now());
    let found = store::token::list(&mut read, manager(&caller), &page, now).await?;
    let items = found.into_iter().map(|token| Token::new(token, caller.token_id())).collect();
    Ok(Answer(List::new(items, &page, |token| token.id.to_string())))
}

/// Returns a token, without its secret.
#[utoipa::path(get, path = "/api/v1/tokens/{id}", tag = "tokens",
    params(("id" = String, Path, description = "Token ID, not its secret")),
    responses((status = 200, body = Token, description = "The token"), Problem))]
pub(crate) async fn token_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<Token>, Problem> {
    let id = id("token", &text)?;
    let (mut read, now) = (app.db.read().await?, app.db.now());
    let found = store::token::get(&mut read, manager(&caller), id, now).await?;
    Ok(Answer(Token::new(found, caller.token_id())))
}

/// Revokes a token in all replicas, at once.
#[utoipa::path(delete, path = "/api/v1/tokens/{id}", tag = "tokens",
    params(("id" = String, Path, description = "Token ID, not its secret")),
    responses((status = 204, description = "Revoked"), Problem))]
pub(crate) async fn token_revoke(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<StatusCode, Problem> {
    let id = id("token", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let revoked = store::token::revoke(&mut tx, manager(&caller), id).await?;
    if revoked.user_id != caller.user.id {
        caller.may(MANAGE_ACCOUNTS)?;
    }
    tx.commit().await?;
    app.cache.clear();
    Ok(StatusCode::NO_CONTENT)
}
