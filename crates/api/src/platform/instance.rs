//! Instances of managed services.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use engine::instance::asking;
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
use crate::idempotency::Once;
use crate::instance::{Change, Refused, Wanted, change, may_change};
use crate::page::{List, Query, Slice, id, id_field};
use crate::{App, Problem};

/// What is asked for, if the kind offers it.
fn checked(new: NewInstance, kind: &Kind) -> Result<Wanted, Problem> {
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
            return Err(Problem::field(field, "must not be empty; leave it out instead"));
        }
    }
    Ok(Wanted {
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

/// Which instances are wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct InstanceFilter {
    /// Only those of this kind.
    kind: Option<String>,
    /// Only those of this name.
    name: Option<String>,
    /// Only those of this owner.
    owner: Option<String>,
    /// Only those on this cluster.
    cluster_id: Option<String>,
    /// Only those in this status.
    status: Option<String>,
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Store(error) => error.into(),
            asked => {
                let (field, reason) = (asked.field().unwrap_or_default(), asked.to_string());
                match asked {
                    Refused::Denied(Denied::NoQuota { .. } | Denied::NoTrials)
                    | Refused::UnknownCluster(_) => Problem::forbidden_field(field, &reason),
                    _ => Problem::field(field, reason),
                }
            }
        }
    }
}

fn not_offered(field: &str, kind: &Kind) -> Problem {
    Problem::field(field, format!("the kind {} does not offer it", kind.name))
}

/// The kind of that name.
fn known(app: &App, name: &str) -> Result<std::sync::Arc<Kind>, Problem> {
    let catalog = app.rules.catalog();
    catalog.kind(name).cloned().ok_or_else(|| {
        let names: Vec<&str> = catalog.kinds().map(|kind| kind.name.as_str()).collect();
        Problem::field("kind", format!("must be one of {}", names.join(", ")))
    })
}

/// Fails if the caller may not have instances at all.
async fn must_not_be_denied(app: &App, caller: &Caller) -> Result<(), Problem> {
    let mut read = app.db.read().await?;
    if app.rules.is_denied(&mut read, &caller.user.username).await? {
        return Err(Problem::forbidden(
            "You may not have instances; ask the platform administrator.",
        ));
    }
    Ok(())
}

/// Asks for an instance. Follow its status: it is `ready` when it can be used.
#[utoipa::path(post, path = "/api/v1/instances", tag = "instances", request_body = NewInstance,
    params(("Idempotency-Key" = Option<String>, Header, description = "Acts once, however often it is sent")),
    responses((status = 201, body = Instance, description = "Asked for"), Problem))]
pub(crate) async fn instance_create(
    Call(app, caller): Call,
    once: Once,
    Json(wanted): Json<NewInstance>,
) -> Result<Response, Problem> {
    let kind = known(&app, &wanted.kind)?;
    let wanted = checked(wanted, &kind)?;
    must_not_be_denied(&app, &caller).await?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = once.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let made = asking::create(&mut tx, &app.rules, &caller.asker(), &kind, &wanted).await?;
    let generation = made.generation;
    once.finish(&app, tx, &caller, &Instance::from(made), etag(generation)).await
}

/// Lists the organization's instances.
#[utoipa::path(get, path = "/api/v1/instances", tag = "instances", params(InstanceFilter, Slice),
    responses((status = 200, body = List<Instance>, description = "A part of the list"), Problem))]
pub(crate) async fn instance_list(
    Call(app, caller): Call,
    Query(filter): Query<InstanceFilter>,
    Query(slice): Query<Slice>,
) -> Result<Answer<List<Instance>>, Problem> {
    let page = slice.page()?;
    let filter = Filter {
        id: None,
        kind: filter
            .kind
            .map(|name| known(&app, &name).map(|kind| kind.name.clone()))
            .transpose()?,
        name: filter.name,
        owner: filter.owner,
        cluster: filter.cluster_id.map(|text| id_field("cluster_id", &text)).transpose()?,
        status: filter.status.as_deref().map(str::parse).transpose()?,
    };
    let mut read = app.db.read().await?;
    let found = store::instance::list(&mut read, caller.scope(), &filter, &page).await?;
    let items = found.into_iter().map(Instance::from).collect();
    Ok(Answer(List::new(items, &page, |one| one.id.to_string())))
}

/// One instance.
#[utoipa::path(get, path = "/api/v1/instances/{id}", tag = "instances",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Instance, description = "The instance"), Problem))]
pub(crate) async fn instance_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("instance", &text)?;
    let found = store::instance::get(&mut app.db.read().await?, caller.scope(), id).await?;
    Ok((etag(found.generation), Answer(Instance::from(found))))
}

/// Changes an instance's owner, or whether its clients must sign in again.
#[utoipa::path(patch, path = "/api/v1/instances/{id}", tag = "instances",
    params(("id" = String, Path, description = "Its id"),
        ("If-Match" = Option<String>, Header, description = "Change only this version")),
    request_body = InstanceChange,
    responses((status = 200, body = Instance, description = "Changed"), Problem))]
pub(crate) async fn instance_update(
    Call(app, caller): Call,
    Path(text): Path<String>,
    seen: IfMatch,
    Json(wanted): Json<InstanceChange>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("instance", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let mut found = store::instance::take(&mut tx, caller.scope(), id).await?;
    must_be_allowed(&caller, &found)?;
    seen.check(found.generation)?;
    let kind = known(&app, &found.kind)?;
    if wanted.reauthentication.is_some() && !kind.offers.reauthentication {
        return Err(not_offered("reauthentication", &kind));
    }
    let wanted = Change { owner: wanted.owner, reauthentication: wanted.reauthentication };
    change(&app, &mut tx, &mut found, &wanted).await?;
    tx.commit().await?;
    Ok((etag(found.generation), Answer(Instance::from(found))))
}

/// Deletes an instance. Follow its status: when it is gone, it is not found any more.
#[utoipa::path(delete, path = "/api/v1/instances/{id}", tag = "instances",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Instance, description = "On its way out"), Problem))]
pub(crate) async fn instance_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Instance>), Problem> {
    let id = id("instance", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = store::instance::take(&mut tx, caller.scope(), id).await?;
    must_be_allowed(&caller, &found)?;
    let by = caller.deletes_of(found.organization_id);
    let leaving = store::instance::request_delete(&mut tx, caller.scope(), id, by).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(leaving.into())))
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
