//! Handles `accepted`: reserves capacity, and waits with the reason while no cluster has any.

use model::Resources;
use model::cluster::Cluster;
use model::deployment::{Deployment, Reason as DeploymentReason, Status as DeploymentStatus};
use model::instance::{Instance, Reason, Status, Versions};
use model::kind::Kind;
use model::work::Requeue;
use store::deployment::hosting;
use store::{Scope, Tx, cluster, deployment, instance};

use super::{InstanceWorker, Outcome};
use crate::Error;
use crate::locked::{Locked, existing};

pub(super) async fn step(
    ctx: &InstanceWorker,
    kind: &Kind,
    instance: &Instance,
) -> Result<Outcome, Error> {
    let Some(Locked { mut tx, mut now }) = ctx.lock(instance).await? else {
        return Ok(Outcome::Moved);
    };
    let asked = hosting::required_resources(&mut tx, &now, &kind.unit(&now.instance_type)).await?;
    let Some(held) = held(&mut tx, &now, &asked).await? else {
        hosting::reserve(&mut tx, &mut now, &asked, kind.priority).await?;
        tx.commit().await?;
        return Ok(Outcome::Wait(until_deadline(&now)));
    };
    let is_overdue = now.deadline().is_some_and(|end| end <= tx.now());
    let reason = match held.placed_on {
        // Placement has not evaluated it yet; it will record the reason.
        None if held.reason == DeploymentReason::AwaitingPlacement && !is_overdue => {
            return Ok(Outcome::Wait(until_deadline(&now)));
        }
        None => Reason::DeploymentPending { reason: held.reason.clone() },
        Some(id) => {
            let on = cluster::get(&mut tx, Scope::All, id).await?;
            if let Some(versions) = newest(kind, &on) {
                now.cluster_id = Some(id);
                now.detail.desired = versions;
                let reason = Reason::Placed { cluster: on.name };
                instance::transition(&mut tx, &mut now, Status::Preparing, reason).await?;
                tx.commit().await?;
                return Ok(Outcome::Moved);
            }
            Reason::VersionsUnknown { cluster: on.name }
        }
    };
    if is_overdue {
        deployment::request_delete(&mut tx, Scope::All, held.id).await?;
        now.deployment_id = None;
        let reason = super::overdue(&now, reason);
        instance::transition(&mut tx, &mut now, Status::Failed, reason).await?;
        tx.commit().await?;
        return Ok(Outcome::Moved);
    }
    instance::explain(&mut tx, &mut now, reason).await?;
    tx.commit().await?;
    Ok(Outcome::Wait(until_deadline(&now)))
}

fn until_deadline(now: &Instance) -> Requeue {
    now.deadline().map_or(Requeue::OnChange, Requeue::At)
}

/// The deployment that reserves the instance's capacity. An outdated or ended one is deleted.
async fn held(tx: &mut Tx, now: &Instance, asked: &Resources) -> Result<Option<Deployment>, Error> {
    let Some(id) = now.deployment_id else { return Ok(None) };
    let found = existing(deployment::get(tx, Scope::All, id).await)?;
    let Some(held) = found else { return Ok(None) };
    if held.status == DeploymentStatus::Deleting {
        return Ok(None);
    }
    let is_changed = held.placed_on.is_none() && held.spec.resources != *asked;
    if is_changed || matches!(held.status, DeploymentStatus::Failed | DeploymentStatus::Completed) {
        deployment::request_delete(tx, Scope::All, id).await?;
        return Ok(None);
    }
    Ok(Some(held))
}

/// The newest versions that a cluster can run; `None` until its agent has reported them.
fn newest(kind: &Kind, on: &Cluster) -> Option<Versions> {
    if !on.hosting.is_foreign {
        let own = kind.default_version();
        return Some(Versions {
            operator: own.operator.clone(),
            service: own.version.clone(),
            protocol: own.ibp.clone().unwrap_or_default(),
        });
    }
    let offered = on.hosting.versions.get(&kind.name)?;
    let newest = offered.iter().rev().find(|offered| offered.is_ready)?;
    Some(Versions {
        operator: newest.operator.clone(),
        service: newest.services.last()?.clone(),
        protocol: newest.protocols.last().cloned().unwrap_or_default(),
    })
}
