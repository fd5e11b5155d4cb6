//! Acts on `provisioning`, `resuming`, `suspending` and `failed`: waits for the agent's word.

use model::cluster::Cluster;
use model::deployment::{self, Deployment};
use model::instance::{External, Instance, Reason, Rest, Status};
use model::kind::Kind;
use model::reason::By;
use model::work::Next;
use store::deployment::hosting;
use store::instance;

use super::sign_in::Trouble;
use super::{Instances, Outcome, names, program};
use crate::Error;
use crate::held::Held;

pub(super) async fn step(all: &Instances, kind: &Kind, seen: &Instance) -> Result<Outcome, Error> {
    let (on, held) = (all.cluster_of(seen).await?, all.deployment_of(seen).await?);
    let (Some(on), Some(held)) = (on, &held) else { return unplaced(all, seen, held).await };
    let outcome = if on.hosting.is_foreign {
        with_foreign_agent(all, seen).await?
    } else {
        with_own_agent(all, kind, seen, held).await?
    };
    match outcome {
        Some(outcome) => Ok(outcome),
        None => wait(all, seen, &on).await,
    }
}

/// It has neither a cluster nor capacity: a failed one rests, all others begin again.
async fn unplaced(
    all: &Instances,
    seen: &Instance,
    held: Option<Deployment>,
) -> Result<Outcome, Error> {
    match seen.status {
        Status::Failed => Ok(Outcome::Wait(Next::Rest)),
        Status::Suspending => all.transition(seen, Status::Suspended, suspension(seen)).await,
        _ => {
            let reason = Reason::PlacementLost { deployment: held.map(|held| held.reason) };
            all.transition(seen, Status::Accepted, reason).await
        }
    }
}

async fn with_own_agent(
    all: &Instances,
    kind: &Kind,
    seen: &Instance,
    held: &Deployment,
) -> Result<Option<Outcome>, Error> {
    let runs = held.spec.image.is_some();
    match (seen.status, held.status) {
        (Status::Suspending, deployment::Status::Running) if !runs => {
            all.transition(seen, Status::Suspended, suspension(seen)).await.map(Some)
        }
        (Status::Suspending, _) if runs => {
            let Some(Held { mut tx, .. }) = all.still(seen).await? else {
                return Ok(Some(Outcome::Moved));
            };
            hosting::rest(&mut tx, held.id).await?;
            tx.commit().await?;
            Ok(None)
        }
        (Status::Resuming, _) if !runs => start(all, kind, seen, held).await.map(Some),
        (Status::Suspending, _) => Ok(None),
        (status, deployment::Status::Failed | deployment::Status::Completed)
            if status != Status::Failed =>
        {
            let reason = Reason::DeploymentFailed { reason: held.reason.clone() };
            all.transition(seen, Status::Failed, reason).await.map(Some)
        }
        // It may run again already, but elsewhere: its names must follow first.
        (Status::Provisioning | Status::Resuming, _) if held.placed_on != seen.cluster_id => {
            let reason = Reason::PlacementLost { deployment: Some(held.reason.clone()) };
            all.transition(seen, Status::Accepted, reason).await.map(Some)
        }
        (_, deployment::Status::Running) if runs => arrive(all, seen, held).await.map(Some),
        _ => Ok(None),
    }
}

/// Why it is suspended, whatever its reason was while its agent stopped it.
fn suspension(seen: &Instance) -> Reason {
    match (seen.detail.rest, seen.expires_at, &seen.reason) {
        (Some(Rest::Entitlement), Some(_), Reason::EntitlementExpired { .. }) => {
            seen.reason.clone()
        }
        (Some(Rest::Entitlement), delete_at @ Some(_), _) => {
            Reason::EntitlementExpired { message: "no active grant".into(), delete_at }
        }
        _ => Reason::SuspensionRequested { by: Some(By::Administrator { name: None }) },
    }
}

/// It runs: it can be used from now on.
async fn arrive(all: &Instances, seen: &Instance, held: &Deployment) -> Result<Outcome, Error> {
    let Some(Held { mut tx, mut now }) = all.still(seen).await? else { return Ok(Outcome::Moved) };
    now.detail.endpoints.clone_from(&held.endpoints);
    now.detail.actual = now.detail.desired.clone();
    now.detail.upgrading.clear();
    instance::transition(&mut tx, &mut now, Status::Ready, Reason::AsExpected).await?;
    tx.commit().await?;
    Ok(Outcome::Moved)
}

/// Has its program run again after a rest.
async fn start(
    all: &Instances,
    kind: &Kind,
    seen: &Instance,
    held: &Deployment,
) -> Result<Outcome, Error> {
    let program = match program::as_kept(all, kind, seen, held.id).await {
        Ok(program) => program,
        Err(met) => return all.trouble(seen, met).await,
    };
    let Some(Held { mut tx, now }) = all.still(seen).await? else { return Ok(Outcome::Moved) };
    hosting::run(&mut tx, held.id, &program).await?;
    tx.commit().await?;
    Ok(Outcome::Wait(now.deadline().map_or(Next::Rest, Next::At)))
}

/// A foreign agent has said how it is doing; its names are ours to make.
async fn with_foreign_agent(all: &Instances, seen: &Instance) -> Result<Option<Outcome>, Error> {
    let is_coming = matches!(seen.status, Status::Provisioning | Status::Resuming | Status::Failed);
    if !is_coming || !seen.detail.is_agent_ready || seen.detail.routes.is_empty() {
        return Ok(None);
    }
    if !seen.detail.routes_made
        && let Some(dns) = &all.outside.dns
        && let Err(fault) = names::point(&**dns, &seen.detail.routes).await
    {
        return all.trouble(seen, Trouble::Outside(External::Dns, fault)).await.map(Some);
    }
    let Some(Held { mut tx, mut now }) = all.still(seen).await? else {
        return Ok(Some(Outcome::Moved));
    };
    now.detail.routes_made = true;
    instance::transition(&mut tx, &mut now, Status::Ready, Reason::AsExpected).await?;
    tx.commit().await?;
    Ok(Some(Outcome::Moved))
}

/// Nothing to do; unless it takes too long.
async fn wait(all: &Instances, seen: &Instance, on: &Cluster) -> Result<Outcome, Error> {
    let Some(end) = seen.deadline() else { return Ok(Outcome::Wait(Next::Rest)) };
    if end > all.db.now() {
        return Ok(Outcome::Wait(Next::At(end)));
    }
    let reason = Reason::AgentNotResponding { cluster: Some(on.name.clone()), due: end };
    if seen.status.may_become(Status::Failed) {
        return all.transition(seen, Status::Failed, reason).await;
    }
    all.explain(seen, reason).await?;
    Ok(Outcome::Wait(Next::At(all.soon(super::LOOK_AGAIN * 12))))
}
