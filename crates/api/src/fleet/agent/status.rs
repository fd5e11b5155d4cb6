//! Status reports of agents about clusters: readiness, capacity and available versions.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use model::cluster::{
    InvalidVersions, OperatorVersion, Readiness, Reason, readiness, sorted_versions,
};
use model::event::Actor;
use model::kind::{Kind, WireNames};

use serde::Deserialize;
use serde_json::{Map, Value};
use store::Scope;
use store::cluster::hosting;
use utoipa::ToSchema;

use super::{Agent, AgentPath, THIRD_PARTY};
use crate::App;
use crate::caller::Call;
use crate::fleet::Error;
use crate::fleet::body::Json;

/// Maximum accepted number of units per instance type.
const MAX_UNITS: i64 = 1_000_000;

/// A condition of a cluster or an instance.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct Condition {
    /// Type of the condition: `Ready`.
    pub(super) r#type: Option<String>,
    /// `True`, `False` or `Unknown`.
    pub(super) status: Option<String>,
    /// Machine-readable reason.
    pub(super) reason: Option<String>,
    /// Human-readable message.
    pub(super) message: Option<String>,
}

/// Capacity for one instance type.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Units {
    /// Maximum number of units.
    max_units: Option<i64>,
}

/// Reported status of a cluster. In addition, the available operators under the kind's name
/// (`strimzi`).
#[derive(Deserialize, ToSchema)]
pub(crate) struct AgentClusterStatus {
    /// Conditions, in particular `Ready`.
    conditions: Option<Vec<Condition>>,
    /// Capacity by instance type.
    capacity: Option<BTreeMap<String, Units>>,
    #[serde(flatten)]
    named_by_kind: Map<String, Value>,
}

/// Records the status of an agent's cluster.
///
/// A cluster becomes ready when its agent reports so, and not ready after three consecutive reports
/// that it is not.
#[utoipa::path(put, path = "/api/{api}/v1/agent-clusters/{id}/status", tag = "agents",
    params(AgentPath), security(("cluster_token" = [])), request_body = AgentClusterStatus,
    responses((status = 204, description = "Recorded"), Error))]
pub(crate) async fn agent_cluster_report(
    Call(app, agent): Call<Agent>,
    Json(status): Json<AgentClusterStatus>,
) -> Result<StatusCode, Error> {
    let versions = versions(&agent.kind, &status)?;
    let conditions = status.conditions.iter().flatten();
    let pairs =
        conditions.map(|c| (c.r#type.as_deref().unwrap_or(""), c.status.as_deref().unwrap_or("")));
    let report =
        ClusterReport { readiness: readiness(pairs), versions, units: units(&agent.kind, &status) };
    record(&app, &agent, report).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A parsed status report.
struct ClusterReport {
    readiness: Readiness,
    versions: Option<Vec<OperatorVersion>>,
    units: BTreeMap<String, i64>,
}

/// Returns the available operators, oldest first; `None` if the report has none.
fn versions(
    kind: &Kind,
    status: &AgentClusterStatus,
) -> Result<Option<Vec<OperatorVersion>>, Error> {
    let list = match status.named_by_kind.get(&kind.words.operator) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) => list,
        Some(_) => {
            return Err(Error::unreadable(format!("{} must be a list.", kind.words.operator)));
        }
    };
    let read: Vec<OperatorVersion> =
        list.iter().map(|operator| offered(&kind.words, operator)).collect();
    let sorted =
        sorted_versions(read, kind.words.ibp.is_some()).map_err(|misreport| match misreport {
            InvalidVersions::Empty(_) => {
                Error::new(37, format!("{}: {misreport}.", kind.words.operator))
            }
            InvalidVersions::Malformed(_) => {
                Error::new(8, format!("{}: {misreport}.", kind.words.operator))
            }
        })?;
    Ok(Some(sorted))
}

fn offered(words: &WireNames, status: &Value) -> OperatorVersion {
    let texts = |name: &str| {
        let list = status[name].as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    };
    OperatorVersion {
        operator: status["version"].as_str().unwrap_or_default().to_owned(),
        is_ready: status["ready"].as_bool().unwrap_or_default(),
        services: texts(&words.versions()),
        protocols: words.ibps().map(|name| texts(&name)).unwrap_or_default(),
    }
}

/// Returns the capacity in units, by resource name.
fn units(kind: &Kind, status: &AgentClusterStatus) -> BTreeMap<String, i64> {
    let types = status.capacity.iter().flatten().filter(|(id, _)| kind.instance_type(id).is_some());
    let counted = types.filter_map(|(id, units)| Some((kind.unit(id), units.max_units?)));
    counted.map(|(unit, max)| (unit, max.clamp(0, MAX_UNITS))).collect()
}

async fn record(app: &App, agent: &Agent, report: ClusterReport) -> Result<(), Error> {
    let (id, kind) = (agent.cluster.id, &agent.kind);
    let mut tx = app.db.begin(Actor::Agent).await?;
    store::cluster::lock(&mut tx, id).await?;
    let current = store::cluster::get(&mut tx, Scope::All, id).await?;
    if current.status.is_deleting() {
        return Ok(());
    }
    let mut hosting_now = current.hosting.clone();
    hosting_now.is_foreign = true;
    hosting_now.apply_readiness(report.readiness);
    if report.readiness == Readiness::Ready {
        let short = hosting::set_units(&mut tx, id, &report.units).await?;
        hosting_now.shortage = (!short.is_empty()).then(|| short.join("; "));
        if let Some(versions) = report.versions {
            hosting_now.versions.insert(kind.name.clone(), versions);
        }
    }
    hosting::set(&mut tx, &current, &hosting_now).await?;
    if hosting_now.shortage != current.hosting.shortage {
        let reason = hosting_now
            .shortage
            .map(|message| Reason::CapacityInUse { message })
            .unwrap_or_default();
        hosting::explain(&mut tx, id, reason).await?;
    }
    let min_interval = app.settings.heartbeat_timeouts.interval() / 2;
    store::cluster::record_heartbeat(&mut tx, id, THIRD_PARTY, &kind.words.operator, min_interval)
        .await?;
    Ok(tx.commit().await?)
}
