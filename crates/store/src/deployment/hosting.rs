//! Deployments of instances: they reserve the capacity of a placed instance, and run its workload.

use model::deployment::{Deployment, NewDeployment, Reason, Spec, Status};
use model::instance::Instance;
use model::replica::Replica;
use model::work::{Key, Lane};
use model::{DeploymentId, Quantity, Resources};

use super::lock_with_clusters;
use crate::db::{Json, params, sql};
use crate::organization_quota::Admission;
use crate::status::{Agent, Change, summarize, transition_replicas};
use crate::{Read, Result, Scope, Tx, cluster, instance, work};

/// The resources that an instance needs: units of its type (`unit`) if the clusters count in those.
pub async fn required_resources(
    read: &mut Read,
    instance: &Instance,
    unit: &str,
) -> Result<Resources> {
    if instance::is_counted_in_units(read, instance, unit).await? {
        let units = Quantity::from_milli(instance.detail.units * 1000);
        return Ok([(unit.to_owned(), units)].into_iter().collect());
    }
    Ok(instance.detail.resources.clone())
}

/// Requests capacity for an instance again, after its deployment has ended. The organization's quota
/// admitted the instance before.
pub async fn reserve(
    tx: &mut Tx,
    instance: &mut Instance,
    resources: &Resources,
    priority: i64,
) -> Result<()> {
    insert(tx, instance, resources, priority, Admission::Granted).await
}

/// Requests capacity for an instance; placement reserves it.
pub(crate) async fn insert(
    tx: &mut Tx,
    instance: &mut Instance,
    resources: &Resources,
    priority: i64,
    admission: Admission,
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
    let purpose = super::For::Instance(instance.id, admission);
    let held = super::insert(tx, tx.id(), instance.organization_id, &new, purpose).await?;
    instance.deployment_id = Some(held.id);
    instance::set_deployment(tx, instance.id, instance.deployment_id).await
}

/// Runs a workload on the reserved capacity. Resources and placement constraints stay.
pub async fn run(tx: &mut Tx, id: DeploymentId, workload: &Spec) -> Result<Deployment> {
    let (now, mut replicas) = lock_with_clusters(tx, Scope::All, id).await?;
    let spec = Spec {
        resources: now.spec.resources.clone(),
        replicas: now.spec.replicas,
        node_selector: now.spec.node_selector.clone(),
        ..workload.clone()
    };
    // Its provider prepares the namespace of the instance.
    for place in replicas.iter().filter_map(|replica| replica.place.as_ref()) {
        work::wake(tx, Lane::Priority, Key::new(cluster::WORKER, place.cluster));
    }
    set_workload(tx, &now, &mut replicas, spec, Reason::AwaitingAgent).await
}

/// Stops the workload; the capacity stays reserved.
pub async fn suspend(tx: &mut Tx, id: DeploymentId) -> Result<Deployment> {
    let (now, mut replicas) = lock_with_clusters(tx, Scope::All, id).await?;
    if now.spec.image.is_none() {
        return Ok(now);
    }
    let spec = Spec { image: None, ready: None, ..now.spec.clone() };
    set_workload(tx, &now, &mut replicas, spec, Reason::Suspending).await
}

async fn set_workload(
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
    let change = Change::new(Status::Scheduled, reason, Agent::Acknowledges);
    transition_replicas(tx, placed, &change).await?;
    let now = Deployment { spec, ..now.clone() };
    summarize(tx, &now, replicas, Status::Scheduled.as_str()).await
}

/// Handles the stop of a suspended workload: the replica only reserves capacity.
pub(super) async fn handle_stop(
    tx: &mut Tx,
    deployment: &Deployment,
    replicas: &mut [Replica],
    found: usize,
) -> Result<()> {
    if deployment.spec.image.is_some() || replicas[found].status == Status::Running {
        return Ok(());
    }
    let reason = Reason::ReservesCapacity { cluster: None };
    let change = Change::new(Status::Running, reason, Agent::Unaffected);
    let change = Change { endpoints: Some(&[]), ..change };
    transition_replicas(tx, [&mut replicas[found]], &change).await?;
    summarize(tx, deployment, replicas, Status::Running.as_str()).await.map(drop)
}
