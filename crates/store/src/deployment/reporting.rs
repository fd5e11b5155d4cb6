//! What agents shall do, and what they say they did.

use model::agent::{Desired, Observed, Report};
use model::cluster::Provider;
use model::deployment::{Deployment, Status};

use super::placing::unplace;
use super::{columns, delete, from_row, note};
use crate::db::{Json, params, sql};
use crate::{Error, Read, Result, Scope, Tx};

/// What the agent of this provider's clusters shall do: all of it, or only what it has not answered.
pub async fn desired(read: &mut Read, provider: Provider, all: bool) -> Result<Vec<Desired>> {
    let everything = sql!(
        "SELECT ",
        columns!(),
        " FROM deployment WHERE placed_on IN (SELECT id FROM cluster WHERE provider = $1) ",
        "AND image IS NOT NULL ORDER BY id"
    );
    let unanswered = sql!(
        "SELECT ",
        columns!(),
        " FROM deployment WHERE answered < desired AND placed_on IN ",
        "(SELECT id FROM cluster WHERE provider = $1) AND image IS NOT NULL ORDER BY id LIMIT 1000"
    );
    let rows = read.all(if all { everything } else { unanswered }, params![provider]).await?;
    let deployments = rows.into_iter().map(from_row).collect::<Result<Vec<_>>>()?;
    Ok(deployments.into_iter().filter_map(as_desired).collect())
}

fn as_desired(deployment: Deployment) -> Option<Desired> {
    let wanted = deployment.status.is_wanted();
    Some(Desired {
        deployment: deployment.id,
        cluster: deployment.placed_on?,
        generation: deployment.desired,
        run: wanted.then_some(deployment.spec),
    })
}

/// Takes in a report. One that answers an older wish, or says nothing new, changes nothing.
pub async fn report(tx: &mut Tx, report: &Report) -> Result<()> {
    let deployment = match super::get(tx, Scope::All, report.deployment).await {
        Err(Error::NotFound { .. }) => return Ok(()),
        other => other?,
    };
    if deployment.desired != report.generation {
        return Ok(());
    }
    answer(tx, &deployment).await?;
    match &report.observed {
        Observed::Gone => gone(tx, &deployment).await,
        observed if deployment.status.is_wanted() => observe(tx, &deployment, observed).await,
        _ => Ok(()),
    }
}

async fn answer(tx: &mut Tx, deployment: &Deployment) -> Result<()> {
    tx.run(
        sql!("UPDATE deployment SET answered = $2 WHERE id = $1 AND answered < $2"),
        params![deployment.id, deployment.desired],
    )
    .await
    .map(drop)
}

/// Nothing is left of it: its capacity is free, and if it shall go, it is gone.
async fn gone(tx: &mut Tx, deployment: &Deployment) -> Result<()> {
    if deployment.status.is_wanted() || deployment.placed_on.is_none() {
        return Ok(());
    }
    let deployment = unplace(tx, deployment).await?;
    match deployment.status {
        Status::Deleting => delete(tx, &deployment).await,
        _ => Ok(()),
    }
}

async fn observe(tx: &mut Tx, deployment: &Deployment, observed: &Observed) -> Result<()> {
    let none: &[String] = &[];
    let (status, reason, endpoints) = match observed {
        Observed::Starting => (Status::Starting, "Its agent starts it.", none),
        Observed::Running { endpoints } => (Status::Running, "It runs.", endpoints.as_slice()),
        Observed::Completed => (Status::Completed, "It ran to its end.", none),
        Observed::Failed { reason } => (Status::Failed, reason.as_str(), none),
        Observed::Gone => return Ok(()),
    };
    if status == deployment.status && endpoints == deployment.endpoints {
        return Ok(());
    }
    if status != deployment.status && !deployment.status.may_become(status) {
        return Ok(());
    }
    let now = tx.now();
    // What has ended must be cleared away before its capacity is free: a new wish for the agent.
    let ended = i64::from(!status.is_wanted());
    let running = (status == Status::Running).then_some(now);
    let moved = tx
        .run(
            sql!(
                "UPDATE deployment SET status = $2, status_reason = $3, endpoints = $4, ",
                "desired = desired + $5, started_at = COALESCE($6, started_at), updated_at = $7 ",
                "WHERE id = $1 AND desired = $8 AND status = $9"
            ),
            params![
                deployment.id,
                status,
                reason,
                Json(&endpoints),
                ended,
                running,
                now,
                deployment.desired,
                deployment.status
            ],
        )
        .await?;
    // Whoever changed it meanwhile made this report old.
    if moved == 1 {
        note(tx, deployment.id, status.as_str()).await?;
    }
    Ok(())
}
