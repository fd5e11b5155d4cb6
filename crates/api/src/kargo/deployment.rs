//! Deployments, as the Kargo API has them: to a particular cluster.

use std::collections::BTreeMap;
use std::fmt;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use model::deployment::{self, NewDeployment, Spec, Status};
use model::reason::Coded as _;
use model::{ClusterId, DeploymentId, Resources, Time};
use serde::{Deserialize, Serialize};
use store::Page;
use store::deployment::Filter;
use utoipa::{IntoParams, ToSchema};
use wire::amount::Amount;

use super::cluster::find;
use crate::Problem;
use crate::body::Json;
use crate::caller::Call;
use crate::page::{Numbered, NumberedList, Query, id};
use crate::platform::deployment::must_be_users_own;

/// How many deployments are deleted in one transaction.
const BATCH: i64 = 100;

/// A deployment to create.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoNewDeployment)]
pub(crate) struct Wanted {
    /// The cluster's id; a number is accepted too.
    #[schema(value_type = String)]
    cluster_id: TextOrNumber,
    /// What each replica needs.
    #[schema(value_type = BTreeMap<String, Amount>)]
    resource: Resources,
    /// The image; without one the deployment only holds its resources.
    image: Option<String>,
    /// The same as `image`.
    docker_path: Option<String>,
    /// Made from the image when it is left out.
    name: Option<String>,
    /// Higher goes first, and may make lower ones yield.
    priority: Option<i64>,
    /// Environment variables.
    env: Option<BTreeMap<String, String>>,
    /// What to run instead of the image's own command.
    command: Option<Vec<String>>,
    /// The ports that it listens on.
    ports: Option<Vec<u16>>,
    /// How many run, from 1 to 1000; 1 when it is left out.
    replicas: Option<u32>,
}

/// An id, which older clients send as a number.
#[derive(Deserialize)]
#[serde(untagged, expecting = "an id, as text or as a number")]
enum TextOrNumber {
    Text(String),
    Number(u64),
}

impl fmt::Display for TextOrNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// A deployment.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoDeployment)]
pub(crate) struct Shown {
    /// Its id.
    #[schema(value_type = String)]
    id: DeploymentId,
    /// Where it is, or must go.
    #[schema(value_type = Option<String>)]
    cluster_id: Option<ClusterId>,
    /// Its name.
    name: String,
    /// What it runs; without one it only holds its capacity.
    image: Option<String>,
    /// The same as `image`.
    docker_path: Option<String>,
    /// What each replica needs.
    #[schema(value_type = BTreeMap<String, f64>)]
    resource: Resources,
    /// How many run.
    replicas: u32,
    /// Higher goes first, and may make lower ones yield.
    priority: i64,
    /// `queued`, `scheduled`, `starting`, `running`, `preempted`, `failed`, `completed`, `deleting`.
    #[schema(value_type = String)]
    status: Status,
    /// Why it has that status; empty if there is nothing to add.
    status_reason: String,
    /// The code of that reason, such as `InsufficientCapacity`.
    reason_code: String,
    /// Where it can be reached.
    endpoints: Vec<String>,
    /// Who made it: `user:<id>` or `server`.
    created_by: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl From<deployment::Deployment> for Shown {
    fn from(d: deployment::Deployment) -> Self {
        Self {
            id: d.id,
            cluster_id: d.cluster_id(),
            name: d.name,
            image: d.spec.image.clone(),
            docker_path: d.spec.image,
            resource: d.spec.resources,
            replicas: d.spec.replicas,
            priority: d.priority,
            status: d.status,
            status_reason: d.reason.to_string(),
            reason_code: d.reason.code().to_owned(),
            endpoints: d.endpoints,
            created_by: d.created_by,
            created_at: d.created_at,
        }
    }
}

/// Which deployments are wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wants {
    /// Only those of this cluster.
    cluster_id: Option<String>,
    /// Only this one.
    id: Option<String>,
}

/// Which cluster's deployments shall go.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfCluster {
    /// The cluster's id.
    #[serde(rename = "clusterId", alias = "cluster_id")]
    cluster: Option<String>,
}

/// What was taken down.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoDeleted)]
pub(crate) struct Deleted {
    /// How many deployments.
    deleted: usize,
    /// Which deployments.
    #[schema(value_type = Vec<String>)]
    ids: Vec<DeploymentId>,
}

/// Lists the organization's deployments.
#[utoipa::path(get, path = "/deployment/", tag = "deployment", params(Wants, Numbered),
    responses((status = 200, body = NumberedList<Shown>, description = "One page"), Problem))]
pub(crate) async fn deployment_list(
    Call(app, caller): Call,
    Query(wants): Query<Wants>,
    Query(numbered): Query<Numbered>,
) -> Result<Answer<NumberedList<Shown>>, Problem> {
    let page = numbered.page()?;
    let cluster = wants.cluster_id.map(|text| text.trim().parse()).transpose();
    let id = wants.id.map(|text| text.trim().parse()).transpose();
    let (Ok(cluster), Ok(id)) = (cluster, id) else {
        // What is no id names nothing.
        return Ok(Answer(NumberedList::new(Vec::new(), &page, 0)));
    };
    let filter = Filter { id, cluster, ..Filter::default() };
    let mut read = app.db.read().await?;
    let total = store::deployment::count(&mut read, caller.own(), &filter).await?;
    let found = store::deployment::list(&mut read, caller.own(), &filter, &page).await?;
    let items = found.into_iter().map(Shown::from).collect();
    Ok(Answer(NumberedList::new(items, &page, total)))
}

/// Creates a deployment for a cluster. It runs as soon as there is room.
#[utoipa::path(put, path = "/deployment/", tag = "deployment", request_body = Wanted,
    responses((status = 201, body = Shown, description = "Created"), Problem))]
pub(crate) async fn deployment_create(
    Call(app, caller): Call,
    Json(wanted): Json<Wanted>,
) -> Result<(StatusCode, Answer<Shown>), Problem> {
    let on = wanted.cluster_id.to_string();
    let new = wanted.checked()?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let cluster = find(&mut tx, &caller, &on).await?;
    let new = NewDeployment { pinned_to: Some(cluster.id), ..new };
    let (owner, limits) = (caller.user.organization_id, app.settings.limits);
    let made = store::deployment::create(&mut tx, owner, &new, limits).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Answer(made.into())))
}

impl Wanted {
    fn checked(self) -> Result<NewDeployment, Problem> {
        let image = match (self.image, self.docker_path) {
            (Some(image), Some(path)) if image != path => {
                return Err(Problem::field(
                    "docker_path",
                    "is the same thing as image; give one of them",
                ));
            }
            (image, path) => image.or(path),
        };
        let spec = Spec {
            image,
            resources: self.resource,
            replicas: self.replicas.unwrap_or(1),
            env: self.env.unwrap_or_default(),
            command: self.command.unwrap_or_default(),
            ports: self.ports.unwrap_or_default(),
            ..Spec::default()
        };
        let new = NewDeployment {
            name: self.name.unwrap_or_default(),
            pinned_to: None,
            spec,
            priority: self.priority.unwrap_or(0),
            labels: BTreeMap::new(),
        };
        Ok(new.check("resource")?)
    }
}

/// Takes a deployment down.
#[utoipa::path(delete, path = "/deployment/{id}/", tag = "deployment",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Shown, description = "On its way out"), Problem))]
pub(crate) async fn deployment_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Shown>), Problem> {
    let id = id("deployment", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    must_be_users_own(&store::deployment::get(&mut tx, caller.own(), id).await?)?;
    let leaving = store::deployment::request_delete(&mut tx, caller.own(), id).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(leaving.into())))
}

/// Takes all of the organization's deployments of a cluster down.
#[utoipa::path(delete, path = "/deployment/", tag = "deployment", params(OfCluster),
    responses((status = 202, body = Deleted, description = "On their way out"), Problem))]
pub(crate) async fn deployment_delete_all(
    Call(app, caller): Call,
    Query(of): Query<OfCluster>,
) -> Result<(StatusCode, Answer<Deleted>), Problem> {
    let text = of.cluster.ok_or_else(|| {
        Problem::field("clusterId", "say whose deployments shall go: ?clusterId=<the cluster's id>")
    })?;
    let cluster = find(&mut app.db.read().await?, &caller, &text).await?.id;
    let filter = Filter { cluster: Some(cluster), ..Filter::default() };
    let (mut ids, mut page) = (Vec::new(), Page::first(BATCH));
    loop {
        let mut tx = app.db.begin(caller.actor()).await?;
        let batch = store::deployment::list(&mut tx, caller.own(), &filter, &page).await?;
        let Some(last) = batch.last() else { break };
        page.after = Some(last.id.to_string());
        let batch: Vec<_> = batch.iter().map(|deployment| deployment.id).collect();
        ids.extend(store::deployment::request_delete_all(&mut tx, caller.own(), &batch).await?);
        tx.commit().await?;
    }
    Ok((StatusCode::ACCEPTED, Answer(Deleted { deleted: ids.len(), ids })))
}
