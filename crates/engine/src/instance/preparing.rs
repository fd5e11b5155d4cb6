//! Handles `preparing`: creates the external objects, then hands over to the agent.

use model::instance::{External, Instance, Reason, Status};
use model::kind::Kind;
use store::deployment::hosting;
use store::{Scope, cluster, instance};

use super::sso_client::StepError;
use super::{InstanceWorker, Outcome, dns_records, program, sso_client};
use crate::Error;
use crate::locked::Locked;

pub(super) async fn step(
    ctx: &InstanceWorker,
    kind: &Kind,
    instance: &Instance,
) -> Result<Outcome, Error> {
    if instance.deadline().is_some_and(|end| end <= ctx.db.now()) {
        let reason = super::overdue(instance, instance.reason.clone());
        return ctx.transition(instance, Status::Failed, reason).await;
    }
    match prepare(ctx, kind, instance).await {
        Ok(outcome) => Ok(outcome),
        Err(error) => ctx.handle_error(instance, error).await,
    }
}

async fn prepare(
    ctx: &InstanceWorker,
    kind: &Kind,
    instance: &Instance,
) -> Result<Outcome, StepError> {
    let (Some(on), Some(deployment)) = (instance.cluster_id, instance.deployment_id) else {
        let reason = Reason::PlacementLost { deployment: None };
        return ctx
            .transition(instance, Status::Accepted, reason)
            .await
            .map_err(StepError::Internal);
    };
    let on = cluster::get(&mut ctx.db.read().await?, Scope::All, on).await?;
    let client = match &ctx.external.sso {
        Some(sso) if kind.needs.sso => Some(sso_client::ensure(ctx, &**sso, instance).await?.0),
        _ => None,
    };
    let host = kind.host(&instance.name, &instance.id.to_string(), ctx.domain(kind));
    let mut next = Instance { host: Some(host.clone()), ..instance.clone() };
    next.detail.routes.clear();
    if !on.hosting.is_foreign {
        next.detail.routes = dns_records::routes(ctx, kind, &host, &on);
        if let Some(dns) = &ctx.external.dns {
            let pointed = dns_records::point(&**dns, &next.detail.routes).await;
            pointed.map_err(StepError::external(External::Dns))?;
        }
    }
    let program = program::spec(ctx, kind, &next, deployment, client.as_ref()).await?;
    let locked = ctx.lock(instance).await.map_err(StepError::Internal)?;
    let Some(Locked { mut tx, mut now }) = locked else { return Ok(Outcome::Moved) };
    now.host = next.host;
    // A third-party agent reports its readiness and routes later.
    now.detail.routes_made = !on.hosting.is_foreign;
    now.detail.is_agent_ready = false;
    now.detail.routes = next.detail.routes;
    now.detail.sso_client = client.map(|client| client.id);
    let reason = Reason::AwaitingAgent { cluster: on.name };
    instance::transition(&mut tx, &mut now, Status::Provisioning, reason).await?;
    if !on.hosting.is_foreign {
        hosting::run(&mut tx, deployment, &program).await?;
    }
    tx.commit().await?;
    Ok(Outcome::Moved)
}
