//! Deployments: asking for them, reading them, taking them down.
//!
//! What moves them is next door: [`placing`] gives and takes capacity, [`reporting`] takes in what
//! agents say, [`losing`] gives up what was on a cluster that is lost. What is placed and run is a
//! [`replica`]; a deployment's status is the sum of its replicas'.

pub mod hosting;
pub mod losing;
pub mod moving;
pub mod placing;
pub mod replica;
pub mod reporting;
pub mod reserving;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::deployment::{Deployment, NewDeployment, Reason, Status};
use model::event::Kind;
use model::reason::Coded as _;
use model::replica::Replica;
use model::work::{Key, Lane};
use model::{ClusterId, DeploymentId, InstanceId, OrganizationId, Time};

use crate::db::{Counter, Json, Select, params, sql};
use crate::status::{self, Agent, settle, transition_replicas};
use crate::subject::{self, Subject as _, by_id, row};
use crate::{Error, Read, Result, Scope, Tx, cluster, event, instance, organization};

pub use crate::subject::{count, list};

by_id!(DeploymentId: get(Read));

row! { Deployment(DeploymentId) in "deployment":
    id, organization_id, instance_id, reserved, pinned_to, placed_on, name, spec as json, priority,
    labels as json, status, reason in "status_reason", node, endpoints as json, generation, created_by, created_at,
    updated_at, started_at;
}
pub(crate) use columns;

/// The worker that ends what was asked to run for a while.
pub const ENDING: &str = "ending";

/// How many deployments there may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// In one organization.
    pub per_organization: i64,
    /// On one cluster, or pinned to it.
    pub per_cluster: i64,
}

/// Which deployments are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// That one.
    pub id: Option<DeploymentId>,
    /// Of that name.
    pub name: Option<String>,
    /// On that cluster, or pinned to it.
    pub cluster: Option<ClusterId>,
    /// In that status.
    pub status: Option<Status>,
    /// Also those that belong to instances, or only hold room?
    pub with_instances: bool,
}

/// Makes a deployment. It waits in the queue until placement finds room.
pub async fn create(
    tx: &mut Tx,
    owner: OrganizationId,
    new: &NewDeployment,
    limits: Limits,
) -> Result<Deployment> {
    if let Some(id) = new.pinned_to {
        cluster::get(tx, Scope::Organization(owner), id).await?;
    }
    if let Some(id) = new.pinned_to {
        cluster::add_deployment(tx, id, limits.per_cluster).await?;
    }
    organization::add_deployment(tx, owner, limits.per_organization).await?;
    insert(tx, owner, new, None, None).await
}

async fn insert(
    tx: &mut Tx,
    owner: OrganizationId,
    new: &NewDeployment,
    instance: Option<InstanceId>,
    reserved: Option<&str>,
) -> Result<Deployment> {
    let (id, now, by) = (tx.id::<DeploymentId>(), tx.now(), tx.actor().to_string());
    let reason = Reason::AwaitingPlacement;
    tx.run(
        sql!(
            "INSERT INTO deployment (id, organization_id, pinned_to, name, image, spec, priority, ",
            "labels, next_number, status, status_reason, endpoints, created_by, created_at, updated_at, ",
            "instance_id, reserved, reason_code) VALUES ",
            "($1, $2, $3, $4, $5, $6, $7, $8, 0, 'queued', $9, '[]', $10, $11, $11, $12, $13, $14)"
        ),
        params![
            id,
            owner,
            new.pinned_to,
            new.name,
            new.spec.image,
            Json(&new.spec),
            new.priority,
            new.labels,
            reason,
            by,
            now,
            instance,
            reserved,
            reason.code()
        ],
    )
    .await?;
    replica::create(tx, id, new.spec.replicas).await?;
    note(tx, id, "created").await
}

/// The deployments in scope of which something waits, first in line first.
pub async fn queue(
    read: &mut Read,
    scope: Scope,
    pinned_to: Option<ClusterId>,
    limit: i64,
) -> Result<Vec<Deployment>> {
    let own = scope.organization();
    let waiting = concat!(
        "SELECT ",
        columns!(),
        " FROM deployment WHERE deleted_at IS NULL AND id IN ",
        "(SELECT deployment_id FROM replica WHERE status IN ('queued', 'preempted')) ",
        "AND instance_id IS NULL AND reserved IS NULL"
    );
    let rows = Select::new(waiting)
        .and("organization_id = ?", own.as_ref())
        .and("pinned_to = ?", pinned_to.as_ref())
        .then("ORDER BY priority DESC, created_at, id LIMIT ?", &limit)
        .all(read)
        .await?;
    Ok(Deployment::from_rows(rows))
}

const ON_CLUSTER: &str = "(pinned_to = ? OR EXISTS (SELECT 1 FROM replica r \
                          WHERE r.deployment_id = deployment.id AND r.cluster_id = ?))";

impl subject::Filter for Filter {
    type Subject = Deployment;

    fn restrict<'a>(&'a self, select: Select<'a>, _: Option<&'a OrganizationId>) -> Select<'a> {
        let is_wide = self.with_instances || self.id.is_some();
        select
            .text(if is_wide { "" } else { " AND instance_id IS NULL AND reserved IS NULL" })
            .and("id = ?", self.id.as_ref())
            .and("name = ?", self.name.as_ref())
            .and(ON_CLUSTER, self.cluster.as_ref())
            .and("status = ?", self.status.as_ref())
    }
}

/// What of a deployment shall change.
#[derive(Debug, Default)]
pub struct Change {
    /// Its name.
    pub name: Option<String>,
    /// Its priority.
    pub priority: Option<i64>,
    /// What users wrote on it.
    pub labels: Option<BTreeMap<String, String>>,
    /// How many replicas run.
    pub replicas: Option<u32>,
}

/// Changes a deployment. Replicas that are too many are stopped, those that are missing wait.
pub async fn set(tx: &mut Tx, id: DeploymentId, change: &Change) -> Result<Deployment> {
    let (mut deployment, mut replicas) = take_with_places(tx, Scope::All, id).await?;
    if let Some(wanted) = change.replicas {
        deployment.spec.replicas = wanted;
        scale(tx, &deployment, &mut replicas, wanted).await?;
    }
    tx.run(
        sql!(
            "UPDATE deployment SET name = COALESCE($2, name), priority = COALESCE($3, priority), ",
            "labels = COALESCE($4, labels), spec = $5, generation = generation + 1 WHERE id = $1"
        ),
        params![id, change.name, change.priority, change.labels, Json(&deployment.spec)],
    )
    .await?;
    let changed = get(tx, Scope::All, id).await?;
    settle(tx, &changed, &replicas, "updated").await
}

async fn scale(
    tx: &mut Tx,
    now: &Deployment,
    replicas: &mut Vec<Replica>,
    wanted: u32,
) -> Result<()> {
    if !(now.status.is_wanted() || now.status.is_waiting()) {
        return Err(Error::Conflict(format!("it is {}; make it anew", now.status)));
    }
    let mut kept: Vec<&mut Replica> =
        replicas.iter_mut().filter(|replica| replica.status != Status::Deleting).collect();
    let have = u32::try_from(kept.len()).unwrap_or(u32::MAX);
    if wanted > have {
        replica::create(tx, now.id, wanted - have).await?;
        *replicas = replica::of(tx, now.id).await?;
        return Ok(());
    }
    // Those that wait go first, then the youngest.
    kept.sort_by_key(|replica| (replica.place.is_some(), Reverse(replica.id.number)));
    kept.truncate((have - wanted) as usize);
    remove(tx, now, kept, Reason::ScaledDown).await?;
    replicas.retain(is_left);
    Ok(())
}

/// Deletes replicas. Those that nobody has to stop are gone at once.
async fn remove(
    tx: &mut Tx,
    now: &Deployment,
    mut replicas: Vec<&mut Replica>,
    reason: Reason,
) -> Result<()> {
    let agent = Agent::of(now);
    let change = status::Change::new(Status::Deleting, reason, agent);
    transition_replicas(tx, replicas.iter_mut().map(|replica| &mut **replica), &change).await?;
    for replica in replicas {
        if replica.place.is_none() || agent == Agent::Absent {
            replica::leave(tx, now, replica).await?;
            replica::delete(tx, replica.id).await?;
        }
    }
    Ok(())
}

/// Is there still a row of it? Replicas that are deleted have one for as long as they hold a place.
fn is_left(replica: &Replica) -> bool {
    replica.status != Status::Deleting || replica.place.is_some()
}

/// Requests the deletion of a deployment. Running replicas are stopped first; others are deleted at once.
pub async fn request_delete(tx: &mut Tx, scope: Scope, id: DeploymentId) -> Result<Deployment> {
    let (deployment, replicas) = take_with_places(tx, scope, id).await?;
    delete_taken(tx, deployment, replicas).await
}

/// The same for several in one transaction; those that existed.
pub async fn request_delete_all(
    tx: &mut Tx,
    scope: Scope,
    ids: &[DeploymentId],
) -> Result<Vec<DeploymentId>> {
    let taken = take_all_with_places(tx, scope, ids).await?;
    let found = taken.iter().map(|(deployment, _)| deployment.id).collect();
    for (deployment, replicas) in taken {
        delete_taken(tx, deployment, replicas).await?;
    }
    Ok(found)
}

async fn delete_taken(
    tx: &mut Tx,
    mut deployment: Deployment,
    mut replicas: Vec<Replica>,
) -> Result<Deployment> {
    if deployment.status == Status::Deleting {
        return Ok(deployment);
    }
    let reason = Reason::DeletionRequested { by: None };
    (deployment.status, deployment.reason) = (Status::Deleting, reason.clone());
    remove(tx, &deployment, replicas.iter_mut().collect(), reason).await?;
    replicas.retain(is_left);
    let deployment = settle(tx, &deployment, &replicas, Status::Deleting.as_str()).await?;
    clear_away(tx, &deployment, &replicas).await?;
    Ok(deployment)
}

/// The end of a deployment that shall go, once nothing of it is left but its history.
pub(crate) async fn clear_away(
    tx: &mut Tx,
    deployment: &Deployment,
    replicas: &[Replica],
) -> Result<()> {
    if deployment.status != Status::Deleting || !replicas.is_empty() {
        return Ok(());
    }
    let now = tx.now();
    let sql = sql!("UPDATE deployment SET deleted_at = $2, updated_at = $2 WHERE id = $1");
    tx.run(sql, params![deployment.id, now]).await?;
    if let Some(id) = deployment.pinned_to {
        tx.count(Counter::Cluster(id), -1);
    }
    // What belongs to an instance is counted by its quota, and what only holds room by nobody.
    if deployment.instance_id.is_none() && deployment.reserved.is_none() {
        tx.count(Counter::Organization(deployment.organization_id), -1);
    }
    append(tx, deployment, "deleted").await
}

/// Ends replicas whose time is over; when the next one's is, if one runs.
pub async fn end_due(tx: &mut Tx, id: DeploymentId) -> Result<Option<Time>> {
    let (deployment, mut replicas) = take_with_places(tx, Scope::All, id).await?;
    let Some(seconds) = deployment.spec.run_for else { return Ok(None) };
    let (life, now) = (Duration::from_secs(seconds.into()), tx.now());
    let end = |replica: &Replica| {
        replica.started_at.filter(|_| replica.status == Status::Running).map(|at| at + life)
    };
    let next = replicas.iter().filter_map(end).filter(|end| *end > now).min();
    let mut over: Vec<&mut Replica> =
        replicas.iter_mut().filter(|replica| end(replica).is_some_and(|end| end <= now)).collect();
    if over.is_empty() {
        return Ok(next);
    }
    let reason = Reason::RunForElapsed { seconds: seconds.into() };
    let change = status::Change::new(Status::Completed, reason, Agent::of(&deployment));
    transition_replicas(tx, over.iter_mut().map(|replica| &mut **replica), &change).await?;
    if change.agent == Agent::Absent {
        for replica in over {
            replica::leave(tx, &deployment, replica).await?;
        }
    }
    settle(tx, &deployment, &replicas, Status::Completed.as_str()).await?;
    Ok(next)
}

/// Has the worker look when the time of what runs now is over.
pub(crate) fn plan_end(tx: &mut Tx, deployment: &Deployment) {
    if let Some(seconds) = deployment.spec.run_for {
        let at = tx.now() + Duration::from_secs(seconds.into());
        tx.wake(Key::new(ENDING, deployment.id), Lane::Priority, at);
    }
}

/// The deployment, whose replicas nobody else changes from here to the end of the transaction; none if
/// it is gone.
async fn take_if_there(tx: &mut Tx, id: DeploymentId) -> Result<Option<Deployment>> {
    match subject::take(tx, Scope::All, id).await {
        Err(Error::NotFound { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// The same, with the locks of the clusters whose capacity it holds.
async fn take_with_places(
    tx: &mut Tx,
    scope: Scope,
    id: DeploymentId,
) -> Result<(Deployment, Vec<Replica>)> {
    let taken = take_all_with_places(tx, scope, &[id]).await?.pop();
    taken.ok_or_else(|| Error::not_found("deployment", id))
}

/// Several with the locks of the clusters whose capacity they hold, as far as they exist, by id.
async fn take_all_with_places(
    tx: &mut Tx,
    scope: Scope,
    ids: &[DeploymentId],
) -> Result<Vec<(Deployment, Vec<Replica>)>> {
    // One may be moving at this very moment; each try looks again, and holds nothing of the one
    // before: the locks of clusters come before those of deployments' rows.
    for _ in 0..8 {
        let start = tx.mark().await?;
        let mut seen = BTreeSet::new();
        for id in ids {
            seen.extend(places(&replica::of(tx, *id).await?));
        }
        for cluster in &seen {
            cluster::lock(tx, *cluster).await?;
        }
        let mut taken = Vec::with_capacity(ids.len());
        for id in ids.iter().collect::<BTreeSet<_>>() {
            let deployment = match subject::take(tx, scope, *id).await {
                Err(Error::NotFound { .. }) => continue,
                other => other?,
            };
            taken.push((deployment, replica::of(tx, *id).await?));
        }
        if taken.iter().all(|(_, replicas)| places(replicas).is_subset(&seen)) {
            return Ok(taken);
        }
        tx.return_to(start).await?;
    }
    Err(Error::Unavailable("the deployment keeps moving".into()))
}

fn places(replicas: &[Replica]) -> BTreeSet<ClusterId> {
    replicas.iter().filter_map(|replica| Some(replica.place.as_ref()?.cluster)).collect()
}

/// Reads the deployment again and appends its state to the log.
pub(crate) async fn note(tx: &mut Tx, id: DeploymentId, change: &str) -> Result<Deployment> {
    let deployment = get(tx, Scope::All, id).await?;
    append(tx, &deployment, change).await?;
    Ok(deployment)
}

pub(crate) async fn append(tx: &mut Tx, deployment: &Deployment, change: &str) -> Result<()> {
    let shown = Deployment { spec: deployment.spec.redacted(), ..deployment.clone() };
    let owner = Some(deployment.organization_id);
    if let Some(instance) = deployment.instance_id {
        tx.wake(Key::new(instance::WORKER, instance), Lane::Priority, tx.now());
    }
    event::append(tx, Kind::Deployment, deployment.id, owner, change, &shown).await
}
