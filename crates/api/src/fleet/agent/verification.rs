//! Whoever takes metrics for a cluster asks whether the one that sends them is that cluster's agent.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use store::cluster::hosting;
use utoipa::IntoParams;

use super::Speaker;
use crate::App;
use crate::fleet::Error;
use crate::fleet::tenant::Of;

/// Which cluster.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ObserverPath {
    /// The API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    #[param(rename = "api")]
    _api: String,
    /// The cluster's id where it was made, written as a UUID.
    external_id: String,
}

/// Says whether the caller is the agent of a cluster, which is named by its id as a UUID.
#[utoipa::path(post, path = "/api/{api}/v1/obs-proxy-verification/{external_id}", tag = "agents",
    params(ObserverPath), security(("cluster_token" = [])),
    responses((status = 200, description = "It is its agent"), Error))]
pub(crate) async fn observer_verify(
    State(app): State<App>,
    Of(kind): Of,
    headers: HeaderMap,
    Path(path): Path<ObserverPath>,
) -> Result<StatusCode, Error> {
    let speaker = Speaker::of(&app, &headers).await?;
    let id = plain(&path.external_id)?;
    let found = hosting::find(&mut app.db.read().await?, &id).await?;
    let on = found.ok_or_else(|| Error::not_found("cluster", &path.external_id))?;
    if speaker.is_agent_of(&kind, &on) {
        return Ok(StatusCode::OK);
    }
    Err(Error::new(4, "Only the agent of that cluster may send for it."))
}

/// The id that a UUID is another spelling of: 32 digits without dashes.
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
