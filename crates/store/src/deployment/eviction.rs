//! Eviction from unreachable clusters.
//!
//! An evicted replica returns to the queue and may start elsewhere. What the old cluster may still
//! run is a leftover: it holds the node's capacity, and the agent is told to stop it if it returns.

use std::collections::BTreeSet;

use model::deployment::{Reason, Status};
use model::replica::Replica;
use model::{ClusterId, DeploymentId, Place, Resources};

use super::{delete_if_empty, has_row, lock_if_exists, replica};
use crate::db::{Json, Row, params, sql};
use crate::status::{Agent, Change, summarize, transition_replicas};
use crate::{Read, Result, Tx, capacity, cluster, machine};

/// Deployments with replicas on a cluster that are not marked as uncertain yet.
pub async fn without_caveat(read: &mut Read, cluster: ClusterId) -> Result<Vec<DeploymentId>> {
    let sql = sql!(
        "SELECT DISTINCT deployment_id FROM replica WHERE cluster_id = $1 AND caveat IS NULL ",
        "ORDER BY 1"
    );
    ids(read.all(sql, params![cluster]).await?)
}

/// Deployments with replicas on a cluster that are marked as uncertain.
pub async fn with_caveat(read: &mut Read, cluster: ClusterId) -> Result<Vec<DeploymentId>> {
    let sql = sql!(
        "SELECT DISTINCT deployment_id FROM replica WHERE cluster_id = $1 AND caveat IS NOT NULL ",
        "ORDER BY 1"
    );
    ids(read.all(sql, params![cluster]).await?)
}

/// Deployments with replicas on a cluster that can be evicted: not pinned to it, or being deleted.
pub async fn movable(read: &mut Read, cluster: ClusterId) -> Result<Vec<DeploymentId>> {
    let sql = sql!(
        "SELECT DISTINCT r.deployment_id FROM replica r JOIN deployment d ON d.id = r.deployment_id ",
        "WHERE r.cluster_id = $1 AND (d.pinned_to IS NULL OR d.status = 'deleting') ORDER BY 1"
    );
    ids(read.all(sql, params![cluster]).await?)
}

fn ids(rows: Vec<Row>) -> Result<Vec<DeploymentId>> {
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// Sets or clears the caveat of a deployment's replicas on a cluster. The cluster must be locked.
pub async fn set_caveat(
    tx: &mut Tx,
    id: DeploymentId,
    on: ClusterId,
    caveat: Option<&Reason>,
) -> Result<()> {
    let Some(deployment) = lock_if_exists(tx, id).await? else { return Ok(()) };
    let sql = sql!("UPDATE replica SET caveat = $3 WHERE deployment_id = $1 AND cluster_id = $2");
    if tx.run(sql, params![id, on, caveat]).await? > 0 {
        let change = if caveat.is_some() { "doubted" } else { "confirmed" };
        let replicas = replica::list(tx, id).await?;
        summarize(tx, &deployment, &replicas, change).await?;
    }
    Ok(())
}

/// Evicts a deployment's replicas from a cluster.
pub async fn evict(tx: &mut Tx, id: DeploymentId, on: ClusterId, reason: &Reason) -> Result<()> {
    cluster::lock(tx, on).await?;
    let Some(deployment) = lock_if_exists(tx, id).await? else { return Ok(()) };
    let mut replicas = replica::list(tx, id).await?;
    let is_there = |r: &&mut Replica| r.place.as_ref().is_some_and(|place| place.cluster == on);
    for replica in replicas.iter_mut().filter(is_there) {
        record_leftover(tx, replica, &deployment.spec.resources).await?;
        if replica.status == Status::Deleting {
            replica::delete(tx, replica.id).await?;
            continue;
        }
        let is_over = !replica.status.may_become(Status::Queued);
        let to = if is_over { replica.status } else { Status::Queued };
        let change = Change::new(to, reason.clone(), Agent::for_deployment(&deployment));
        transition_replicas(tx, [replica], &change).await?;
    }
    replicas.retain(has_row);
    let deployment = summarize(tx, &deployment, &replicas, Status::Queued.as_str()).await?;
    delete_if_empty(tx, &deployment, &replicas).await
}

async fn record_leftover(tx: &mut Tx, replica: &mut Replica, request: &Resources) -> Result<()> {
    let (id, number) = (replica.id.deployment, i64::from(replica.id.number));
    tx.run(
        sql!(
            "INSERT INTO leftover (cluster_id, deployment_id, number, node, request, desired, machine) ",
            "SELECT cluster_id, deployment_id, number, node, $3, desired + 1, machine FROM replica ",
            "WHERE deployment_id = $1 AND number = $2"
        ),
        params![id, number, Json(request)],
    )
    .await?;
    tx.run(
        sql!(
            "UPDATE replica SET cluster_id = NULL, node = NULL, endpoints = '[]', caveat = NULL, ",
            "machine = NULL, placed_at = NULL, started_at = NULL, desired = desired + 1, answered = desired + 1 ",
            "WHERE deployment_id = $1 AND number = $2"
        ),
        params![id, number],
    )
    .await?;
    replica::clear_place(replica);
    replica.desired += 1;
    Ok(())
}

/// Deletes the leftovers of a cluster that will not return. The cluster must be locked.
pub(crate) async fn delete_leftovers(tx: &mut Tx, on: ClusterId) -> Result<()> {
    let sql = sql!(
        "DELETE FROM leftover WHERE cluster_id = $1 RETURNING deployment_id, node, request, machine"
    );
    let mut deployments = BTreeSet::new();
    for mut row in tx.all(sql, params![on]).await? {
        let (id, node) = (row.take::<DeploymentId>()?, row.take::<String>()?);
        let request: Resources = row.take::<Json<_>>()?.0;
        if let Some(name) = row.take::<Option<String>>()? {
            machine::release(tx, &name, &request);
        }
        capacity::release(tx, &Place { cluster: on, node: node.into() }, &request).await?;
        deployments.insert(id);
    }
    for id in deployments {
        replica::uncount_if_last(tx, id, on).await?;
    }
    Ok(())
}

/// The leftovers on a cluster: node and resources.
pub async fn leftovers(read: &mut Read, on: ClusterId) -> Result<Vec<(String, Resources)>> {
    let sql = sql!("SELECT node, request FROM leftover WHERE cluster_id = $1");
    let rows = read.all(sql, params![on]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take::<Json<_>>()?.0))).collect()
}
