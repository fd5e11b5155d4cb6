//! Quotas of callers, and quota grants.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use engine::rules::UserEntitlement;
use model::kind::Kind;
use model::{OrganizationId, Time, name};
use serde::Deserialize;
use store::quota::NewQuota;
use store::{Read, Scope, quota_usage};
use utoipa::IntoParams;
use wire::quota::{Grant, Grants, NewGrant, QuotaUsage, Quotas};

use crate::body::Json;
use crate::caller::{Call, Caller};
use crate::idempotency::IdempotencyKey;
use crate::instance::{organization_holder, trial_holder};
use crate::page::Query;
use crate::platform::organization_quota::quotas;
use crate::{App, Problem};

/// Returns the quotas of the caller and of the caller's organization, and their usage.
#[utoipa::path(get, path = "/api/v1/quota", tag = "quota",
    responses((status = 200, body = Quotas, description = "Quotas for every kind"), Problem))]
pub(crate) async fn quota_get(Call(app, caller): Call) -> Result<Answer<Quotas>, Problem> {
    let mut read = app.db.read().await?;
    let (organization, username) = (caller.user.organization_id, &caller.user.username);
    let external =
        store::external_identity::organization_external_id(&mut read, organization).await?;
    let entitled =
        app.rules.entitled(&mut read, organization, external.as_deref(), username).await?;
    let mut items = Vec::new();
    for kind in app.rules.catalog().kinds() {
        for mut allowed in allowed(&caller, kind, &entitled, app.db.now()) {
            allowed.used = used(&mut read, &allowed).await?;
            items.push(allowed);
        }
    }
    drop(read);
    let organization = quotas(&app, organization).await?;
    Ok(Answer(Quotas { is_limited: entitled.is_limited, items, organization }))
}

async fn used(read: &mut Read, allowed: &QuotaUsage) -> Result<i64, Problem> {
    let account = if allowed.holder.starts_with("trial/") {
        allowed.instance_type.clone()
    } else {
        format!("{}.{}", allowed.instance_type, allowed.billing_model)
    };
    Ok(quota_usage::used(read, &allowed.kind, &allowed.holder, &account).await?)
}

/// Returns the caller's quotas for a kind, without usage.
fn allowed(caller: &Caller, kind: &Kind, entitled: &UserEntitlement, now: Time) -> Vec<QuotaUsage> {
    if !entitled.is_limited {
        return unlimited(caller, kind);
    }
    let holder = entitled.holder.clone().unwrap_or_default();
    let grants = entitled.grants.iter().flatten().filter(|grant| grant.concerns(kind));
    let granted: Vec<QuotaUsage> = grants
        .filter(|grant| !grant.is_expired(now))
        .map(|grant| QuotaUsage {
            limit: grant.limit.map(i64::from),
            expires_at: grant.expires_at,
            ..quota_for(kind, &grant.instance_type, &grant.billing_model, &holder)
        })
        .collect();
    let has_any = entitled.grants.iter().flatten().any(|grant| grant.concerns(kind));
    if has_any { granted } else { trial(caller, kind, Some(i64::from(kind.max_trials))) }
}

fn unlimited(caller: &Caller, kind: &Kind) -> Vec<QuotaUsage> {
    let regular = kind.types.iter().filter(|instance_type| !kind.is_trial(&instance_type.id));
    let holder = organization_holder(&caller.user);
    let mut all: Vec<QuotaUsage> = regular
        .flat_map(|instance_type| {
            instance_type
                .billing_models
                .iter()
                .map(|model| quota_for(kind, &instance_type.id, &model.id, &holder))
        })
        .collect();
    all.extend(trial(caller, kind, None));
    all
}

fn trial(caller: &Caller, kind: &Kind, limit: Option<i64>) -> Vec<QuotaUsage> {
    let Some(instance_type) = kind.trial_type() else { return Vec::new() };
    let models = instance_type.billing_models.iter();
    let holder = trial_holder(&caller.user);
    models
        .map(|model| QuotaUsage { limit, ..quota_for(kind, &instance_type.id, &model.id, &holder) })
        .collect()
}

fn quota_for(kind: &Kind, instance_type: &str, billing_model: &str, holder: &str) -> QuotaUsage {
    QuotaUsage {
        kind: kind.name.clone(),
        instance_type: instance_type.to_owned(),
        billing_model: billing_model.to_owned(),
        holder: holder.to_owned(),
        limit: None,
        used: 0,
        expires_at: None,
    }
}

/// Filter for quota grants.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct GrantFilter {
    /// Filters by holder: `organization/<id>` or `user/<name>`.
    holder: Option<String>,
}

/// Lists the quota grants. For the platform administrator and auditors.
#[utoipa::path(get, path = "/api/v1/admin/quota", tag = "admin", params(GrantFilter),
    responses((status = 200, body = Grants, description = "Quota grants"), Problem))]
pub(crate) async fn admin_quota_list(
    Call(app, _): Call,
    Query(filter): Query<GrantFilter>,
) -> Result<Answer<Grants>, Problem> {
    let mut read = app.db.read().await?;
    let found = store::quota::list(&mut read, filter.holder.as_deref()).await?;
    Ok(Answer(Grants { items: found.into_iter().map(Grant::from).collect() }))
}

/// Grants quota. The first grant enables quota enforcement for all users. For the platform
/// administrator.
#[utoipa::path(post, path = "/api/v1/admin/quota", tag = "admin", request_body = NewGrant,
    params(("Idempotency-Key" = Option<String>, Header, description = "Key that makes retries safe: the request is executed at most once")),
    responses((status = 201, body = Grant, description = "Granted"), Problem))]
pub(crate) async fn admin_quota_create(
    Call(app, caller): Call,
    key: IdempotencyKey,
    Json(request): Json<NewGrant>,
) -> Result<Response, Problem> {
    let new = checked(&app, request).await?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = key.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let created = store::quota::create(&mut tx, &new).await?;
    key.finish(&app, tx, &caller, &Grant::from(created), ()).await
}

async fn checked(app: &App, new: NewGrant) -> Result<NewQuota, Problem> {
    let billing_model = new.billing_model.unwrap_or_else(|| "standard".to_owned());
    must_exist(app, new.kind.as_deref(), &new.instance_type, &billing_model)?;
    if new.limit.is_some_and(|limit| !(0..=1_000_000).contains(&limit)) {
        return Err(Problem::field("limit", "must be a whole number from 0 to 1000000"));
    }
    let bad_time = |_| Problem::field("expires_at", "must be a time such as 2030-01-31T00:00:00Z");
    Ok(NewQuota {
        holder: holder(app, new.organization_id, new.username).await?,
        kind: new.kind,
        instance_type: new.instance_type,
        billing_model,
        limit: new.limit,
        expires_at: new.expires_at.map(|text| text.parse()).transpose().map_err(bad_time)?,
    })
}

/// Fails unless a kind offers the instance type with the billing model.
fn must_exist(
    app: &App,
    kind: Option<&str>,
    instance_type: &str,
    billing_model: &str,
) -> Result<(), Problem> {
    let catalog = app.rules.catalog();
    let mut kinds = catalog
        .kinds()
        .filter(|candidate| kind.is_none_or(|name| candidate.name == name))
        .peekable();
    if kinds.peek().is_none() {
        return Err(Problem::field(
            "kind",
            "is not in the catalog; GET /api/v1/kinds lists the kinds",
        ));
    }
    let types: Vec<_> = kinds.filter_map(|kind| kind.instance_type(instance_type)).collect();
    if types.is_empty() {
        return Err(Problem::field("instance_type", "is not in the catalog"));
    }
    if types.iter().any(|kind| kind.billing_model(billing_model).is_some()) {
        return Ok(());
    }
    Err(Problem::field("billing_model", "is not in the catalog for this type"))
}

async fn holder(
    app: &App,
    organization: Option<String>,
    username: Option<String>,
) -> Result<String, Problem> {
    match (organization, username) {
        (Some(text), None) => {
            let id: OrganizationId = text.parse().map_err(|_| {
                Problem::field("organization_id", "is not an ID; IDs have 20 characters")
            })?;
            store::organization::get(&mut app.db.read().await?, Scope::All, id).await?;
            Ok(format!("organization/{id}"))
        }
        (None, Some(text)) => Ok(format!("user/{}", name::line("username", &text, 255)?)),
        _ => Err(Problem::field("organization_id", "set either organization_id or username")),
    }
}

/// Revokes a quota grant. Instances that depend on it are suspended for the grace period and then
/// deleted. For the platform administrator.
#[utoipa::path(delete, path = "/api/v1/admin/quota/{id}", tag = "admin",
    params(("id" = String, Path, description = "Grant ID")),
    responses((status = 204, description = "Revoked"), Problem))]
pub(crate) async fn admin_quota_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<StatusCode, Problem> {
    let id: model::Xid = crate::page::id("grant", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    store::quota::delete(&mut tx, &id.to_string()).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
