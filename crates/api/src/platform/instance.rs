//! Instances of managed services.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use engine::instance::commands;
use model::instance;
use model::kind::Kind;
use model::quota::Denied;
use serde::Deserialize;
use store::instance::Filter;
use utoipa::IntoParams;
use wire::instance::{Instance, InstanceChange, NewInstance};

use crate::body::Json;
use crate::caller::{Call, Caller};
use crate::etag::{IfMatch, etag};
use crate::idempotency::IdempotencyKey;
use crate::instance::{Change, CreateError, NewInstanceRequest, change, may_change};
use crate::page::{List, PageQuery, Query, id, id_field};
use crate::{App, Problem};

/// Validates a request against what the kind offers.
fn checked(new: NewInstance, kind: &Kind) -> Result<NewInstanceRequest, Problem> {
    let offers = &kind.offers;
    for (field, is_given, is_offered) in [
        ("plan", new.plan.is_some(), offers.plans),
        ("billing_model", new.billing_model.is_some(), offers.billing),
        ("marketplace", new.marketplace.is_some(), offers.billing),
        ("billing_cloud_account_id", new.billing_cloud_account_id.is_some(), offers.billing),
        ("cluster_id", new.cluster_id.is_some(), offers.enterprise_clusters),
        ("reauthentication", new.reauthentication.is_some(), offers.reauthentication),
    ] {
        if is_given && !is_offered {
            return Err(not_offered(field, kind));
        }
    }
    for (field, text) in [
        ("plan", &new.plan),
        ("cloud_provider", &new.cloud_provider),
        ("region", &new.region),
        ("billing_model", &new.billing_model),
        ("marketplace", &new.marketplace),
        ("billing_cloud_account_id", &new.billing_cloud_account_id),
        ("cluster_id", &new.cluster_id),
    ] {
        if text.as_ref().is_some_and(String::is_empty) {
            return Err(Problem::field(field, "must not be empty; omit it instead"));
        }
    }
    Ok(NewInstanceRequest {
        name: new.name,
        plan: new.plan,
        cloud_provider: new.cloud_provider,
        region: new.region,
        billing_model: new.billing_model,
        marketplace: new.marketplace,
        billing_account: new.billing_cloud_account_id,
        cluster_id: new.cluster_id,
        reauthentication: new.reauthentication,
        multi_az: None,
    })
}

/// Filter for instances.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct InstanceFilter {
    /// Filters by kind.
    kind: Option<String>,
    /// Filters by name.
    name: Option<String>,
    /// Filters by owner.
    owner: Option<String>,
    /// Filters by cluster.
    cluster_id: Option<String>,
    /// Filters by status.
    status: Option<String>,
}

impl From<CreateError> for Problem {
    fn from(refused: CreateError) -> Self {
        match refused {
            CreateError::Store(error) => error.into(),
            refused => {
                let (field, reason) = (refused.field().unwrap_or_default(), refused.to_string());
                match refused {
                    CreateError::Denied(Denied::NoQuota { .. } | Denied::NoTrials)
                    | CreateError::UnknownCluster(_) => Problem::forbidden_field(field, &reason),
                    _ => Problem::field(field, reason),
                }
            }
        }
    }
}

fn not_offered(field: &str, kind: &Kind) -> Problem {
    Problem::field(field, format!("is not supported by kind {}", kind.name))
}

/// Returns the kind with this name.
fn kind_by_name(app: &App, name: &str) -> Result<std::sync::Arc<Kind>, Problem> {
    let catalog = app.rules.catalog();
    catalog.kind(name).cloned().ok_or_else(|| {
        let names: Vec<&str> = catalog.kinds().map(|kind| kind.name.as_str()).collect();
        Problem::field("kind", format!("must be one of {}", names.join(", ")))
    })
}

/// Fails if the caller may not own instances.
async fn must_not_be_denied(app: &App, caller: &Caller) -> Result<(), Problem> {
    let mut read = app.db.read().await?;
    if app.rules.is_denied(&mut read, &caller.user.username).await? {
        return Err(Problem::forbidden(
            "You may not own instances; contact the platform administrator.",
        ));
    }
    Ok(())
}

/// Creates an instance.
///
/// Creation is asynchronous: follow the status until it is `ready`.
#[utoipa::path(post, path = "/api/v1/instances", tag = "instances", request_body = NewInstance,
    params(("Idempotency-Key" = Option<String>, Header, description = "Key that makes retries safe: the request is executed at most once")),
    responses((status = 201, body = Instance, description = "Created"), Problem))]
pub(crate) async fn instance_create(
    Call(app, caller): Call,
    key: IdempotencyKey,
    Json(request): Json<NewInstance>,
) -> Result<Response, Problem> {
    let kind = kind_by_name(&app, &request.kind)?;
    let request = checked(request, &kind)?;
    must_not_be_denied(&app, &caller).await?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = key.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let created =
        commands::create(&mut tx, &app.rules, &caller.requester(), &kind, &request).await?;
    let generation = created.generation;
    key.finish(&app, tx, &caller, &Instance::from(created), etag(generation)).await
}

/// Lists the organization's instances.
#[utoipa::path(get, path = "/api/v1/instances", tag = "instances", params(InstanceFilter, PageQuery),
    responses((status = 200, body = List<Instance>, description = "A page of the list"), Problem))]
pub(crate) async fn instance_list(
    Call(app, caller): Call,
    Query(filter): Query<InstanceFilter>,
    Query(paging): Query<PageQuery>,
) -> Result<Answer<List<Instance>>, Problem> {
    let page = paging.page()?;
    let filter = Filter {
        id: None,
        kind: filter
            .kind
            .map(|name| kind_by_name(&app, &name).map(|kind| kind.name.clone()))
            .transpose()?,
        name: filter.name,
        owner: filter.owner,
        cluster: filter.cluster_id.map(|text| id_field("cluster_id", &text)).transpose()?,
        status: filter.status.as_deref().map(str::parse).transpose()?,
    };
    let mut read = app.db.read().await?;
    let found = store::instance::list(&mut read, caller.scope(), &filter, &page).await?;
    let items = found.into_iter().map(Instance::from).collect();
    Ok(Answer(List::new(items, &page, |instance| instance.id.to_string())))
}

/// Returns an instance.
#[utoipa::path(get, path = "/api/v1/instances/{id}", tag = "instances",
    params(("id" = String, Path, description = "Instance ID")),
    responses((status = 200, body = Instance, description = "The instance"), Problem))]
pub(crate) async fn instance_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("instance", &text)?;
    let found = store::instance::get(&mut app.db.read().await?, caller.scope(), id).await?;
    Ok((etag(found.generation), Answer(Instance::from(found))))
}

/// Updates an instance's owner or reauthentication setting.
#[utoipa::path(patch, path = "/api/v1/instances/{id}", tag = "instances",
    params(("id" = String, Path, description = "Instance ID"),
        ("If-Match" = Option<String>, Header, description = "ETag; the update fails if it does not match")),
    request_body = InstanceChange,
    responses((status = 200, body = Instance, description = "Updated"), Problem))]
pub(crate) async fn instance_update(
    Call(app, caller): Call,
    Path(text): Path<String>,
    if_match: IfMatch,
    Json(request): Json<InstanceChange>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("instance", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let mut found = store::instance::lock(&mut tx, caller.scope(), id).await?;
    must_be_allowed(&caller, &found)?;
    if_match.check(found.generation)?;
    let kind = kind_by_name(&app, &found.kind)?;
    if request.reauthentication.is_some() && !kind.offers.reauthentication {
        return Err(not_offered("reauthentication", &kind));
    }
    let request = Change { owner: request.owner, reauthentication: request.reauthentication };
    change(&app, &mut tx, &mut found, &request).await?;
    tx.commit().await?;
    Ok((etag(found.generation), Answer(Instance::from(found))))
}

/// Deletes an instance.
///
/// Deletion is asynchronous: the instance is not found once it is complete.
#[utoipa::path(delete, path = "/api/v1/instances/{id}", tag = "instances",
    params(("id" = String, Path, description = "Instance ID")),
    responses((status = 202, body = Instance, description = "Deletion accepted"), Problem))]
pub(crate) async fn instance_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Instance>), Problem> {
    let id = id("instance", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = store::instance::lock(&mut tx, caller.scope(), id).await?;
    must_be_allowed(&caller, &found)?;
    let by = caller.deletion_by(found.organization_id);
    let deleting = store::instance::request_delete(&mut tx, caller.scope(), id, by).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(deleting.into())))
}

fn must_be_allowed(caller: &Caller, instance: &instance::Instance) -> Result<(), Problem> {
    if may_change(caller, instance) {
        return Ok(());
    }
    Err(Problem::forbidden(format!(
        "Only {} and the organization's owners may do this.",
        instance.owner
    )))
}
