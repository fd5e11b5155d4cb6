//! Handles `provisioning`, `resuming`, `suspending` and `failed`: waits for the agent.

use model::cluster::Cluster;
use model::deployment::{self, Deployment};
use model::instance::{External, Instance, Reason, Status, Suspension};
use model::kind::Kind;
use model::reason::Requester;
use model::work::Requeue;
use store::deployment::hosting;
use store::instance;

use super::sso_client::StepError;
use super::{InstanceWorker, Outcome, dns_records, program};
use crate::Error;
use crate::locked::Locked;

pub(super) async fn step(
    ctx: &InstanceWorker,
    kind: &Kind,
    instance: &Instance,
) -> Result<Outcome, Error> {
    let (on, held) = (ctx.cluster_of(instance).await?, ctx.deployment_of(instance).await?);
    let (Some(on), Some(held)) = (on, &held) else {
        return unplaced(ctx, instance, held).await;
    };
    let outcome = if on.hosting.is_foreign {
        third_party_agent(ctx, instance).await?
    } else {
        own_agent(ctx, kind, instance, held).await?
    };
    match outcome {
        Some(outcome) => Ok(outcome),
        None => wait(ctx, instance, &on).await,
    }
}

/// Handles an instance without cluster or capacity: a failed one stays, the others start over.
async fn unplaced(
    ctx: &InstanceWorker,
    instance: &Instance,
    held: Option<Deployment>,
) -> Result<Outcome, Error> {
    match instance.status {
        Status::Failed => Ok(Outcome::Wait(Requeue::OnChange)),
        Status::Suspending => {
            ctx.transition(instance, Status::Suspended, suspension(instance)).await
        }
        _ => {
            let reason = Reason::PlacementLost { deployment: held.map(|held| held.reason) };
            ctx.transition(instance, Status::Accepted, reason).await
        }
    }
}

async fn own_agent(
    ctx: &InstanceWorker,
    kind: &Kind,
    instance: &Instance,
    held: &Deployment,
) -> Result<Option<Outcome>, Error> {
    let runs = held.spec.image.is_some();
    match (instance.status, held.status) {
        (Status::Suspending, deployment::Status::Running) if !runs => {
            ctx.transition(instance, Status::Suspended, suspension(instance)).await.map(Some)
        }
        (Status::Suspending, _) if runs => {
            let Some(Locked { mut tx, .. }) = ctx.lock(instance).await? else {
                return Ok(Some(Outcome::Moved));
            };
            hosting::suspend(&mut tx, held.id).await?;
            tx.commit().await?;
            Ok(None)
        }
        (Status::Resuming, _) if !runs => start(ctx, kind, instance, held).await.map(Some),
        (Status::Suspending, _) => Ok(None),
        (status, deployment::Status::Failed | deployment::Status::Completed)
            if status != Status::Failed =>
        {
            let reason = Reason::DeploymentFailed { reason: held.reason.clone() };
            ctx.transition(instance, Status::Failed, reason).await.map(Some)
        }
        // It may already run on another cluster: the DNS records must be updated first.
        (Status::Provisioning | Status::Resuming, _) if held.placed_on != instance.cluster_id => {
            let reason = Reason::PlacementLost { deployment: Some(held.reason.clone()) };
            ctx.transition(instance, Status::Accepted, reason).await.map(Some)
        }
        (_, deployment::Status::Running) if runs => mark_ready(ctx, instance, held).await.map(Some),
        _ => Ok(None),
    }
}

/// Why the instance is suspended, whatever the reason was while it was suspending.
fn suspension(instance: &Instance) -> Reason {
    match (instance.detail.rest, instance.expires_at, &instance.reason) {
        (Some(Suspension::Entitlement), Some(_), Reason::EntitlementExpired { .. }) => {
            instance.reason.clone()
        }
        (Some(Suspension::Entitlement), delete_at @ Some(_), _) => {
            Reason::EntitlementExpired { message: "no active grant".into(), delete_at }
        }
        _ => Reason::SuspensionRequested { by: Some(Requester::Administrator { name: None }) },
    }
}

/// Marks the instance as ready.
async fn mark_ready(
    ctx: &InstanceWorker,
    instance: &Instance,
    held: &Deployment,
) -> Result<Outcome, Error> {
    let Some(Locked { mut tx, mut now }) = ctx.lock(instance).await? else {
        return Ok(Outcome::Moved);
    };
    now.detail.endpoints.clone_from(&held.endpoints);
    now.detail.actual = now.detail.desired.clone();
    now.detail.upgrading.clear();
    instance::transition(&mut tx, &mut now, Status::Ready, Reason::AsExpected).await?;
    tx.commit().await?;
    Ok(Outcome::Moved)
}

/// Starts a suspended instance again.
async fn start(
    ctx: &InstanceWorker,
    kind: &Kind,
    instance: &Instance,
    held: &Deployment,
) -> Result<Outcome, Error> {
    let program = match program::with_stored_client(ctx, kind, instance, held.id).await {
        Ok(program) => program,
        Err(error) => return ctx.handle_error(instance, error).await,
    };
    let Some(Locked { mut tx, now }) = ctx.lock(instance).await? else {
        return Ok(Outcome::Moved);
    };
    hosting::run(&mut tx, held.id, &program).await?;
    tx.commit().await?;
    Ok(Outcome::Wait(now.deadline().map_or(Requeue::OnChange, Requeue::At)))
}

/// Processes the report of a third-party agent; the DNS records are created here.
async fn third_party_agent(
    ctx: &InstanceWorker,
    instance: &Instance,
) -> Result<Option<Outcome>, Error> {
    let is_coming =
        matches!(instance.status, Status::Provisioning | Status::Resuming | Status::Failed);
    if !is_coming || !instance.detail.is_agent_ready || instance.detail.routes.is_empty() {
        return Ok(None);
    }
    if !instance.detail.routes_made
        && let Some(dns) = &ctx.external.dns
        && let Err(fault) = dns_records::point(&**dns, &instance.detail.routes).await
    {
        return ctx
            .handle_error(instance, StepError::External(External::Dns, fault))
            .await
            .map(Some);
    }
    let Some(Locked { mut tx, mut now }) = ctx.lock(instance).await? else {
        return Ok(Some(Outcome::Moved));
    };
    now.detail.routes_made = true;
    instance::transition(&mut tx, &mut now, Status::Ready, Reason::AsExpected).await?;
    tx.commit().await?;
    Ok(Some(Outcome::Moved))
}

/// Waits, until the deadline passes.
async fn wait(ctx: &InstanceWorker, instance: &Instance, on: &Cluster) -> Result<Outcome, Error> {
    let Some(end) = instance.deadline() else { return Ok(Outcome::Wait(Requeue::OnChange)) };
    if end > ctx.db.now() {
        return Ok(Outcome::Wait(Requeue::At(end)));
    }
    let reason = Reason::AgentNotResponding { cluster: Some(on.name.clone()), due: end };
    if instance.status.may_become(Status::Failed) {
        return ctx.transition(instance, Status::Failed, reason).await;
    }
    ctx.explain(instance, reason).await?;
    Ok(Outcome::Wait(Requeue::At(ctx.soon(super::POLL * 12))))
}
