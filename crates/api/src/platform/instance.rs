//! Instances of managed services.

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::instance::{self, Status};
use model::kind::Kind;
use model::quota::Denied;
use model::{ClusterId, InstanceId, OrganizationId, Time};
use serde::{Deserialize, Serialize};
use store::instance::Filter;
use utoipa::{IntoParams, ToSchema};

use crate::body::Json;
use crate::caller::Caller;
use crate::etag::{IfMatch, etag};
use crate::idempotency::Once;
use crate::instance::{Change, Refused, change, create, may_change};
use crate::page::{List, Query, Slice, id, id_field};
use crate::{App, Problem};

/// An instance.
#[derive(Serialize, ToSchema)]
#[schema(as = ManagedInstance)]
pub(crate) struct Instance {
    /// Its id.
    #[schema(value_type = String)]
    id: InstanceId,
    /// The kind of service.
    kind: String,
    /// The organization that it belongs to.
    #[schema(value_type = String)]
    organization_id: OrganizationId,
    /// Who has it, by user name.
    owner: String,
    /// Its name, unique among its kind in the organization.
    name: String,
    /// The cloud provider.
    cloud_provider: String,
    /// The region there.
    region: String,
    /// Does it span zones?
    multi_az: bool,
    /// Its type and size: `standard.x1`.
    plan: String,
    /// How it is paid for.
    billing_model: String,
    /// Must its clients sign in again from time to time?
    reauthentication: bool,
    /// Where it is on its way: `accepted`, `preparing`, `provisioning`, `ready`, `failed`, `deprovision`,
    /// `deleting`, `suspending`, `suspended`, `resuming`.
    #[schema(value_type = String)]
    status: Status,
    /// Why it is there.
    status_reason: String,
    /// The cluster that it is on.
    #[schema(value_type = Option<String>)]
    cluster_id: Option<ClusterId>,
    /// Its name in the domain name system.
    host: Option<String>,
    /// Where it can be reached.
    endpoints: Vec<String>,
    /// The version that runs.
    version: Option<String>,
    /// When it ends, if it does.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
    /// Counts the changes of what users set; also its ETag.
    generation: i64,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

impl From<instance::Instance> for Instance {
    fn from(i: instance::Instance) -> Self {
        Self {
            id: i.id,
            kind: i.kind,
            organization_id: i.organization_id,
            owner: i.owner,
            name: i.name,
            cloud_provider: i.cloud_provider,
            region: i.region,
            multi_az: i.multi_az,
            plan: format!("{}.{}", i.instance_type, i.size),
            billing_model: i.detail.billing.model,
            reauthentication: i.reauthentication,
            status: i.status,
            status_reason: i.status_reason,
            cluster_id: i.cluster_id,
            host: i.host,
            endpoints: i.detail.endpoints,
            version: Some(i.detail.actual.service).filter(|text| !text.is_empty()),
            expires_at: i.expires_at,
            generation: i.generation,
            created_at: i.created_at,
            updated_at: i.updated_at,
        }
    }
}

/// An instance to make. What is left out is chosen.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewManagedInstance)]
pub(crate) struct Wanted {
    /// The kind of service; `GET /api/v1/kinds` lists them.
    kind: String,
    /// Its name: a-z, 0-9 and -; begins with a letter, and does not end with -.
    name: String,
    /// Type and size, such as `standard.x1`; by quota when it is left out.
    plan: Option<String>,
    /// The cloud provider; the kind's default when it is left out.
    cloud_provider: Option<String>,
    /// The region; the cloud provider's default when it is left out.
    region: Option<String>,
    /// How it is paid for; by quota when it is left out.
    billing_model: Option<String>,
    /// Through which marketplace; needs `billing_cloud_account_id`.
    marketplace: Option<String>,
    /// From which account there.
    billing_cloud_account_id: Option<String>,
    /// The organization's own cluster that it shall be on.
    cluster_id: Option<String>,
    /// Must its clients sign in again from time to time? True when it is left out.
    reauthentication: Option<bool>,
}

impl Wanted {
    /// What is asked for, if the kind offers it.
    fn checked(self, kind: &Kind) -> Result<crate::instance::Wanted, Problem> {
        let offers = &kind.offers;
        for (field, is_given, is_offered) in [
            ("plan", self.plan.is_some(), offers.plans),
            ("billing_model", self.billing_model.is_some(), offers.billing),
            ("marketplace", self.marketplace.is_some(), offers.billing),
            ("billing_cloud_account_id", self.billing_cloud_account_id.is_some(), offers.billing),
            ("cluster_id", self.cluster_id.is_some(), offers.enterprise_clusters),
            ("reauthentication", self.reauthentication.is_some(), offers.reauthentication),
        ] {
            if is_given && !is_offered {
                return Err(not_offered(field, kind));
            }
        }
        for (field, text) in [
            ("plan", &self.plan),
            ("cloud_provider", &self.cloud_provider),
            ("region", &self.region),
            ("billing_model", &self.billing_model),
            ("marketplace", &self.marketplace),
            ("billing_cloud_account_id", &self.billing_cloud_account_id),
            ("cluster_id", &self.cluster_id),
        ] {
            if text.as_ref().is_some_and(String::is_empty) {
                return Err(Problem::field(field, "must not be empty; leave it out instead"));
            }
        }
        Ok(crate::instance::Wanted {
            name: self.name,
            plan: self.plan,
            cloud_provider: self.cloud_provider,
            region: self.region,
            billing_model: self.billing_model,
            marketplace: self.marketplace,
            billing_account: self.billing_cloud_account_id,
            cluster_id: self.cluster_id,
            reauthentication: self.reauthentication,
            multi_az: None,
        })
    }
}

/// What of an instance shall change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ManagedInstanceChange)]
pub(crate) struct InstanceChange {
    /// Its new owner, by user name: a member of the same organization.
    owner: Option<String>,
    /// Must its clients sign in again from time to time?
    reauthentication: Option<bool>,
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
#[utoipa::path(post, path = "/api/v1/instances", tag = "instances", request_body = Wanted,
    params(("Idempotency-Key" = Option<String>, Header, description = "Acts once, however often it is sent")),
    responses((status = 201, body = Instance, description = "Asked for"), Problem))]
pub(crate) async fn instance_create(
    State(app): State<App>,
    caller: Caller,
    once: Once,
    Json(wanted): Json<Wanted>,
) -> Result<Response, Problem> {
    let kind = known(&app, &wanted.kind)?;
    let wanted = wanted.checked(&kind)?;
    must_not_be_denied(&app, &caller).await?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = once.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let made = create(&app, &mut tx, &caller, &kind, &wanted).await?;
    let generation = made.generation;
    once.finish(&app, tx, &caller, &Instance::from(made), etag(generation)).await
}

/// Lists the organization's instances.
#[utoipa::path(get, path = "/api/v1/instances", tag = "instances", params(InstanceFilter, Slice),
    responses((status = 200, body = List<Instance>, description = "A part of the list"), Problem))]
pub(crate) async fn instance_list(
    State(app): State<App>,
    caller: Caller,
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
    State(app): State<App>,
    caller: Caller,
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
    State(app): State<App>,
    caller: Caller,
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
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Instance>), Problem> {
    let id = id("instance", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = store::instance::take(&mut tx, caller.scope(), id).await?;
    must_be_allowed(&caller, &found)?;
    let reason = format!("{} asked for its deletion.", caller.user.username);
    let leaving = store::instance::request_delete(&mut tx, caller.scope(), id, &reason).await?;
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
