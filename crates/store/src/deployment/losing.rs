//! Giving up what was on a cluster that is lost.
//!
//! A replica goes back to the queue and may start elsewhere. What its old cluster may still run is
//! a leftover: it holds the node's capacity, and the agent, should it come back, is told to end it.

use std::collections::BTreeSet;

use model::deployment::{Reason, Status};
use model::replica::Replica;
use model::{ClusterId, DeploymentId, Place, Resources};

use super::{clear_away, is_left, replica, take_if_there};
use crate::db::{Json, Row, params, sql};
use crate::status::{Agent, Change, settle, transition_replicas};
use crate::{Read, Result, Tx, capacity, cluster};

/// Whose replicas on a cluster are known as well as can be, though the cluster is silent.
pub async fn undoubted(read: &mut Read, cluster: ClusterId) -> Result<Vec<DeploymentId>> {
    let sql = sql!(
        "SELECT DISTINCT deployment_id FROM replica WHERE cluster_id = $1 AND caveat IS NULL ",
        "ORDER BY 1"
    );
    ids(read.all(sql, params![cluster]).await?)
}

/// Whose replicas on a cluster have a caveat.
pub async fn doubted(read: &mut Read, cluster: ClusterId) -> Result<Vec<DeploymentId>> {
    let sql = sql!(
        "SELECT DISTINCT deployment_id FROM replica WHERE cluster_id = $1 AND caveat IS NOT NULL ",
        "ORDER BY 1"
    );
    ids(read.all(sql, params![cluster]).await?)
}

/// Who could go on elsewhere, or go for good: who has replicas on a cluster and is not pinned to it.
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

/// Says of what a deployment has on a cluster that it may not be true any more, or (without a caveat)
/// that it is again. The lock of the cluster must be held.
pub async fn doubt(
    tx: &mut Tx,
    id: DeploymentId,
    on: ClusterId,
    caveat: Option<&Reason>,
) -> Result<()> {
    let Some(deployment) = take_if_there(tx, id).await? else { return Ok(()) };
    let sql = sql!("UPDATE replica SET caveat = $3 WHERE deployment_id = $1 AND cluster_id = $2");
    if tx.run(sql, params![id, on, caveat]).await? > 0 {
        let change = if caveat.is_some() { "doubted" } else { "confirmed" };
        let replicas = replica::of(tx, id).await?;
        settle(tx, &deployment, &replicas, change).await?;
    }
    Ok(())
}

/// Gives up what a deployment has on a cluster, and lets it start elsewhere.
pub async fn give_up(tx: &mut Tx, id: DeploymentId, on: ClusterId, reason: &Reason) -> Result<()> {
    cluster::lock(tx, on).await?;
    let Some(deployment) = take_if_there(tx, id).await? else { return Ok(()) };
    let mut replicas = replica::of(tx, id).await?;
    let is_lost = |r: &&mut Replica| r.place.as_ref().is_some_and(|place| place.cluster == on);
    for replica in replicas.iter_mut().filter(is_lost) {
        leave_behind(tx, replica, &deployment.spec.resources).await?;
        if replica.status == Status::Deleting {
            replica::delete(tx, replica.id).await?;
            continue;
        }
        let is_over = !replica.status.may_become(Status::Queued);
        let to = if is_over { replica.status } else { Status::Queued };
        let change = Change::new(to, reason.clone(), Agent::of(&deployment));
        transition_replicas(tx, [replica], &change).await?;
    }
    replicas.retain(is_left);
    let deployment = settle(tx, &deployment, &replicas, Status::Queued.as_str()).await?;
    clear_away(tx, &deployment, &replicas).await
}

async fn leave_behind(tx: &mut Tx, replica: &mut Replica, request: &Resources) -> Result<()> {
    let (id, number) = (replica.id.deployment, i64::from(replica.id.number));
    tx.run(
        sql!(
            "INSERT INTO leftover (cluster_id, deployment_id, number, node, request, desired) ",
            "SELECT cluster_id, deployment_id, number, node, $3, desired + 1 FROM replica ",
            "WHERE deployment_id = $1 AND number = $2"
        ),
        params![id, number, Json(request)],
    )
    .await?;
    tx.run(
        sql!(
            "UPDATE replica SET cluster_id = NULL, node = NULL, endpoints = '[]', caveat = NULL, ",
            "placed_at = NULL, started_at = NULL, desired = desired + 1, answered = desired + 1 ",
            "WHERE deployment_id = $1 AND number = $2"
        ),
        params![id, number],
    )
    .await?;
    replica::clear_place(replica);
    replica.desired += 1;
    Ok(())
}

/// Forgets what is left on a cluster that will not come back. Its lock must be held.
pub(crate) async fn forget(tx: &mut Tx, on: ClusterId) -> Result<()> {
    let sql =
        sql!("DELETE FROM leftover WHERE cluster_id = $1 RETURNING deployment_id, node, request");
    let mut left = BTreeSet::new();
    for mut row in tx.all(sql, params![on]).await? {
        let (id, node) = (row.take::<DeploymentId>()?, row.take::<String>()?);
        let request: Resources = row.take::<Json<_>>()?.0;
        capacity::release(tx, &Place { cluster: on, node: node.into() }, &request).await?;
        left.insert(id);
    }
    for id in left {
        replica::forget(tx, id, on).await?;
    }
    Ok(())
}

/// What is left on the nodes of a cluster.
pub async fn leftovers(read: &mut Read, on: ClusterId) -> Result<Vec<(String, Resources)>> {
    let sql = sql!("SELECT node, request FROM leftover WHERE cluster_id = $1");
    let rows = read.all(sql, params![on]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take::<Json<_>>()?.0))).collect()
}
