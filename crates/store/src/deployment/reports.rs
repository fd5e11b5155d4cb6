//! Desired state of agents, and processing of their reports.

use model::agent::{Desired, Observed, Report};
use model::cluster::Provider;
use model::deployment::{Deployment, Reason, Spec, Status};
use model::log::LogLine;
use model::replica::Replica;
use model::{ClusterId, Place, ReplicaId};

use super::placement::STOPPED;
use super::{delete_if_empty, hosting, lock_if_exists, replica};
use crate::db::{Json, Row, Select, params, sql};
use crate::status::{Agent, Change, summarize, transition_replicas};
use crate::{Error, Read, Result, Tx, capacity, cluster, machine};

/// The clusters that an agent serves.
#[derive(Debug, Clone, Copy)]
pub enum ServedClusters {
    /// The local agent: all clusters of a provider.
    Provider(Provider),
    /// A remote agent: one cluster.
    Cluster(ClusterId),
}

/// The desired state of an agent's replicas: all of it, or only what it has not acknowledged.
pub async fn desired(read: &mut Read, served: ServedClusters, all: bool) -> Result<Vec<Desired>> {
    let select = Select::new(
        "SELECT r.deployment_id, r.number, r.cluster_id, r.node, r.desired, r.status, d.spec, \
         d.organization_id FROM replica r JOIN deployment d ON d.id = r.deployment_id \
         WHERE (d.image IS NOT NULL OR r.answered < r.desired) AND r.cluster_id IS NOT NULL",
    );
    let select = if all { select } else { select.text(" AND r.answered < r.desired") };
    let order = " ORDER BY r.deployment_id, r.number";
    let rows = for_agent(select, "r.cluster_id", &served).text(order).all(read).await?;
    let mut desired = rows.into_iter().map(from_row).collect::<Result<Vec<_>>>()?;
    let select = Select::new(
        "SELECT deployment_id, number, cluster_id, node, desired FROM leftover WHERE desired > 0",
    );
    for mut row in for_agent(select, "cluster_id", &served).all(read).await? {
        desired.push(read_stop(&mut row)?);
    }
    Ok(desired)
}

fn for_agent<'a>(select: Select<'a>, column: &str, served: &'a ServedClusters) -> Select<'a> {
    match served {
        ServedClusters::Cluster(id) => select.and(&format!("{column} = ?"), Some(id)),
        ServedClusters::Provider(provider) => {
            let own = format!("{column} IN (SELECT id FROM cluster WHERE provider = ?)");
            select.and(&own, Some(provider))
        }
    }
}

fn from_row(mut row: Row) -> Result<Desired> {
    let mut desired = read_stop(&mut row)?;
    let (status, spec): (Status, Json<Spec>) = (row.take()?, row.take()?);
    desired.organization = Some(row.take()?);
    // Without a workload a replica only reserves capacity: anything that runs must stop.
    desired.run = status.is_placed().then_some(spec.0).filter(|spec| spec.image.is_some());
    Ok(desired)
}

/// Desired state: the replica must not run.
fn read_stop(row: &mut Row) -> Result<Desired> {
    let (deployment, number) = (row.take()?, row.take::<i64>()?);
    let number =
        u32::try_from(number).map_err(|_| Error::Database("invalid replica number".into()))?;
    Ok(Desired {
        replica: ReplicaId { deployment, number },
        cluster: row.take()?,
        node: row.take()?,
        generation: row.take()?,
        organization: None,
        run: None,
    })
}

/// Processes a report. A report for an outdated generation, or without news, changes nothing.
///
/// The cluster must be locked.
pub async fn record(tx: &mut Tx, report: &Report) -> Result<()> {
    clear_leftover(tx, report).await?;
    if !is_current(tx, report).await? {
        return Ok(());
    }
    let Some(deployment) = lock_if_exists(tx, report.replica.deployment).await? else {
        return Ok(());
    };
    let mut replicas = replica::list(tx, deployment.id).await?;
    let is_reported = |replica: &Replica| {
        replica.id == report.replica
            && replica.desired == report.generation
            && replica.place.as_ref().is_some_and(|place| place.cluster == report.cluster)
    };
    let Some(found) = replicas.iter().position(is_reported) else { return Ok(()) };
    acknowledge(tx, &replicas[found]).await?;
    match &report.observed {
        Observed::Gone => stopped(tx, &deployment, replicas, found).await,
        observed if replicas[found].status.is_placed() => {
            let observation = (observed, report.tail.as_slice());
            observe(tx, &deployment, &mut replicas, found, observation).await
        }
        _ => Ok(()),
    }
}

/// Whether the report is about the current generation. Otherwise its deployment, which may belong
/// to anybody, is not even locked.
async fn is_current(read: &mut Read, report: &Report) -> Result<bool> {
    let sql = sql!(
        "SELECT COUNT(*) FROM replica WHERE deployment_id = $1 AND number = $2 AND cluster_id = $3 ",
        "AND desired = $4"
    );
    let (id, number) = (report.replica.deployment, i64::from(report.replica.number));
    let found = read.number(sql, params![id, number, report.cluster, report.generation]).await?;
    Ok(found == 1)
}

async fn acknowledge(tx: &mut Tx, replica: &Replica) -> Result<()> {
    let number = i64::from(replica.id.number);
    tx.run(
        sql!("UPDATE replica SET answered = $3 WHERE deployment_id = $1 AND number = $2 AND answered < $3"),
        params![replica.id.deployment, number, replica.desired],
    )
    .await
    .map(drop)
}

/// Deletes a leftover and releases its capacity, once the agent acknowledged a newer generation.
async fn clear_leftover(tx: &mut Tx, report: &Report) -> Result<()> {
    let (id, cluster) = (report.replica, report.cluster);
    let is_stopped = i64::from(report.observed == Observed::Gone);
    let row = tx
        .first(
            sql!(
                "DELETE FROM leftover WHERE cluster_id = $1 AND deployment_id = $2 AND number = $3 ",
                "AND (desired < $4 OR (desired = $4 AND CAST($5 AS BIGINT) = 1)) ",
                "RETURNING node, request, machine"
            ),
            params![cluster, id.deployment, i64::from(id.number), report.generation, is_stopped],
        )
        .await?;
    let Some(mut row) = row else { return Ok(()) };
    let (node, request) = (row.take::<String>()?, row.take::<Json<_>>()?.0);
    if let Some(name) = row.take::<Option<String>>()? {
        machine::release(tx, &name, &request);
    }
    capacity::release(tx, &Place { cluster, node: node.into() }, &request).await?;
    replica::uncount_if_last(tx, id.deployment, cluster).await?;
    cluster::record_capacity_release(tx, cluster).await
}

/// Handles a stopped replica: releases its capacity, and deletes it if requested.
async fn stopped(
    tx: &mut Tx,
    deployment: &Deployment,
    mut replicas: Vec<Replica>,
    found: usize,
) -> Result<()> {
    if replicas[found].status.is_placed() {
        return hosting::handle_stop(tx, deployment, &mut replicas, found).await;
    }
    replica::release(tx, deployment, &mut replicas[found]).await?;
    if replicas[found].status == Status::Deleting {
        replica::delete(tx, replicas[found].id).await?;
        replicas.remove(found);
    }
    let deployment = summarize(tx, deployment, &replicas, STOPPED).await?;
    delete_if_empty(tx, &deployment, &replicas).await
}

async fn observe(
    tx: &mut Tx,
    deployment: &Deployment,
    replicas: &mut [Replica],
    found: usize,
    (observed, tail): (&Observed, &[LogLine]),
) -> Result<()> {
    let replica = &replicas[found];
    let none: &[String] = &[];
    let (status, reason, endpoints) = match observed {
        Observed::Starting => (Status::Starting, Reason::AsExpected, none),
        Observed::Restarting { reason } => (Status::Starting, reason.clone(), none),
        Observed::Running { endpoints } => {
            (Status::Running, Reason::AsExpected, endpoints.as_slice())
        }
        Observed::Completed => (Status::Completed, Reason::AsExpected, none),
        Observed::Failed { reason } => (Status::Failed, reason.clone(), none),
        Observed::Gone => return Ok(()),
    };
    let is_unchanged = status == replica.status
        && endpoints == replica.endpoints
        && (reason == replica.reason || *observed == Observed::Starting);
    if is_unchanged || (status != replica.status && !replica.status.may_become(status)) {
        return Ok(());
    }
    // An ended replica must be cleaned up before its capacity is released: a new desired state.
    let agent = if status.is_placed() { Agent::Unaffected } else { Agent::Acknowledges };
    let change = Change { endpoints: Some(endpoints), ..Change::new(status, reason, agent) };
    transition_replicas(tx, [&mut replicas[found]], &change).await?;
    let id = replicas[found].id;
    if !tail.is_empty() {
        replica::set_tail(tx, id, tail).await?;
    }
    if status == Status::Failed {
        // A deployment with a failed replica has failed.
        let others = replicas.iter_mut().filter(|r| r.status.is_placed() || r.status.is_pending());
        let reason = Reason::SiblingFailed { replica: id.number };
        let change = Change::new(Status::Failed, reason, Agent::Acknowledges);
        transition_replicas(tx, others, &change).await?;
    }
    let deployment = summarize(tx, deployment, replicas, status.as_str()).await?;
    if status == Status::Running {
        super::plan_end(tx, &deployment);
    }
    Ok(())
}
