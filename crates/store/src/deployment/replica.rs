//! Replicas of deployments.
//!
//! Callers lock the deployment's row (`subject::lock`) before they read replicas, so that what they
//! read stays true, and update the deployment's summary afterwards (`status::summarize`).

use model::deployment::{Deployment, Reason, Status};
use model::log::LogLine;
use model::reason::StatusReason as _;
use model::replica::Replica;
use model::{ClusterId, DeploymentId, OrganizationId, Place, ReplicaId};

use crate::db::{Counter, Json, Row, Select, batches, params, sql};
use crate::status::{Agent, Change, transition_replicas};
use crate::{Error, Read, Result, Tx, capacity, machine};

macro_rules! columns {
    () => {
        "deployment_id, number, cluster_id, node, status, status_reason, caveat, endpoints, desired, \
         placed_at, started_at, machine"
    };
}

/// The replicas of a deployment, by number.
pub async fn list(read: &mut Read, deployment: DeploymentId) -> Result<Vec<Replica>> {
    let sql = sql!("SELECT ", columns!(), " FROM replica WHERE deployment_id = $1 ORDER BY number");
    read.all(sql, params![deployment]).await?.into_iter().map(from_row).collect()
}

/// The replicas of several deployments, by deployment and number.
pub async fn list_of_deployments(
    read: &mut Read,
    deployments: &[DeploymentId],
) -> Result<Vec<Replica>> {
    let mut found = Vec::new();
    for ids in batches(deployments) {
        let select = Select::new(concat!("SELECT ", columns!(), " FROM replica WHERE "));
        let rows = select.one_of("deployment_id", &ids).text(" ORDER BY deployment_id, number");
        found.extend(rows.all(read).await?);
    }
    found.into_iter().map(from_row).collect()
}

/// The endpoints of an organization's replicas on clusters of the server's machine. Those of other
/// clusters are not included: their agents may report any address.
pub async fn local_endpoints(read: &mut Read, organization: OrganizationId) -> Result<Vec<String>> {
    let sql = sql!(
        "SELECT r.endpoints FROM replica r JOIN deployment d ON d.id = r.deployment_id ",
        "JOIN cluster c ON c.id = r.cluster_id WHERE d.organization_id = $1 ",
        "AND c.provider = 'local' AND r.status = 'running'"
    );
    let rows = read.all(sql, params![organization]).await?;
    let lists: Result<Vec<Json<Vec<String>>>> =
        rows.into_iter().map(|mut row| row.take()).collect();
    Ok(lists?.into_iter().flat_map(|list| list.0).collect())
}

/// Creates pending replicas. Their numbers are never reused.
pub(super) async fn create(tx: &mut Tx, deployment: DeploymentId, count: u32) -> Result<()> {
    let (count, reason) = (i64::from(count), Reason::AwaitingPlacement);
    let sql = sql!("UPDATE deployment SET next_number = next_number + $2 WHERE id = $1");
    tx.run(sql, params![deployment, count]).await?;
    tx.run(
        sql!(
            "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n ",
            "WHERE i < $2) INSERT INTO replica (deployment_id, number, status, status_reason, ",
            "reason_code, endpoints) SELECT d.id, d.next_number - n.i, 'queued', $3, $4, '[]' ",
            "FROM deployment d, n WHERE d.id = $1"
        ),
        params![deployment, count, reason, reason.code()],
    )
    .await
    .map(drop)
}

/// Stores the last log lines of an ended replica.
pub(super) async fn set_tail(tx: &mut Tx, id: ReplicaId, tail: &[LogLine]) -> Result<()> {
    let sql = sql!("UPDATE replica SET tail = $3 WHERE deployment_id = $1 AND number = $2");
    tx.run(sql, params![id.deployment, i64::from(id.number), Json(&tail)]).await.map(drop)
}

/// The last log lines of an ended replica.
pub async fn tail(read: &mut Read, id: ReplicaId) -> Result<Vec<LogLine>> {
    let sql = sql!("SELECT tail FROM replica WHERE deployment_id = $1 AND number = $2");
    let row = read.first(sql, params![id.deployment, i64::from(id.number)]).await?;
    row.map_or(Ok(Vec::new()), |mut row| Ok(row.take::<Json<_>>()?.0))
}

/// Deletes a replica that holds no capacity.
pub(super) async fn delete(tx: &mut Tx, id: ReplicaId) -> Result<()> {
    let number = i64::from(id.number);
    let sql =
        sql!("DELETE FROM replica WHERE deployment_id = $1 AND number = $2 AND cluster_id IS NULL");
    if tx.run(sql, params![id.deployment, number]).await? == 0 {
        return Err(Error::Database(format!("{id} still holds capacity")));
    }
    Ok(())
}

/// Places a pending replica and reserves its capacity. `clusters` names the deployment's clusters.
pub(super) async fn place(
    tx: &mut Tx,
    deployment: &Deployment,
    replica: &mut Replica,
    place: &Place,
    clusters: &[String],
) -> Result<()> {
    if deployment.pinned_to.is_none() && count_on(tx, deployment.id, place.cluster).await? == 0 {
        tx.count(Counter::Cluster(place.cluster), 1);
    }
    let reason = Reason::Placed { clusters: clusters.to_vec() };
    let change = Change::new(Status::Scheduled, reason, Agent::for_deployment(deployment));
    transition_replicas(tx, [&mut *replica], &Change { place: Some(place), ..change }).await?;
    capacity::reserve(tx, place, &deployment.spec.resources).await?;
    if deployment.takes_machine()
        && let Some(name) = machine::of_cluster(tx, place.cluster).await?
    {
        machine::reserve(tx, &name, &deployment.spec.resources);
        set_machine(tx, replica.id, &name).await?;
        replica.machine = Some(name);
    }
    Ok(())
}

/// Records the machine whose capacity a replica holds.
pub(crate) async fn set_machine(tx: &mut Tx, id: ReplicaId, name: &str) -> Result<()> {
    let sql = sql!("UPDATE replica SET machine = $3 WHERE deployment_id = $1 AND number = $2");
    tx.run(sql, params![id.deployment, i64::from(id.number), name]).await.map(drop)
}

/// Releases the capacity of a replica that has stopped.
pub(super) async fn release(
    tx: &mut Tx,
    deployment: &Deployment,
    replica: &mut Replica,
) -> Result<()> {
    let Some(place) = &replica.place else { return Ok(()) };
    let number = i64::from(replica.id.number);
    let released = tx
        .run(
            sql!(
                "UPDATE replica SET cluster_id = NULL, node = NULL, endpoints = '[]', ",
                "machine = NULL, caveat = NULL, placed_at = NULL, started_at = NULL ",
                "WHERE deployment_id = $1 AND number = $2 AND cluster_id = $3"
            ),
            params![replica.id.deployment, number, place.cluster],
        )
        .await?;
    if released == 0 {
        tx.poison();
        return Err(Error::Conflict(format!(
            "the capacity of {} was already released",
            replica.id
        )));
    }
    uncount_if_last(tx, deployment.id, place.cluster).await?;
    capacity::release(tx, place, &deployment.spec.resources).await?;
    if let Some(name) = &replica.machine {
        machine::release(tx, name, &deployment.spec.resources);
    }
    clear_place(replica);
    Ok(())
}

/// Clears the fields that only placed replicas have, in memory.
pub(super) fn clear_place(replica: &mut Replica) {
    (replica.place, replica.placed_at, replica.started_at) = (None, None, None);
    (replica.caveat, replica.endpoints, replica.machine) = (None, Vec::new(), None);
}

/// Decrements the cluster's counter if this was the last replica of an unpinned deployment.
pub(super) async fn uncount_if_last(tx: &mut Tx, id: DeploymentId, on: ClusterId) -> Result<()> {
    let sql = sql!("SELECT COUNT(*) FROM deployment WHERE id = $1 AND pinned_to IS NULL");
    if tx.number(sql, params![id]).await? == 1 && count_on(tx, id, on).await? == 0 {
        tx.count(Counter::Cluster(on), -1);
    }
    Ok(())
}

async fn count_on(read: &mut Read, deployment: DeploymentId, cluster: ClusterId) -> Result<i64> {
    let sql = sql!(
        "SELECT (SELECT COUNT(*) FROM replica WHERE deployment_id = $1 AND cluster_id = $2) + ",
        "(SELECT COUNT(*) FROM leftover WHERE deployment_id = $1 AND cluster_id = $2)"
    );
    read.number(sql, params![deployment, cluster]).await
}

pub(super) fn from_row(mut row: Row) -> Result<Replica> {
    let (deployment, number) = (row.take()?, row.take::<i64>()?);
    let (cluster, node) = (row.take::<Option<_>>()?, row.take::<Option<String>>()?);
    let number =
        u32::try_from(number).map_err(|_| Error::Database("invalid replica number".into()))?;
    Ok(Replica {
        id: ReplicaId { deployment, number },
        place: cluster.zip(node).map(|(cluster, node)| Place { cluster, node: node.into() }),
        status: row.take()?,
        reason: row.take()?,
        caveat: row.take()?,
        endpoints: row.take::<Json<_>>()?.0,
        desired: row.take()?,
        placed_at: row.take()?,
        started_at: row.take()?,
        machine: row.take()?,
    })
}
