//! What an agent says of its cluster: is it ready, how much fits on it, what can it run?

use std::collections::BTreeMap;

use axum::http::StatusCode;
use model::cluster::{Misreport, Offered, Readiness, Reason, readiness, sorted_versions};
use model::event::Actor;
use model::kind::{Kind, Words};

use serde::Deserialize;
use serde_json::{Map, Value};
use store::Scope;
use store::cluster::hosting;
use utoipa::ToSchema;

use super::{Agent, AgentPath, FOREIGN};
use crate::App;
use crate::caller::Call;
use crate::fleet::Error;
use crate::fleet::body::Json;

/// The most units of one type that are believed.
const MAX_UNITS: i64 = 1_000_000;

/// A condition of a cluster or an instance.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct Condition {
    /// What it is about: `Ready`.
    pub(super) r#type: Option<String>,
    /// `True`, `False` or `Unknown`.
    pub(super) status: Option<String>,
    /// Why, in one word.
    pub(super) reason: Option<String>,
    /// Why, as a sentence.
    pub(super) message: Option<String>,
}

/// How much of one instance type fits.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Units {
    /// In all.
    max_units: Option<i64>,
}

/// What an agent says of its cluster. Beside these fields it has the list of operators that the cluster
/// can run, under the kind's name for it (`strimzi`).
#[derive(Deserialize, ToSchema)]
pub(crate) struct AgentClusterStatus {
    /// `Ready`, above all.
    conditions: Option<Vec<Condition>>,
    /// By instance type.
    capacity: Option<BTreeMap<String, Units>>,
    #[serde(flatten)]
    named_by_kind: Map<String, Value>,
}

/// Takes in what an agent says of its cluster. A cluster is ready when its agent says so, and is taken
/// out when it says three times in a row that it is not.
#[utoipa::path(put, path = "/api/{api}/v1/agent-clusters/{id}/status", tag = "agents",
    params(AgentPath), security(("cluster_token" = [])), request_body = AgentClusterStatus,
    responses((status = 204, description = "Taken in"), Error))]
pub(crate) async fn agent_cluster_report(
    Call(app, agent): Call<Agent>,
    Json(said): Json<AgentClusterStatus>,
) -> Result<StatusCode, Error> {
    let versions = versions(&agent.kind, &said)?;
    let conditions = said.conditions.iter().flatten();
    let pairs = conditions
        .map(|one| (one.r#type.as_deref().unwrap_or(""), one.status.as_deref().unwrap_or("")));
    let heard = Heard { readiness: readiness(pairs), versions, units: units(&agent.kind, &said) };
    take_in(&app, &agent, heard).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What was said, read.
struct Heard {
    readiness: Readiness,
    versions: Option<Vec<Offered>>,
    units: BTreeMap<String, i64>,
}

/// The operators that the cluster can run, oldest first; none if they are not said.
fn versions(kind: &Kind, said: &AgentClusterStatus) -> Result<Option<Vec<Offered>>, Error> {
    let list = match said.named_by_kind.get(&kind.words.operator) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) => list,
        Some(_) => {
            return Err(Error::unreadable(format!("{} must be a list.", kind.words.operator)));
        }
    };
    let read: Vec<Offered> = list.iter().map(|one| offered(&kind.words, one)).collect();
    let sorted = sorted_versions(read, kind.words.ibp.is_some()).map_err(|wrong| match wrong {
        Misreport::Empty(_) => Error::new(37, format!("{}: {wrong}.", kind.words.operator)),
        Misreport::Malformed(_) => Error::new(8, format!("{}: {wrong}.", kind.words.operator)),
    })?;
    Ok(Some(sorted))
}

fn offered(words: &Words, said: &Value) -> Offered {
    let texts = |name: &str| {
        let list = said[name].as_array().into_iter().flatten();
        list.map(|one| one.as_str().unwrap_or_default().to_owned()).collect()
    };
    Offered {
        operator: said["version"].as_str().unwrap_or_default().to_owned(),
        is_ready: said["ready"].as_bool().unwrap_or_default(),
        services: texts(&words.versions()),
        protocols: words.ibps().map(|name| texts(&name)).unwrap_or_default(),
    }
}

/// How many units of the kind's types fit, by the name that they have among resources.
fn units(kind: &Kind, said: &AgentClusterStatus) -> BTreeMap<String, i64> {
    let types = said.capacity.iter().flatten().filter(|(id, _)| kind.type_of(id).is_some());
    let counted = types.filter_map(|(id, units)| Some((kind.unit(id), units.max_units?)));
    counted.map(|(unit, most)| (unit, most.clamp(0, MAX_UNITS))).collect()
}

async fn take_in(app: &App, agent: &Agent, heard: Heard) -> Result<(), Error> {
    let (id, kind) = (agent.cluster.id, &agent.kind);
    let mut tx = app.db.begin(Actor::Agent).await?;
    store::cluster::lock(&mut tx, id).await?;
    let seen = store::cluster::get(&mut tx, Scope::All, id).await?;
    if seen.status.is_leaving() {
        return Ok(());
    }
    let mut now = seen.hosting.clone();
    now.is_foreign = true;
    now.hear(heard.readiness);
    if heard.readiness == Readiness::Ready {
        let short = hosting::set_units(&mut tx, id, &heard.units).await?;
        now.shortage = (!short.is_empty()).then(|| short.join("; "));
        if let Some(versions) = heard.versions {
            now.versions.insert(kind.name.clone(), versions);
        }
    }
    hosting::set(&mut tx, &seen, &now).await?;
    if now.shortage != seen.hosting.shortage {
        let reason =
            now.shortage.map(|message| Reason::CapacityInUse { message }).unwrap_or_default();
        hosting::explain(&mut tx, id, reason).await?;
    }
    let apart = app.settings.patience.beat() / 2;
    store::cluster::hear(&mut tx, id, FOREIGN, &kind.words.operator, apart).await?;
    Ok(tx.commit().await?)
}
