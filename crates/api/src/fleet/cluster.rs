//! Enterprise clusters: clusters that organizations register under their external ID, served by a
//! fleetshard-compatible agent, for that organization only.

mod object;
mod register;

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use base::entropy;
use model::cluster::Cluster;
use model::kind::{InstanceType, Kind};
use model::quota::ENTERPRISE;
use serde::Deserialize;
use store::agent_token;
use store::cluster::hosting;
use utoipa::IntoParams;

use super::Error;
use super::body::Json;
use super::error::ApiPath;
use super::tenant::Tenant;
use super::wire::{Async, List, Origin, Params};
use crate::App;
use crate::caller::Call;
use object::{AddonParameters, EnterpriseCluster};
use register::Registration;

/// Path of a cluster.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ClusterPath {
    /// API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    _api: String,
    /// Cluster ID.
    id: String,
}

/// Instance type that runs on enterprise clusters.
fn enterprise_type(kind: &Kind) -> Option<&InstanceType> {
    kind.types.iter().find(|instance_type| instance_type.billing_model(ENTERPRISE).is_some())
}

/// Fails unless the organization may register clusters.
async fn must_be_entitled(app: &App, tenant: &Tenant) -> Result<(), Error> {
    let (kind, caller) = (&tenant.kind, &tenant.caller);
    tenant.must_offer(kind.offers.enterprise_clusters, "clusters of organizations")?;
    let mut read = app.db.read().await?;
    let (own, username) = (caller.user.organization_id, &caller.user.username);
    let external = store::external_identity::organization_external_id(&mut read, own).await?;
    let entitled = app.rules.entitled(&mut read, own, external.as_deref(), username).await?;
    let now = app.db.now();
    let is_granted = entitled.grants.iter().flatten().any(|grant| {
        grant.billing_model == ENTERPRISE && grant.concerns(kind) && !grant.is_expired(now)
    });
    if !entitled.is_limited || is_granted {
        return Ok(());
    }
    Err(Error::new(11, "The organization has no quota for the billing model enterprise."))
}

/// Returns the named cluster if it belongs to the organization.
async fn find(app: &App, tenant: &Tenant, id: &str) -> Result<Cluster, Error> {
    let found = hosting::find(&mut app.db.read().await?, id).await?;
    let own = Some(tenant.caller.user.organization_id);
    let found =
        found.filter(|cluster| cluster.organization_id == own && cluster.foreign_id.is_some());
    found.ok_or_else(|| Error::not_found("cluster", id))
}

/// Lists the organization's enterprise clusters.
#[utoipa::path(get, path = "/api/{api}/v1/clusters", tag = "clusters", params(ApiPath),
    responses((status = 200, body = List<EnterpriseCluster>, description = "Complete list"), Error))]
pub(crate) async fn enterprise_cluster_list(
    Call(app, tenant): Call<Tenant>,
) -> Result<Answer<List<EnterpriseCluster>>, Error> {
    must_be_entitled(&app, &tenant).await?;
    let own = tenant.caller.user.organization_id;
    let found = hosting::list(&mut app.db.read().await?, own).await?;
    let items = found.iter().map(|cluster| EnterpriseCluster::new(&tenant.kind, cluster)).collect();
    Ok(Answer(List::all("ClusterList", items)))
}

/// Registers an enterprise cluster.
///
/// The response contains the parameters of its agent, including the secret.
#[utoipa::path(post, path = "/api/{api}/v1/clusters", tag = "clusters", params(ApiPath),
    request_body = Registration,
    responses((status = 200, body = EnterpriseCluster, description = "Registered"), Error))]
pub(crate) async fn enterprise_cluster_register(
    Call(app, tenant): Call<Tenant>,
    Origin(origin): Origin,
    Json(body): Json<Registration>,
) -> Result<Answer<EnterpriseCluster>, Error> {
    must_be_entitled(&app, &tenant).await?;
    let kind = &tenant.kind;
    let name = body.cluster_id()?;
    if hosting::find(&mut app.db.read().await?, name).await?.is_some() {
        return Err(Error::new(44, ""));
    }
    let (new, hosting) = body.read(kind)?;
    let own = tenant.caller.user.organization_id;
    let mut tx = app.db.begin(tenant.caller.actor()).await?;
    let created =
        hosting::register(&mut tx, own, &new, name, &hosting).await.map_err(id_conflict)?;
    let secret = entropy::secret(app.db.entropy());
    agent_token::create(&mut tx, created.id, &entropy::hash(&secret), Duration::ZERO).await?;
    tx.commit().await?;
    let response = EnterpriseCluster::new(kind, &created);
    Ok(Answer(response.with_parameters(AddonParameters::new(kind, &created, &origin, &secret))))
}

fn id_conflict(error: store::Error) -> Error {
    match error {
        store::Error::AlreadyExists { .. } => Error::new(44, ""),
        other => other.into(),
    }
}

/// Returns an enterprise cluster.
#[utoipa::path(get, path = "/api/{api}/v1/clusters/{id}", tag = "clusters", params(ClusterPath),
    responses((status = 200, body = EnterpriseCluster, description = "The cluster"), Error))]
pub(crate) async fn enterprise_cluster_get(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<ClusterPath>,
) -> Result<Answer<EnterpriseCluster>, Error> {
    must_be_entitled(&app, &tenant).await?;
    let found = find(&app, &tenant, &path.id).await?;
    Ok(Answer(EnterpriseCluster::new(&tenant.kind, &found)))
}

/// Deregisters an enterprise cluster. Fails while it has instances.
#[utoipa::path(delete, path = "/api/{api}/v1/clusters/{id}", tag = "clusters",
    params(ClusterPath, Async), responses((status = 202, description = "Deregistration accepted"), Error))]
pub(crate) async fn enterprise_cluster_deregister(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<ClusterPath>,
    params: Params,
) -> Result<StatusCode, Error> {
    must_be_entitled(&app, &tenant).await?;
    params.must_be_async()?;
    let found = find(&app, &tenant, &path.id).await?;
    let mut tx = app.db.begin(tenant.caller.actor()).await?;
    match store::cluster::request_delete(&mut tx, &found, false).await {
        Ok(_) => tx.commit().await?,
        Err(store::Error::Conflict(_)) => {
            return Err(Error::new(4, "The cluster still has instances; delete them first."));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(StatusCode::ACCEPTED)
}

/// Returns the parameters of a cluster's agent.
///
/// Only the hash of the secret is stored: the agent gets a new secret, and the previous one becomes
/// invalid.
#[utoipa::path(get, path = "/api/{api}/v1/clusters/{id}/addon_parameters", tag = "clusters",
    params(ClusterPath),
    responses((status = 200, body = AddonParameters, description = "Parameters with a new secret"), Error))]
pub(crate) async fn enterprise_cluster_parameters(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<ClusterPath>,
    Origin(origin): Origin,
) -> Result<Answer<AddonParameters>, Error> {
    must_be_entitled(&app, &tenant).await?;
    let found = find(&app, &tenant, &path.id).await?;
    let secret = entropy::secret(app.db.entropy());
    let mut tx = app.db.begin(tenant.caller.actor()).await?;
    agent_token::create(&mut tx, found.id, &entropy::hash(&secret), Duration::ZERO).await?;
    tx.commit().await?;
    Ok(Answer(AddonParameters::new(&tenant.kind, &found, &origin, &secret)))
}
