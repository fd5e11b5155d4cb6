//! Handles `ready` and `suspended`: repairs drift of external objects, and detects failures.

use std::time::Duration;

use model::deployment::{self, Deployment};
use model::instance::{External, Instance, Reason, Status};
use model::kind::Kind;
use model::work::Requeue;
use store::deployment::hosting;
use store::instance;

use super::sso_client::StepError;
use super::{InstanceWorker, Outcome, dns_records, program, sso_client};
use crate::Error;
use crate::locked::Locked;

/// How often external objects are checked.
const EXTERNAL_CHECK: Duration = Duration::from_mins(10);

pub(super) async fn step(
    ctx: &InstanceWorker,
    kind: &Kind,
    instance: &Instance,
) -> Result<Outcome, Error> {
    if instance.status == Status::Ready
        && let Some(outcome) = check_deployment(ctx, instance).await?
    {
        return Ok(outcome);
    }
    if instance.status == Status::Ready
        && instance.detail.desired != instance.detail.actual
        && let Err(error) = upgrade(ctx, kind, instance).await
    {
        return ctx.handle_error(instance, error).await;
    }
    match repair_external(ctx, kind, instance).await {
        Ok(true) => Ok(Outcome::Wait(Requeue::At(ctx.soon(EXTERNAL_CHECK)))),
        Ok(false) => Ok(Outcome::Wait(Requeue::OnChange)),
        Err(StepError::Internal(error)) => Err(error),
        // The instance still works: the failed check is repeated.
        Err(StepError::External(system, fault)) => {
            tracing::warn!(instance = %instance.id, %system, %fault, "external check failed");
            Ok(Outcome::Wait(Requeue::At(ctx.soon(super::POLL * 2))))
        }
    }
}

/// Checks that the deployment still runs on the right cluster.
async fn check_deployment(
    ctx: &InstanceWorker,
    instance: &Instance,
) -> Result<Option<Outcome>, Error> {
    let Some(held) = own_deployment(ctx, instance).await? else { return Ok(None) };
    let failed = matches!(
        held.status,
        deployment::Status::Failed | deployment::Status::Completed | deployment::Status::Deleting
    );
    if failed {
        let reason = Reason::DeploymentFailed { reason: held.reason };
        return ctx.transition(instance, Status::Failed, reason).await.map(Some);
    }
    if held.placed_on != instance.cluster_id {
        let reason = Reason::PlacementLost { deployment: Some(held.reason) };
        return ctx.transition(instance, Status::Accepted, reason).await.map(Some);
    }
    if held.status != deployment::Status::Running || held.endpoints.is_empty() {
        return Ok(None);
    }
    let is_elsewhere = held.endpoints != instance.detail.endpoints;
    let is_new = !instance.detail.upgrading.is_empty();
    if (is_elsewhere || is_new)
        && let Some(Locked { mut tx, mut now }) = ctx.lock(instance).await?
    {
        now.detail.endpoints = held.endpoints;
        now.detail.upgrading.clear();
        now.detail.actual = now.detail.desired.clone();
        instance::save(&mut tx, &mut now, if is_new { "upgraded" } else { "moved" }).await?;
        tx.commit().await?;
    }
    Ok(None)
}

/// The deployment that runs the instance, if Paddock's own agent does.
async fn own_deployment(
    ctx: &InstanceWorker,
    instance: &Instance,
) -> Result<Option<Deployment>, Error> {
    let held = ctx.deployment_of(instance).await?;
    Ok(held.filter(|held| held.spec.image.is_some()))
}

/// Repairs external objects. Returns `false` if there are none to check.
async fn repair_external(
    ctx: &InstanceWorker,
    kind: &Kind,
    instance: &Instance,
) -> Result<bool, StepError> {
    let mut repaired = Vec::new();
    if let Some(dns) = &ctx.external.dns {
        let names = dns_records::repair(&**dns, &instance.detail.routes).await;
        repaired.extend(names.map_err(StepError::external(External::Dns))?);
    }
    let sso = ctx.external.sso.as_ref().filter(|_| kind.needs.sso);
    if let Some(sso) = sso {
        let (client, is_new) = sso_client::ensure(ctx, &**sso, instance).await?;
        if is_new {
            repaired.push(format!("client {}", client.id));
            restart(ctx, kind, instance, &client).await?;
        } else if let Some(client) = sso_client::rotate(ctx, &**sso, instance, &client).await? {
            restart(ctx, kind, instance, &client).await?;
        }
    }
    if !repaired.is_empty() {
        tracing::info!(instance = %instance.id, ?repaired, "repaired external objects");
        let locked = ctx.lock(instance).await.map_err(StepError::Internal)?;
        if let Some(Locked { mut tx, mut now }) = locked {
            let reason = Reason::Repaired { objects: repaired };
            instance::explain(&mut tx, &mut now, reason).await?;
            tx.commit().await?;
        }
    }
    Ok(ctx.external.dns.is_some() || sso.is_some())
}

/// Deploys the desired versions, where Paddock's own agent runs the instance.
async fn upgrade(ctx: &InstanceWorker, kind: &Kind, instance: &Instance) -> Result<(), StepError> {
    let held = own_deployment(ctx, instance).await.map_err(StepError::Internal)?;
    let Some(held) = held.filter(|_| instance.detail.upgrading.is_empty()) else { return Ok(()) };
    let program = program::with_stored_client(ctx, kind, instance, held.id).await?;
    let Some(Locked { mut tx, mut now }) = ctx.lock(instance).await.map_err(StepError::Internal)?
    else {
        return Ok(());
    };
    now.detail.upgrading = vec!["service".into()];
    instance::save(&mut tx, &mut now, "upgrading").await?;
    hosting::run(&mut tx, held.id, &program).await?;
    Ok(tx.commit().await?)
}

/// Redeploys with the new client secret.
async fn restart(
    ctx: &InstanceWorker,
    kind: &Kind,
    instance: &Instance,
    client: &port::SsoClient,
) -> Result<(), StepError> {
    let Some(held) = own_deployment(ctx, instance).await.map_err(StepError::Internal)? else {
        return Ok(());
    };
    let program = program::spec(ctx, kind, instance, held.id, Some(client)).await?;
    let has_secrets = !program.sealed_env.is_empty() || program.sealed_manifests.is_some();
    if !has_secrets && program.env == held.spec.env {
        return Ok(());
    }
    let Some(Locked { mut tx, .. }) = ctx.lock(instance).await.map_err(StepError::Internal)? else {
        return Ok(());
    };
    hosting::run(&mut tx, held.id, &program).await?;
    Ok(tx.commit().await?)
}
