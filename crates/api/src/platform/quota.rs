//! What callers may have, and what is granted to whom.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use engine::rules::Entitled;
use model::kind::Kind;
use model::{OrganizationId, Time, name};
use serde::Deserialize;
use store::quota::NewQuota;
use store::{Read, Scope, account};
use utoipa::IntoParams;
use wire::quota::{Allowance, Allowed, Grant, Grants, NewGrant};

use crate::body::Json;
use crate::caller::{Call, Caller};
use crate::idempotency::Once;
use crate::instance::{organization_holder, trial_holder};
use crate::page::Query;
use crate::{App, Problem};

/// What the caller may have and has, before it asks for anything.
#[utoipa::path(get, path = "/api/v1/quota", tag = "quota",
    responses((status = 200, body = Allowance, description = "For every kind"), Problem))]
pub(crate) async fn quota_get(Call(app, caller): Call) -> Result<Answer<Allowance>, Problem> {
    let mut read = app.db.read().await?;
    let (organization, username) = (caller.user.organization_id, &caller.user.username);
    let foreign = store::foreign::organization_name(&mut read, organization).await?;
    let entitled =
        app.rules.entitled(&mut read, organization, foreign.as_deref(), username).await?;
    let mut items = Vec::new();
    for kind in app.rules.catalog().kinds() {
        for mut allowed in allowed(&caller, kind, &entitled, app.db.now()) {
            allowed.used = used(&mut read, &allowed).await?;
            items.push(allowed);
        }
    }
    Ok(Answer(Allowance { is_limited: entitled.is_limited, items }))
}

async fn used(read: &mut Read, of: &Allowed) -> Result<i64, Problem> {
    let account = if of.holder.starts_with("trial/") {
        of.instance_type.clone()
    } else {
        format!("{}.{}", of.instance_type, of.billing_model)
    };
    Ok(account::used(read, &of.kind, &of.holder, &account).await?)
}

/// What may be had of a kind; what is used of it is not looked up yet.
fn allowed(caller: &Caller, kind: &Kind, entitled: &Entitled, now: Time) -> Vec<Allowed> {
    if !entitled.is_limited {
        return everything(caller, kind);
    }
    let holder = entitled.holder.clone().unwrap_or_default();
    let grants = entitled.grants.iter().flatten().filter(|grant| grant.concerns(kind));
    let granted: Vec<Allowed> = grants
        .filter(|grant| !grant.is_expired(now))
        .map(|grant| Allowed {
            limit: grant.limit.map(i64::from),
            expires_at: grant.expires_at,
            ..one(kind, &grant.instance_type, &grant.billing_model, &holder)
        })
        .collect();
    let has_any = entitled.grants.iter().flatten().any(|grant| grant.concerns(kind));
    if has_any { granted } else { trial(caller, kind, Some(i64::from(kind.max_trials))) }
}

fn everything(caller: &Caller, kind: &Kind) -> Vec<Allowed> {
    let proper = kind.types.iter().filter(|one| !kind.is_trial(&one.id));
    let holder = organization_holder(&caller.user);
    let mut all: Vec<Allowed> = proper
        .flat_map(|of| of.billing_models.iter().map(|model| one(kind, &of.id, &model.id, &holder)))
        .collect();
    all.extend(trial(caller, kind, None));
    all
}

fn trial(caller: &Caller, kind: &Kind, limit: Option<i64>) -> Vec<Allowed> {
    let Some(of) = kind.trial_type() else { return Vec::new() };
    let models = of.billing_models.iter();
    let holder = trial_holder(&caller.user);
    models.map(|model| Allowed { limit, ..one(kind, &of.id, &model.id, &holder) }).collect()
}

fn one(kind: &Kind, instance_type: &str, billing_model: &str, holder: &str) -> Allowed {
    Allowed {
        kind: kind.name.clone(),
        instance_type: instance_type.to_owned(),
        billing_model: billing_model.to_owned(),
        holder: holder.to_owned(),
        limit: None,
        used: 0,
        expires_at: None,
    }
}

/// Whose grants are wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct GrantFilter {
    /// Only those of this holder: `organization/<id>` or `user/<name>`.
    holder: Option<String>,
}

/// Lists what is granted to whom. For the platform administrator.
#[utoipa::path(get, path = "/api/v1/admin/quota", tag = "admin", params(GrantFilter),
    responses((status = 200, body = Grants, description = "All of it"), Problem))]
pub(crate) async fn admin_quota_list(
    Call(app, caller): Call,
    Query(filter): Query<GrantFilter>,
) -> Result<Answer<Grants>, Problem> {
    caller.must_be_admin("see grants")?;
    let mut read = app.db.read().await?;
    let found = store::quota::list(&mut read, filter.holder.as_deref()).await?;
    Ok(Answer(Grants { items: found.into_iter().map(Grant::from).collect() }))
}

/// Grants quota. The first grant turns limits on for everybody. For the platform administrator.
#[utoipa::path(post, path = "/api/v1/admin/quota", tag = "admin", request_body = NewGrant,
    params(("Idempotency-Key" = Option<String>, Header, description = "Acts once, however often it is sent")),
    responses((status = 201, body = Grant, description = "Granted"), Problem))]
pub(crate) async fn admin_quota_create(
    Call(app, caller): Call,
    once: Once,
    Json(wanted): Json<NewGrant>,
) -> Result<Response, Problem> {
    caller.must_be_admin("grant quota")?;
    let new = checked(&app, wanted).await?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = once.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let made = store::quota::create(&mut tx, &new).await?;
    once.finish(&app, tx, &caller, &Grant::from(made), ()).await
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

/// Fails unless a kind has this type, and the type this billing model.
fn must_exist(
    app: &App,
    kind: Option<&str>,
    instance_type: &str,
    billing_model: &str,
) -> Result<(), Problem> {
    let catalog = app.rules.catalog();
    let mut kinds =
        catalog.kinds().filter(|one| kind.is_none_or(|name| one.name == name)).peekable();
    if kinds.peek().is_none() {
        return Err(Problem::field(
            "kind",
            "is not in the catalog; GET /api/v1/kinds lists what is",
        ));
    }
    let types: Vec<_> = kinds.filter_map(|one| one.type_of(instance_type)).collect();
    if types.is_empty() {
        return Err(Problem::field("instance_type", "is not in the catalog"));
    }
    if types.iter().any(|one| one.billing_model(billing_model).is_some()) {
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
                Problem::field("organization_id", "is no id; ids have 20 characters")
            })?;
            store::organization::get(&mut app.db.read().await?, Scope::All, id).await?;
            Ok(format!("organization/{id}"))
        }
        (None, Some(text)) => Ok(format!("user/{}", name::line("username", &text, 255)?)),
        _ => Err(Problem::field("organization_id", "give either this or username")),
    }
}

/// Takes a grant back. What it was for rests for its grace, and ends then. For the platform administrator.
#[utoipa::path(delete, path = "/api/v1/admin/quota/{id}", tag = "admin",
    params(("id" = String, Path, description = "The grant's id")),
    responses((status = 204, description = "Taken back"), Problem))]
pub(crate) async fn admin_quota_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.must_be_admin("take grants back")?;
    let id: model::Xid = crate::page::id("grant", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    store::quota::delete(&mut tx, &id.to_string()).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
