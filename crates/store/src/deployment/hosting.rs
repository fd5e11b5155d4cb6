//! Deployments that belong to instances: they hold the instance's capacity from when it has a cluster,
//! and run its program while it shall work.

use model::deployment::{Deployment, NewDeployment, Reason, Spec, Status};
use model::instance::Instance;
use model::replica::Replica;
use model::{DeploymentId, Quantity, Resources};

use super::take_with_places;
use crate::db::{Json, params, sql};
use crate::status::{Agent, Change, settle, transition_replicas};
use crate::{Read, Result, Scope, Tx, cluster, instance};

/// What an instance needs, in what the clusters there count in: in instances of its type, called `unit`,
/// if that is what they have.
pub async fn ask(read: &mut Read, instance: &Instance, unit: &str) -> Result<Resources> {
    if instance::is_counted_in_units(read, instance, unit).await? {
        let units = Quantity::from_milli(instance.detail.units * 1000);
        return Ok([(unit.to_owned(), units)].into_iter().collect());
    }
    Ok(instance.detail.resources.clone())
}

/// Has capacity be held for an instance, as soon as there is some.
pub async fn hold(
    tx: &mut Tx,
    instance: &mut Instance,
    resources: &Resources,
    priority: i64,
) -> Result<()> {
    let node_selector = match instance.pinned_to {
        Some(_) => std::collections::BTreeMap::new(),
        None => instance.selector(),
    };
    let resources = resources.clone();
    let new = NewDeployment {
        name: format!("{}-{}", instance.kind, instance.name),
        pinned_to: instance.pinned_to,
        spec: Spec { resources, replicas: 1, node_selector, ..Spec::default() },
        priority,
        labels: std::collections::BTreeMap::new(),
    };
    if let Some(id) = instance.pinned_to {
        cluster::add_deployment(tx, id, i64::MAX).await?;
    }
    let held = super::insert(tx, instance.organization_id, &new, Some(instance.id), None).await?;
    instance.deployment_id = Some(held.id);
    instance::set_deployment(tx, instance.id, instance.deployment_id).await
}

/// Has this program run where capacity is held. What it needs, and where it may be, stays.
pub async fn run(tx: &mut Tx, id: DeploymentId, program: &Spec) -> Result<Deployment> {
    let (now, mut replicas) = take_with_places(tx, Scope::All, id).await?;
    let spec = Spec {
        resources: now.spec.resources.clone(),
        replicas: now.spec.replicas,
        node_selector: now.spec.node_selector.clone(),
        ..program.clone()
    };
    set_program(tx, &now, &mut replicas, spec, Reason::AwaitingAgent).await
}

/// Takes the program away. What runs is stopped; the capacity stays held.
pub async fn rest(tx: &mut Tx, id: DeploymentId) -> Result<Deployment> {
    let (now, mut replicas) = take_with_places(tx, Scope::All, id).await?;
    if now.spec.image.is_none() {
        return Ok(now);
    }
    let spec = Spec { image: None, ready: None, ..now.spec.clone() };
    set_program(tx, &now, &mut replicas, spec, Reason::Suspending).await
}

async fn set_program(
    tx: &mut Tx,
    now: &Deployment,
    replicas: &mut [Replica],
    spec: Spec,
    reason: Reason,
) -> Result<Deployment> {
    tx.run(
        sql!("UPDATE deployment SET spec = $2, image = $3 WHERE id = $1"),
        params![now.id, Json(&spec), spec.image],
    )
    .await?;
    let placed = replicas.iter_mut().filter(|replica| replica.place.is_some());
    let change = Change::new(Status::Scheduled, reason, Agent::Answers);
    transition_replicas(tx, placed, &change).await?;
    let now = Deployment { spec, ..now.clone() };
    settle(tx, &now, replicas, Status::Scheduled.as_str()).await
}

/// Nothing runs any more of what shall rest: it holds its capacity, and that is all.
pub(super) async fn stopped(
    tx: &mut Tx,
    deployment: &Deployment,
    replicas: &mut [Replica],
    found: usize,
) -> Result<()> {
    if deployment.spec.image.is_some() || replicas[found].status == Status::Running {
        return Ok(());
    }
    let reason = Reason::ReservesCapacity { cluster: None };
    let change = Change::new(Status::Running, reason, Agent::Unconcerned);
    let change = Change { endpoints: Some(&[]), ..change };
    transition_replicas(tx, [&mut replicas[found]], &change).await?;
    settle(tx, deployment, replicas, Status::Running.as_str()).await.map(drop)
}
