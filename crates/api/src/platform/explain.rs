//! Why a deployment waits, and what would happen if one were asked for.

use axum::Json as Answer;
use axum::extract::{Path, State};
use engine::placement::Owners;
use model::deployment::{NewDeployment, Status};
use model::world::{Explanation, Outcome, Place, Shortage, UnitId, Verdict, Wait};
use model::{ClusterId, DeploymentId, OrganizationId, Resources, Time};
use serde::Serialize;
use utoipa::ToSchema;

use crate::caller::Caller;
use crate::page::id;
use crate::{App, Problem};

/// Why a deployment is where it is.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeploymentExplanation {
    /// The deployment.
    #[schema(value_type = String)]
    deployment_id: DeploymentId,
    /// When this was so.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// Where it is on its way.
    #[schema(value_type = String)]
    status: Status,
    /// Why, as a sentence.
    status_reason: String,
    /// Its replicas, by number; the first 100.
    replicas: Vec<ReplicaExplanation>,
}

/// Why a replica is where it is.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplicaExplanation {
    /// Which.
    number: u32,
    /// `placed`, `stopping`, `not_now` or `never`: no node that it may use is large enough.
    #[schema(value_type = String)]
    verdict: Verdict,
    /// Why it waits: `short` of room, `behind` others who ask for the same, `yielding`: others stop
    /// for it, `budget`: its organization has displaced as many as it may in an hour, `never`.
    #[schema(value_type = Option<String>)]
    wait: Option<Wait>,
    /// Its place in the queue, from 1.
    position: Option<usize>,
    /// The cluster where it is, or where room is kept for it.
    #[schema(value_type = Option<String>)]
    cluster_id: Option<ClusterId>,
    /// The node there.
    node: Option<String>,
    /// What is missing, on the nodes where that is least.
    shortages: Vec<NodeShortage>,
    /// Which of the organization's own would have to end first, the soonest first.
    blockers: Vec<Blocker>,
    /// How many of others' would have to end, too.
    other_blockers: usize,
    /// When it can start if all ends as planned (`run_for`) and nobody before it takes the room.
    #[schema(value_type = Option<String>, format = DateTime)]
    earliest: Option<Time>,
}

/// What is missing on one node.
#[derive(Serialize, ToSchema)]
pub(crate) struct NodeShortage {
    /// Its cluster.
    #[schema(value_type = String)]
    cluster_id: ClusterId,
    /// Its name there.
    node: String,
    /// How much of what; nothing if only labels or other replicas are in the way.
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    missing: Resources,
    /// Is it too small, even when empty?
    too_small: bool,
}

fn parts(place: Place) -> (ClusterId, String) {
    (place.cluster, place.node.to_string())
}

impl From<Shortage> for NodeShortage {
    fn from(shortage: Shortage) -> Self {
        let Shortage { place, missing, is_too_small } = shortage;
        let (cluster_id, node) = parts(place);
        Self { cluster_id, node, missing, too_small: is_too_small }
    }
}

/// Somebody who is in the way.
#[derive(Serialize, ToSchema)]
pub(crate) struct Blocker {
    /// The deployment.
    #[schema(value_type = String)]
    deployment_id: DeploymentId,
    /// Which of its replicas.
    replica: u32,
}

/// The organization's own by name, and how many others.
fn own_and_others(
    units: &[UnitId],
    owners: &Owners,
    own: OrganizationId,
) -> (Vec<Blocker>, usize) {
    let is_own = |unit: &&UnitId| owners.get(&unit.owner) == Some(&own);
    let name = |unit: &UnitId| Blocker {
        deployment_id: DeploymentId(unit.owner),
        replica: unit.replica,
    };
    let own: Vec<Blocker> = units.iter().filter(is_own).map(name).collect();
    let others = units.len() - own.len();
    (own, others)
}

impl ReplicaExplanation {
    fn of(explanation: Explanation, owners: &Owners, own: OrganizationId) -> Self {
        let (blockers, other_blockers) = own_and_others(&explanation.blockers, owners, own);
        let (cluster_id, node) = explanation.place.map(parts).unzip();
        Self {
            number: explanation.unit.replica,
            verdict: explanation.verdict,
            wait: explanation.wait,
            position: explanation.position,
            cluster_id,
            node,
            shortages: explanation.shortages.into_iter().map(NodeShortage::from).collect(),
            blockers,
            other_blockers,
            earliest: explanation.earliest,
        }
    }
}

/// Explains where a deployment is: its place in the queue, what is missing where, who is in the way.
#[utoipa::path(get, path = "/api/v1/deployments/{id}/explain", tag = "deployments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = DeploymentExplanation, description = "Why it is where it is"), Problem))]
pub(crate) async fn deployment_explain(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Answer<DeploymentExplanation>, Problem> {
    let id: DeploymentId = id("deployment", &text)?;
    let found = store::deployment::get(&mut app.db.read().await?, caller.scope(), id).await?;
    let explained = app.outlook.explain(id).await?;
    let (owners, own) = (&explained.owners, found.organization_id);
    let replicas = explained.replicas.into_iter();
    Ok(Answer(DeploymentExplanation {
        deployment_id: id,
        at: explained.at,
        status: found.status,
        status_reason: found.status_reason,
        replicas: replicas.map(|replica| ReplicaExplanation::of(replica, owners, own)).collect(),
    }))
}

/// What would happen if a deployment were asked for now.
#[derive(Serialize, ToSchema)]
pub(crate) struct Forecast {
    /// Always true: nothing was done.
    dry_run: bool,
    /// When this would be so.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// Its replicas, by number; the first 100.
    replicas: Vec<ReplicaForecast>,
}

/// What would become of a replica.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplicaForecast {
    /// Which.
    number: u32,
    /// `start` at once, `displace` others first, or `wait`.
    outcome: &'static str,
    /// The cluster where it would go.
    #[schema(value_type = Option<String>)]
    cluster_id: Option<ClusterId>,
    /// The node there.
    node: Option<String>,
    /// Which of the organization's own would have to yield.
    victims: Vec<Blocker>,
    /// How many of others' would have to yield, too.
    other_victims: usize,
    /// Why it would wait; one entry if it would.
    waits: Vec<ReplicaExplanation>,
}

impl Forecast {
    pub(crate) async fn of(
        app: &App,
        caller: &Caller,
        new: &NewDeployment,
    ) -> Result<Self, Problem> {
        if let Some(id) = new.pinned_to {
            store::cluster::get(&mut app.db.read().await?, caller.scope(), id).await?;
        }
        let own = caller.user.organization_id;
        let foreseen = app.outlook.foresee(own, new).await?;
        let replicas = foreseen.replicas.into_iter();
        let replicas = replicas
            .map(|(number, outcome)| ReplicaForecast::of(number, outcome, &foreseen.owners, own));
        Ok(Self { dry_run: true, at: foreseen.at, replicas: replicas.collect() })
    }
}

impl ReplicaForecast {
    fn of(number: u32, outcome: Outcome, owners: &Owners, own: OrganizationId) -> Self {
        let (outcome, place, victims, waits) = match outcome {
            Outcome::Start { place } => ("start", Some(place), Vec::new(), None),
            Outcome::Displace { place, victims } => ("displace", Some(place), victims, None),
            Outcome::Wait { explanation } => ("wait", None, Vec::new(), Some(explanation)),
        };
        let (cluster_id, node) = place.map(parts).unzip();
        let (victims, other_victims) = own_and_others(&victims, owners, own);
        let waits = waits.into_iter().map(|why| ReplicaExplanation::of(*why, owners, own));
        let waits = waits.collect();
        Self { number, outcome, cluster_id, node, victims, other_victims, waits }
    }
}
