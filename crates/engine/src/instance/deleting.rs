//! Handles `deprovision` and `deleting`: waits for the agent to finish, then removes external
//! objects, and releases capacity and quota.

use model::instance::{External, Instance, Reason, Status};
use model::work::Requeue;
use store::{Scope, deployment, instance};

use super::sso_client::StepError;
use super::{InstanceWorker, Outcome, dns_records, sso_client};
use crate::Error;
use crate::locked::{Locked, existing};

pub(super) async fn step(ctx: &InstanceWorker, instance: &Instance) -> Result<Outcome, Error> {
    if instance.status == Status::Deprovision {
        return deprovision(ctx, instance).await;
    }
    match remove_external(ctx, instance).await {
        Ok(()) => end(ctx, instance).await,
        // External objects must not leak: no fault ends the retries, since `deleting` can't fail.
        Err(error) => ctx.handle_error(instance, error).await,
    }
}

/// Lets the agent delete the workload.
async fn deprovision(ctx: &InstanceWorker, instance: &Instance) -> Result<Outcome, Error> {
    if has_third_party_agent(ctx, instance).await? {
        return wait(ctx, instance).await;
    }
    let Some(Locked { mut tx, mut now }) = ctx.lock(instance).await? else {
        return Ok(Outcome::Moved);
    };
    if is_held(&mut tx, &now).await? {
        tx.commit().await?;
        return wait(ctx, instance).await;
    }
    instance::transition(&mut tx, &mut now, Status::Deleting, Reason::CleaningUp).await?;
    tx.commit().await?;
    Ok(Outcome::Moved)
}

/// A third-party agent that knows the instance reports the deletion itself.
async fn has_third_party_agent(ctx: &InstanceWorker, instance: &Instance) -> Result<bool, Error> {
    let on = ctx.cluster_of(instance).await?.filter(|_| instance.host.is_some());
    Ok(on.is_some_and(|on| on.hosting.is_foreign))
}

/// Whether a deployment still reserves capacity; if so, requests its deletion.
async fn is_held(tx: &mut store::Tx, now: &Instance) -> Result<bool, Error> {
    let Some(id) = now.deployment_id else { return Ok(false) };
    let asked = existing(deployment::request_delete(tx, Scope::All, id).await)?;
    Ok(asked.is_some() && existing(deployment::get(tx, Scope::All, id).await)?.is_some())
}

async fn wait(ctx: &InstanceWorker, instance: &Instance) -> Result<Outcome, Error> {
    let Some(end) = instance.deadline().filter(|end| *end <= ctx.db.now()) else {
        return Ok(Outcome::Wait(instance.deadline().map_or(Requeue::OnChange, Requeue::At)));
    };
    let cluster = ctx.cluster_of(instance).await?.map(|on| on.name);
    ctx.explain(instance, Reason::AgentNotResponding { cluster, due: end }).await?;
    Ok(Outcome::Wait(Requeue::At(ctx.soon(super::POLL * 12))))
}

/// Removes the DNS records and the SSO client.
async fn remove_external(ctx: &InstanceWorker, instance: &Instance) -> Result<(), StepError> {
    if let Some(dns) = &ctx.external.dns {
        dns_records::remove(&**dns, instance).await.map_err(StepError::external(External::Dns))?;
    }
    if let Some(sso) = &ctx.external.sso
        && let Some(client) = sso_client::client(&ctx.db, &*ctx.external.seal, instance.id).await?
    {
        sso.delete(&client).await.map_err(StepError::external(External::Sso))?;
    }
    Ok(())
}

async fn end(ctx: &InstanceWorker, instance: &Instance) -> Result<Outcome, Error> {
    let Some(Locked { mut tx, now }) = ctx.lock(instance).await? else {
        return Ok(Outcome::Moved);
    };
    if is_held(&mut tx, &now).await? {
        tx.commit().await?;
        return Ok(Outcome::Wait(Requeue::At(ctx.soon(super::POLL))));
    }
    instance::delete(&mut tx, &now).await?;
    tx.commit().await?;
    Ok(Outcome::Wait(Requeue::OnChange))
}
