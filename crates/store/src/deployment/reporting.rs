//! What agents shall do, and what they say they did.

use model::agent::{Desired, Observed, Report};
use model::cluster::Provider;
use model::deployment::{Deployment, Reason, Spec, Status};
use model::log::LogLine;
use model::replica::Replica;
use model::{ClusterId, Place, ReplicaId};

use super::placing::STOPPED;
use super::{clear_away, hosting, replica, take_if_there};
use crate::db::{Json, Row, Select, params, sql};
use crate::status::{Agent, Change, settle, transition_replicas};
use crate::{Error, Read, Result, Tx, capacity, cluster};

/// Whose agent asks.
#[derive(Debug, Clone, Copy)]
pub enum Served {
    /// The agent inside the server: all clusters of this machine.
    Provider(Provider),
    /// The agent of one cluster.
    Cluster(ClusterId),
}

/// What an agent shall do: all of it, or only what it has not answered.
pub async fn desired(read: &mut Read, whose: Served, all: bool) -> Result<Vec<Desired>> {
    let select = Select::new(
        "SELECT r.deployment_id, r.number, r.cluster_id, r.node, r.desired, r.status, d.spec \
         FROM replica r JOIN deployment d ON d.id = r.deployment_id \
         WHERE (d.image IS NOT NULL OR r.answered < r.desired) AND r.cluster_id IS NOT NULL",
    );
    let select = if all { select } else { select.text(" AND r.answered < r.desired") };
    let order = " ORDER BY r.deployment_id, r.number";
    let rows = of_agent(select, "r.cluster_id", &whose).text(order).all(read).await?;
    let mut desired = rows.into_iter().map(from_row).collect::<Result<Vec<_>>>()?;
    let select = Select::new(
        "SELECT deployment_id, number, cluster_id, node, desired FROM leftover WHERE desired > 0",
    );
    for mut row in of_agent(select, "cluster_id", &whose).all(read).await? {
        desired.push(wish_to_end(&mut row)?);
    }
    Ok(desired)
}

fn of_agent<'a>(select: Select<'a>, column: &str, whose: &'a Served) -> Select<'a> {
    match whose {
        Served::Cluster(id) => select.and(&format!("{column} = ?"), Some(id)),
        Served::Provider(provider) => {
            let own = format!("{column} IN (SELECT id FROM cluster WHERE provider = ?)");
            select.and(&own, Some(provider))
        }
    }
}

fn from_row(mut row: Row) -> Result<Desired> {
    let mut desired = wish_to_end(&mut row)?;
    let (status, spec): (Status, Json<Spec>) = (row.take()?, row.take()?);
    // What has no program only holds its capacity: if something runs, it shall end.
    desired.run = status.is_wanted().then_some(spec.0).filter(|spec| spec.image.is_some());
    Ok(desired)
}

/// That nothing of a replica shall be there.
fn wish_to_end(row: &mut Row) -> Result<Desired> {
    let (deployment, number) = (row.take()?, row.take::<i64>()?);
    let number = u32::try_from(number).map_err(|_| Error::Broken("a replica's number".into()))?;
    Ok(Desired {
        replica: ReplicaId { deployment, number },
        cluster: row.take()?,
        node: row.take()?,
        generation: row.take()?,
        run: None,
    })
}

/// Takes in a report. One that answers an older wish, or says nothing new, changes nothing.
///
/// The lock of its cluster must be held.
pub async fn report(tx: &mut Tx, report: &Report) -> Result<()> {
    clear_leftover(tx, report).await?;
    if !is_of_now(tx, report).await? {
        return Ok(());
    }
    let Some(deployment) = take_if_there(tx, report.replica.deployment).await? else {
        return Ok(());
    };
    let mut replicas = replica::of(tx, deployment.id).await?;
    let is_it = |replica: &Replica| {
        replica.id == report.replica
            && replica.desired == report.generation
            && replica.place.as_ref().is_some_and(|place| place.cluster == report.cluster)
    };
    let Some(found) = replicas.iter().position(is_it) else { return Ok(()) };
    answer(tx, &replicas[found]).await?;
    match &report.observed {
        Observed::Gone => gone(tx, &deployment, replicas, found).await,
        observed if replicas[found].status.is_wanted() => {
            let said = (observed, report.tail.as_slice());
            observe(tx, &deployment, &mut replicas, found, said).await
        }
        _ => Ok(()),
    }
}

/// Does it speak of something that is there? Else its deployment, which may be anybody's, is not
/// even locked.
async fn is_of_now(read: &mut Read, report: &Report) -> Result<bool> {
    let sql = sql!(
        "SELECT COUNT(*) FROM replica WHERE deployment_id = $1 AND number = $2 AND cluster_id = $3 ",
        "AND desired = $4"
    );
    let (id, number) = (report.replica.deployment, i64::from(report.replica.number));
    let found = read.number(sql, params![id, number, report.cluster, report.generation]).await?;
    Ok(found == 1)
}

async fn answer(tx: &mut Tx, replica: &Replica) -> Result<()> {
    let number = i64::from(replica.id.number);
    tx.run(
        sql!("UPDATE replica SET answered = $3 WHERE deployment_id = $1 AND number = $2 AND answered < $3"),
        params![replica.id.deployment, number, replica.desired],
    )
    .await
    .map(drop)
}

/// Nothing is left of a replica that was lost with its cluster once the agent has answered a wish
/// that came after: its capacity is free.
async fn clear_leftover(tx: &mut Tx, report: &Report) -> Result<()> {
    let (id, cluster) = (report.replica, report.cluster);
    let is_gone = i64::from(report.observed == Observed::Gone);
    let row = tx
        .first(
            sql!(
                "DELETE FROM leftover WHERE cluster_id = $1 AND deployment_id = $2 AND number = $3 ",
                "AND (desired < $4 OR (desired = $4 AND CAST($5 AS BIGINT) = 1)) ",
                "RETURNING node, request"
            ),
            params![cluster, id.deployment, i64::from(id.number), report.generation, is_gone],
        )
        .await?;
    let Some(mut row) = row else { return Ok(()) };
    let (node, request) = (row.take::<String>()?, row.take::<Json<_>>()?.0);
    capacity::release(tx, &Place { cluster, node: node.into() }, &request).await?;
    replica::forget(tx, id.deployment, cluster).await?;
    cluster::freed(tx, cluster).await
}

/// Nothing is left of it: its capacity is free, and if it shall go, it is gone.
async fn gone(
    tx: &mut Tx,
    deployment: &Deployment,
    mut replicas: Vec<Replica>,
    found: usize,
) -> Result<()> {
    if replicas[found].status.is_wanted() {
        return hosting::stopped(tx, deployment, &mut replicas, found).await;
    }
    replica::leave(tx, deployment, &mut replicas[found]).await?;
    if replicas[found].status == Status::Deleting {
        replica::delete(tx, replicas[found].id).await?;
        replicas.remove(found);
    }
    let deployment = settle(tx, deployment, &replicas, STOPPED).await?;
    clear_away(tx, &deployment, &replicas).await
}

async fn observe(
    tx: &mut Tx,
    deployment: &Deployment,
    replicas: &mut [Replica],
    found: usize,
    (observed, tail): (&Observed, &[LogLine]),
) -> Result<()> {
    let seen = &replicas[found];
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
    let is_known = status == seen.status
        && endpoints == seen.endpoints
        && (reason == seen.reason || *observed == Observed::Starting);
    if is_known || (status != seen.status && !seen.status.may_become(status)) {
        return Ok(());
    }
    // What has ended must be cleared away before its capacity is free: a new wish for the agent.
    let agent = if status.is_wanted() { Agent::Unconcerned } else { Agent::Answers };
    let change = Change { endpoints: Some(endpoints), ..Change::new(status, reason, agent) };
    transition_replicas(tx, [&mut replicas[found]], &change).await?;
    let id = replicas[found].id;
    if !tail.is_empty() {
        replica::set_tail(tx, id, tail).await?;
    }
    if status == Status::Failed {
        // A part of what was asked for is not what was asked for.
        let others = replicas.iter_mut().filter(|r| r.status.is_wanted() || r.status.is_waiting());
        let reason = Reason::SiblingFailed { replica: id.number };
        let change = Change::new(Status::Failed, reason, Agent::Answers);
        transition_replicas(tx, others, &change).await?;
    }
    let deployment = settle(tx, deployment, replicas, status.as_str()).await?;
    if status == Status::Running {
        super::plan_end(tx, &deployment);
    }
    Ok(())
}
