//! Service accounts: credentials for programs of an organization. Secrets are returned once and
//! stored only as hashes.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use base::entropy;
use model::Time;
use model::access::{Action, SubjectKind, Verb};
use model::kind::Kind;
use serde::{Deserialize, Serialize};
use store::{Scope, service_account as accounts};
use utoipa::{IntoParams, ToSchema};

use super::Error;
use super::body::Json;
use super::error::ApiPath;
use super::tenant::Tenant;
use super::wire::{Paging, Params};
use crate::App;
use crate::caller::Call;

const PREFIX: &str = "srvc-acct-";
const NAME_MAX: usize = 50;
const DESCRIPTION_MAX: usize = 255;
const CLIENT_ID_MAX: usize = 47;

/// A service account.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServiceAccount {
    /// Unique identifier.
    id: String,
    /// Always `ServiceAccount`.
    kind: &'static str,
    /// Path in this API.
    href: String,
    /// Name.
    name: String,
    /// Description.
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    /// Client ID.
    client_id: String,
    /// Client secret. Returned only on creation and reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    /// Owner; same as `created_by`.
    owner: String,
    /// Owner, by username.
    created_by: String,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl ServiceAccount {
    fn new(kind: &Kind, account: accounts::ServiceAccount, secret: Option<String>) -> Self {
        Self {
            kind: "ServiceAccount",
            href: format!("/api/{}/v1/service_accounts/{}", kind.api, account.id),
            id: account.id,
            name: account.name,
            description: account.description,
            client_id: account.client_id,
            client_secret: secret,
            created_by: account.owner.clone(),
            owner: account.owner,
            created_at: account.created_at,
        }
    }
}

/// Service accounts of an organization.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServiceAccountList {
    /// Always `ServiceAccountList`.
    kind: &'static str,
    /// Accounts.
    items: Vec<ServiceAccount>,
}

/// A service account to create.
#[derive(Deserialize, ToSchema)]
pub(crate) struct NewServiceAccount {
    /// Name.
    #[serde(default)]
    name: String,
    /// Description.
    description: Option<String>,
}

/// Path of a service account.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AccountPath {
    /// API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    _api: String,
    /// Service account ID, a UUID.
    id: String,
}

/// Filter for service accounts.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `Params` reads it")]
pub(crate) struct ServiceAccountQuery {
    /// Filters by client ID.
    client_id: Option<String>,
}

/// Lists the organization's service accounts.
#[utoipa::path(get, path = "/api/{api}/v1/service_accounts", tag = "service accounts",
    params(ApiPath, Paging, ServiceAccountQuery),
    responses((status = 200, body = ServiceAccountList, description = "A page of the list"), Error))]
pub(crate) async fn service_account_list(
    Call(app, tenant): Call<Tenant>,
    params: Params,
) -> Result<Answer<ServiceAccountList>, Error> {
    must_be_offered(&tenant)?;
    let mut read = app.db.read().await?;
    let own = tenant.caller.user.organization_id;
    let found = match params.get("client_id") {
        Some(client_id) => {
            check_client_id(client_id)?;
            let found = accounts::find(&mut read, client_id).await?;
            found
                .map(|(account, _)| account)
                .filter(|account| account.organization_id == own)
                .into_iter()
                .collect()
        }
        None => {
            let (size, skip) = params.page()?.bounds(i64::MAX);
            accounts::list(&mut read, own, skip, size).await?
        }
    };
    let items = found.into_iter().map(|account| ServiceAccount::new(&tenant.kind, account, None));
    Ok(Answer(ServiceAccountList { kind: "ServiceAccountList", items: items.collect() }))
}

/// Creates a service account. The response is the only one that contains the secret.
#[utoipa::path(post, path = "/api/{api}/v1/service_accounts", tag = "service accounts",
    params(ApiPath), request_body = NewServiceAccount,
    responses((status = 202, body = ServiceAccount, description = "Created"), Error))]
pub(crate) async fn service_account_create(
    Call(app, tenant): Call<Tenant>,
    Json(body): Json<NewServiceAccount>,
) -> Result<(StatusCode, Answer<ServiceAccount>), Error> {
    must_be_offered(&tenant)?;
    // The account gets tokens with all rights of its owner.
    tenant.caller.must_have_full_scope("create service accounts")?;
    check_name(&body.name)?;
    let description = body.description.unwrap_or_default();
    check_description(&description)?;
    let (id, secret) = (entropy::uuid(app.db.entropy()), entropy::secret(app.db.entropy()));
    let mut tx = app.db.begin(tenant.caller.actor()).await?;
    let created = accounts::ServiceAccount {
        client_id: format!("{PREFIX}{id}"),
        id,
        organization_id: tenant.caller.user.organization_id,
        owner: tenant.caller.user.username.clone(),
        name: body.name,
        description,
        created_at: tx.now(),
    };
    let max = app.settings.max_service_accounts;
    accounts::create(&mut tx, &created, &entropy::hash(&secret), Some(max)).await?;
    tx.commit().await?;
    let response = ServiceAccount::new(&tenant.kind, created, Some(secret));
    Ok((StatusCode::ACCEPTED, Answer(response)))
}

/// Returns a service account. Allowed for its owner and the organization's owners.
#[utoipa::path(get, path = "/api/{api}/v1/service_accounts/{id}", tag = "service accounts",
    params(AccountPath),
    responses((status = 200, body = ServiceAccount, description = "Service account"), Error))]
pub(crate) async fn service_account_get(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<AccountPath>,
) -> Result<Answer<ServiceAccount>, Error> {
    let found = find(&app, &tenant, &path.id).await?;
    if !administers(&tenant, &found) {
        return Err(Error::new(
            4,
            "Only its owner and the organization's owners may see this account.",
        ));
    }
    Ok(Answer(ServiceAccount::new(&tenant.kind, found, None)))
}

/// Deletes a service account. Existing tokens expire within ten minutes.
#[utoipa::path(delete, path = "/api/{api}/v1/service_accounts/{id}", tag = "service accounts",
    params(AccountPath), responses((status = 204, description = "Deleted"), Error))]
pub(crate) async fn service_account_delete(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<AccountPath>,
) -> Result<StatusCode, Error> {
    let found = find_to_change(&app, &tenant, &path.id).await?;
    let mut tx = app.db.begin(tenant.caller.actor()).await?;
    accounts::delete(&mut tx, &found.id).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Resets the secret of a service account. The response is the only one that contains it.
#[utoipa::path(post, path = "/api/{api}/v1/service_accounts/{id}/reset_credentials",
    tag = "service accounts", params(AccountPath),
    responses((status = 200, body = ServiceAccount, description = "Service account with its new secret"), Error))]
pub(crate) async fn service_account_reset(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<AccountPath>,
) -> Result<Answer<ServiceAccount>, Error> {
    let found = find_to_change(&app, &tenant, &path.id).await?;
    tenant.caller.must_have_full_scope("reset service accounts")?;
    let secret = entropy::secret(app.db.entropy());
    let mut tx = app.db.begin(tenant.caller.actor()).await?;
    accounts::set_secret(&mut tx, &found.id, &entropy::hash(&secret)).await?;
    tx.commit().await?;
    Ok(Answer(ServiceAccount::new(&tenant.kind, found, Some(secret))))
}

fn must_be_offered(tenant: &Tenant) -> Result<(), Error> {
    tenant.must_offer(tenant.kind.offers.service_accounts, "service accounts")
}

async fn find(app: &App, tenant: &Tenant, id: &str) -> Result<accounts::ServiceAccount, Error> {
    must_be_offered(tenant)?;
    if !is_uuid(id) {
        return Err(Error::new(40, "The id of a service account must be a UUID."));
    }
    let own: Scope = tenant.caller.own();
    match accounts::get(&mut app.db.read().await?, own, id).await {
        Err(store::Error::NotFound { .. }) => Err(Error::new(113, "")),
        other => Ok(other?),
    }
}

async fn find_to_change(
    app: &App,
    tenant: &Tenant,
    id: &str,
) -> Result<accounts::ServiceAccount, Error> {
    let found = find(app, tenant, id).await?;
    if administers(tenant, &found) {
        return Ok(found);
    }
    Err(Error::new(4, "Only its owner and the organization's owners may change this account."))
}

/// Whether the caller may see and change this account: its owner and the organization's owners may.
fn administers(tenant: &Tenant, account: &accounts::ServiceAccount) -> bool {
    let caller = &tenant.caller;
    account.owner == caller.user.username
        || caller.allows(Action::new(SubjectKind::ServiceAccount, Verb::Administer))
}

fn check_name(name: &str) -> Result<(), Error> {
    let length = name.chars().count();
    if length > NAME_MAX {
        return Err(Error::new(34, format!("name: at most {NAME_MAX} characters are allowed.")));
    }
    if length == 0 {
        return Err(Error::new(33, "name: must have at least 1 character."));
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let starts_with_letter = name.starts_with(|c: char| c.is_ascii_lowercase());
    if starts_with_letter && name.chars().all(allowed) && !name.ends_with('-') {
        return Ok(());
    }
    Err(Error::new(
        38,
        "name: must contain only a-z, 0-9 and -, begin with a letter, and not end with -.",
    ))
}

fn check_description(text: &str) -> Result<(), Error> {
    let allowed =
        |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || ".,-".contains(c);
    if !text.chars().all(allowed) {
        return Err(Error::new(
            39,
            "description: only letters, digits, spaces and . , - are allowed.",
        ));
    }
    if text.chars().count() > DESCRIPTION_MAX {
        let reason = format!("description: at most {DESCRIPTION_MAX} characters are allowed.");
        return Err(Error::new(34, reason));
    }
    Ok(())
}

fn check_client_id(text: &str) -> Result<(), Error> {
    if text.chars().count() > CLIENT_ID_MAX {
        return Err(Error::new(
            34,
            format!("client_id: at most {CLIENT_ID_MAX} characters are allowed."),
        ));
    }
    if text.strip_prefix(PREFIX).is_some_and(is_uuid) {
        return Ok(());
    }
    Err(Error::new(40, format!("client_id: must be {PREFIX} followed by a UUID.")))
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let is_hex = |group: &&str| group.chars().all(|c| c.is_ascii_hexdigit());
    groups.iter().all(is_hex) && groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
}
