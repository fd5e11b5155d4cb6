//! Deployments: creating, reading, changing and deleting them.
//!
//! Related modules: [`placement`] reserves and releases capacity, [`reports`] processes agents'
//! reports, [`eviction`] evicts replicas from unreachable clusters. The unit of placement is a
//! [`replica`]; a deployment's status summarises its replicas.

mod defaults;
pub mod eviction;
pub mod hosting;
pub mod moving;
pub mod placement;
pub mod replica;
pub mod reports;
pub mod reserving;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::deployment::{Deployment, NewDeployment, Reason, Status};
use model::event::Kind;
use model::organization::quota::Subject as Counted;
use model::reason::StatusReason as _;
use model::replica::Replica;
use model::work::{Key, Lane};
use model::{ClusterId, DeploymentId, InstanceId, OrganizationId, Quantity, Time};

use crate::db::{Counter, Json, Select, params, sql};
use crate::organization_quota::{self, Admission};
use crate::status::{self, Agent, summarize, summarize_deleting, transition_replicas};
use crate::subject::{self, Subject as _, by_id, row};
use crate::{Error, Read, Result, Scope, Tx, cluster, event, instance, organization};

pub use crate::subject::{count, list};
pub use defaults::request_defaults;

by_id!(DeploymentId: get(Read));

row! { Deployment(DeploymentId) in "deployment":
    id, organization_id, instance_id, reserved, pinned_to, placed_on, name, spec as json, priority,
    labels as json, status, reason in "status_reason", node, endpoints as json, generation, created_by, created_at,
    updated_at, started_at;
}
pub(crate) use columns;

/// The worker that ends deployments after `run_for`.
pub const ENDING: &str = "ending";

/// Maximum numbers of deployments.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Per organization that has no quota of its own.
    pub per_organization: i64,
    /// Per cluster, including pinned ones.
    pub per_cluster: i64,
    /// Priority ceiling of organizations for which the administrator has set none.
    pub max_priority: i64,
}

/// Filter for lists.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Id.
    pub id: Option<DeploymentId>,
    /// Name.
    pub name: Option<String>,
    /// Cluster that they run on or are pinned to.
    pub cluster: Option<ClusterId>,
    /// Status.
    pub status: Option<Status>,
    /// Whether to include deployments of instances and capacity reservations.
    pub with_instances: bool,
}

/// Creates a deployment. It is queued until placement finds capacity.
pub async fn create(
    tx: &mut Tx,
    owner: OrganizationId,
    new: &NewDeployment,
    limits: Limits,
) -> Result<Deployment> {
    let id = tx.id();
    create_as(tx, id, owner, new, limits).await
}

/// Creates a deployment with that id, for which its environment variables are encrypted.
pub async fn create_as(
    tx: &mut Tx,
    id: DeploymentId,
    owner: OrganizationId,
    new: &NewDeployment,
    limits: Limits,
) -> Result<Deployment> {
    if let Some(id) = new.pinned_to {
        cluster::get(tx, Scope::Organization(owner), id).await?;
    }
    organization::check_priority(tx, owner, new.priority, limits.max_priority).await?;
    if let Some(id) = new.pinned_to {
        cluster::add_deployment(tx, id, limits.per_cluster).await?;
    }
    tx.count(Counter::Organization(owner), 1);
    organization_quota::charge_within(tx, owner, Counted::Deployments, limits.per_organization);
    let mut new = new.clone();
    request_defaults(tx, owner, &mut new).await?;
    let deployment = insert(tx, id, owner, &new, For::User).await?;
    organization::ensure_exists(tx, Some(owner)).await?;
    Ok(deployment)
}

/// What a deployment is created for.
#[derive(Debug, Clone, Copy)]
enum For<'a> {
    /// A user.
    User,
    /// An instance.
    Instance(InstanceId, Admission),
    /// Reserved capacity for an instance type: charged to nobody.
    Reservation(&'a str),
}

async fn insert(
    tx: &mut Tx,
    id: DeploymentId,
    owner: OrganizationId,
    new: &NewDeployment,
    purpose: For<'_>,
) -> Result<Deployment> {
    let (now, by) = (tx.now(), tx.actor().to_string());
    let (instance, reserved, admission) = match purpose {
        For::User => (None, None, Some(Admission::Checked)),
        For::Instance(id, admission) => (Some(id), None, Some(admission)),
        For::Reservation(of_type) => (None, Some(of_type), None),
    };
    if let Some(admission) = admission {
        let request = (&new.spec.resources, new.spec.replicas);
        organization_quota::charge_resources(tx, owner, request, admission);
    }
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
    record_event(tx, id, "created").await
}

/// The deployments in scope with pending replicas, in queue order.
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

/// Fields of a deployment to update.
#[derive(Debug, Default)]
pub struct Change {
    /// Name.
    pub name: Option<String>,
    /// Priority.
    pub priority: Option<i64>,
    /// Labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Number of replicas.
    pub replicas: Option<u32>,
}

/// Changes a deployment. Surplus replicas are stopped, missing ones are queued.
pub async fn set(tx: &mut Tx, id: DeploymentId, change: &Change) -> Result<Deployment> {
    let (mut deployment, mut replicas) = lock_with_clusters(tx, Scope::All, id).await?;
    if let Some(target) = change.replicas {
        charge_scaling(tx, &deployment, target);
        deployment.spec.replicas = target;
        scale(tx, &deployment, &mut replicas, target).await?;
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
    summarize(tx, &changed, &replicas, "updated").await
}

/// Charges the additional replicas, or releases the surplus ones.
fn charge_scaling(tx: &mut Tx, now: &Deployment, target: u32) {
    let (owner, have, request) = (now.organization_id, now.spec.replicas, &now.spec.resources);
    if target > have {
        let added = (request, target - have);
        organization_quota::charge_resources(tx, owner, added, Admission::Checked);
    } else {
        organization_quota::release_resources(tx, owner, (request, have - target));
    }
}

async fn scale(
    tx: &mut Tx,
    now: &Deployment,
    replicas: &mut Vec<Replica>,
    target: u32,
) -> Result<()> {
    if !(now.status.is_placed() || now.status.is_pending()) {
        return Err(Error::Conflict(format!("the deployment is {}; create a new one", now.status)));
    }
    let mut surplus: Vec<&mut Replica> =
        replicas.iter_mut().filter(|replica| replica.status != Status::Deleting).collect();
    let have = u32::try_from(surplus.len()).unwrap_or(u32::MAX);
    if target > have {
        replica::create(tx, now.id, target - have).await?;
        *replicas = replica::list(tx, now.id).await?;
        return Ok(());
    }
    // Pending replicas first, then the newest.
    surplus.sort_by_key(|replica| (replica.place.is_some(), Reverse(replica.id.number)));
    surplus.truncate((have - target) as usize);
    remove(tx, now, surplus, Reason::ScaledDown).await?;
    replicas.retain(has_row);
    Ok(())
}

/// Deletes replicas. Those that no agent has to stop are deleted immediately.
async fn remove(
    tx: &mut Tx,
    now: &Deployment,
    mut replicas: Vec<&mut Replica>,
    reason: Reason,
) -> Result<()> {
    let agent = Agent::for_deployment(now);
    let change = status::Change::new(Status::Deleting, reason, agent);
    transition_replicas(tx, replicas.iter_mut().map(|replica| &mut **replica), &change).await?;
    for replica in replicas {
        if replica.place.is_none() || agent == Agent::Absent {
            replica::release(tx, now, replica).await?;
            replica::delete(tx, replica.id).await?;
        }
    }
    Ok(())
}

/// Whether a replica still has a row: deleted replicas keep it while they hold a place.
fn has_row(replica: &Replica) -> bool {
    replica.status != Status::Deleting || replica.place.is_some()
}

/// Name of a deployment of the organization that uses the image, under either name, and has not
/// ended.
pub async fn using_image(
    read: &mut Read,
    organization: OrganizationId,
    [name, alias]: [&str; 2],
) -> Result<Option<String>> {
    let sql = sql!(
        "SELECT name FROM deployment WHERE organization_id = $1 AND image IN ($2, $3) ",
        "AND deleted_at IS NULL AND status NOT IN ('completed', 'failed') ORDER BY id LIMIT 1"
    );
    let row = read.first(sql, params![organization, name, alias]).await?;
    row.map(|mut row| row.take()).transpose()
}

/// Requests the deletion of a deployment. Running replicas are stopped before they are deleted.
pub async fn request_delete(tx: &mut Tx, scope: Scope, id: DeploymentId) -> Result<Deployment> {
    let (deployment, replicas) = lock_with_clusters(tx, scope, id).await?;
    delete_locked(tx, deployment, replicas).await
}

/// Requests the deletion of several deployments; returns those that existed.
pub async fn request_delete_all(
    tx: &mut Tx,
    scope: Scope,
    ids: &[DeploymentId],
) -> Result<Vec<DeploymentId>> {
    let taken = lock_all_with_clusters(tx, scope, ids).await?;
    let found = taken.iter().map(|(deployment, _)| deployment.id).collect();
    for (deployment, replicas) in taken {
        delete_locked(tx, deployment, replicas).await?;
    }
    Ok(found)
}

async fn delete_locked(
    tx: &mut Tx,
    deployment: Deployment,
    mut replicas: Vec<Replica>,
) -> Result<Deployment> {
    if deployment.status == Status::Deleting {
        return Ok(deployment);
    }
    let reason = Reason::DeletionRequested { by: None };
    remove(tx, &deployment, replicas.iter_mut().collect(), reason.clone()).await?;
    replicas.retain(has_row);
    let deployment = summarize_deleting(tx, &deployment, &replicas, reason).await?;
    delete_if_empty(tx, &deployment, &replicas).await?;
    Ok(deployment)
}

/// Deletes a deployment in status `deleting` once its last replica is deleted; its history stays.
pub(crate) async fn delete_if_empty(
    tx: &mut Tx,
    deployment: &Deployment,
    replicas: &[Replica],
) -> Result<()> {
    if deployment.status != Status::Deleting || !replicas.is_empty() {
        return Ok(());
    }
    let now = tx.now();
    let sql =
        sql!("UPDATE deployment SET deleted_at = $2, updated_at = $2, spec = $3 WHERE id = $1");
    let spec = deployment.spec.without_secrets();
    tx.run(sql, params![deployment.id, now, Json(&spec)]).await?;
    if let Some(id) = deployment.pinned_to {
        tx.count(Counter::Cluster(id), -1);
    }
    let owner = deployment.organization_id;
    if deployment.reserved.is_none() {
        let request = (&deployment.spec.resources, deployment.spec.replicas);
        organization_quota::release_resources(tx, owner, request);
        // Deployments of instances count towards the instance's quota.
        if deployment.instance_id.is_none() {
            organization_quota::release(tx, owner, Counted::Deployments, Quantity::whole(1));
            tx.count(Counter::Organization(owner), -1);
        }
    }
    append(tx, deployment, "deleted").await
}

/// Completes replicas whose `run_for` has passed. Returns when the next one is due.
pub async fn end_due(tx: &mut Tx, id: DeploymentId) -> Result<Option<Time>> {
    let (deployment, mut replicas) = lock_with_clusters(tx, Scope::All, id).await?;
    let Some(seconds) = deployment.spec.run_for else { return Ok(None) };
    let (life, now) = (Duration::from_secs(seconds.into()), tx.now());
    let end = |replica: &Replica| {
        replica.started_at.filter(|_| replica.status == Status::Running).map(|at| at + life)
    };
    let next = replicas.iter().filter_map(end).filter(|end| *end > now).min();
    let mut due: Vec<&mut Replica> =
        replicas.iter_mut().filter(|replica| end(replica).is_some_and(|end| end <= now)).collect();
    if due.is_empty() {
        return Ok(next);
    }
    let reason = Reason::RunForElapsed { seconds: seconds.into() };
    let change = status::Change::new(Status::Completed, reason, Agent::for_deployment(&deployment));
    transition_replicas(tx, due.iter_mut().map(|replica| &mut **replica), &change).await?;
    if change.agent == Agent::Absent {
        for replica in due {
            replica::release(tx, &deployment, replica).await?;
        }
    }
    summarize(tx, &deployment, &replicas, Status::Completed.as_str()).await?;
    Ok(next)
}

/// Schedules the end of the running replicas.
pub(crate) fn plan_end(tx: &mut Tx, deployment: &Deployment) {
    if let Some(seconds) = deployment.spec.run_for {
        let at = tx.now() + Duration::from_secs(seconds.into());
        tx.wake(Key::new(ENDING, deployment.id), Lane::Priority, at);
    }
}

/// Locks a deployment, and with it its replicas; `None` if it does not exist.
async fn lock_if_exists(tx: &mut Tx, id: DeploymentId) -> Result<Option<Deployment>> {
    match subject::lock(tx, Scope::All, id).await {
        Err(Error::NotFound { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// Locks a deployment and the clusters whose capacity it holds.
pub(crate) async fn lock_with_clusters(
    tx: &mut Tx,
    scope: Scope,
    id: DeploymentId,
) -> Result<(Deployment, Vec<Replica>)> {
    let taken = lock_all_with_clusters(tx, scope, &[id]).await?.pop();
    taken.ok_or_else(|| Error::not_found("deployment", id))
}

/// Locks the existing ones of several deployments, by id, and the clusters that they are placed on.
async fn lock_all_with_clusters(
    tx: &mut Tx,
    scope: Scope,
    ids: &[DeploymentId],
) -> Result<Vec<(Deployment, Vec<Replica>)>> {
    // A replica may move at this moment: each attempt reads again without the locks of the previous
    // one, because clusters are locked before deployments.
    for _ in 0..8 {
        let start = tx.savepoint().await?;
        let mut locked = BTreeSet::new();
        for id in ids {
            locked.extend(places(&replica::list(tx, *id).await?));
        }
        for cluster in &locked {
            cluster::lock(tx, *cluster).await?;
        }
        let mut taken = Vec::with_capacity(ids.len());
        for id in ids.iter().collect::<BTreeSet<_>>() {
            let deployment = match subject::lock(tx, scope, *id).await {
                Err(Error::NotFound { .. }) => continue,
                other => other?,
            };
            taken.push((deployment, replica::list(tx, *id).await?));
        }
        if taken.iter().all(|(_, replicas)| places(replicas).is_subset(&locked)) {
            return Ok(taken);
        }
        tx.rollback_to(start).await?;
    }
    Err(Error::Unavailable("deployment is being rescheduled; retry later".into()))
}

fn places(replicas: &[Replica]) -> BTreeSet<ClusterId> {
    replicas.iter().filter_map(|replica| Some(replica.place.as_ref()?.cluster)).collect()
}

/// Reads the deployment again and appends its state to the event log.
pub(crate) async fn record_event(
    tx: &mut Tx,
    id: DeploymentId,
    change: &str,
) -> Result<Deployment> {
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
