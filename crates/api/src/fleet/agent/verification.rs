//! Verification for metrics receivers: whether a sender is the agent of a cluster.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use store::cluster::hosting;
use utoipa::IntoParams;

use super::AgentIdentity;
use crate::App;
use crate::fleet::Error;
use crate::fleet::tenant::ApiKind;

/// Path of a cluster.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ObserverPath {
    /// API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    #[param(rename = "api")]
    _api: String,
    /// Cluster ID at its origin, as a UUID.
    external_id: String,
}

/// Verifies that the caller is the agent of a cluster, identified by its ID as a UUID.
#[utoipa::path(post, path = "/api/{api}/v1/obs-proxy-verification/{external_id}", tag = "agents",
    params(ObserverPath), security(("cluster_token" = [])),
    responses((status = 200, description = "The caller is the cluster's agent"), Error))]
pub(crate) async fn observer_verify(
    State(app): State<App>,
    ApiKind(kind): ApiKind,
    headers: HeaderMap,
    Path(path): Path<ObserverPath>,
) -> Result<StatusCode, Error> {
    let identity = AgentIdentity::from_headers(&app, &headers).await?;
    let id = plain(&path.external_id)?;
    let found = hosting::find(&mut app.db.read().await?, &id).await?;
    let cluster = found.ok_or_else(|| Error::not_found("cluster", &path.external_id))?;
    if identity.is_agent_of(&kind, &cluster) {
        return Ok(StatusCode::OK);
    }
    Err(Error::new(4, "The token does not belong to the agent of this cluster."))
}

/// Converts a UUID to a cluster ID: 32 digits without dashes.
fn plain(uuid: &str) -> Result<String, Error> {
    let is_digit = |c: char| c.is_ascii_hexdigit();
    let groups: Vec<&str> = uuid.split('-').collect();
    let is_uuid = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.chars().all(is_digit));
    if !is_uuid {
        let rule =
            format!("{uuid:?} is not a UUID: 32 hexadecimal digits in groups of 8-4-4-4-12.");
        return Err(Error::new(46, rule));
    }
    Ok(groups.concat().to_ascii_lowercase())
}
