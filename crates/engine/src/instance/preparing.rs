//! Acts on `preparing`: makes what is outside, then hands over to the agent.

use model::instance::{External, Instance, Reason, Status};
use model::kind::Kind;
use store::deployment::hosting;
use store::{Scope, cluster, instance};

use super::sign_in::Trouble;
use super::{Instances, Outcome, names, program, sign_in};
use crate::Error;
use crate::held::Held;

pub(super) async fn step(all: &Instances, kind: &Kind, seen: &Instance) -> Result<Outcome, Error> {
    if seen.deadline().is_some_and(|end| end <= all.db.now()) {
        let reason = super::overdue(seen, seen.reason.clone());
        return all.transition(seen, Status::Failed, reason).await;
    }
    match prepare(all, kind, seen).await {
        Ok(outcome) => Ok(outcome),
        Err(met) => all.trouble(seen, met).await,
    }
}

async fn prepare(all: &Instances, kind: &Kind, seen: &Instance) -> Result<Outcome, Trouble> {
    let (Some(on), Some(deployment)) = (seen.cluster_id, seen.deployment_id) else {
        let reason = Reason::PlacementLost { deployment: None };
        return all.transition(seen, Status::Accepted, reason).await.map_err(Trouble::Ours);
    };
    let on = cluster::get(&mut all.db.read().await?, Scope::All, on).await?;
    let client = match &all.outside.sso {
        Some(sso) if kind.needs.sso => Some(sign_in::ensure(all, &**sso, seen).await?.0),
        _ => None,
    };
    let host = kind.host(&seen.name, &seen.id.to_string(), all.domain(kind));
    let mut next = Instance { host: Some(host.clone()), ..seen.clone() };
    next.detail.routes.clear();
    if !on.hosting.is_foreign {
        next.detail.routes = names::routes(all, kind, &host, &on);
        if let Some(dns) = &all.outside.dns {
            let pointed = names::point(&**dns, &next.detail.routes).await;
            pointed.map_err(Trouble::of(External::Dns))?;
        }
    }
    let program = program::of(all, kind, &next, deployment, client.as_ref()).await?;
    let still = all.still(seen).await.map_err(Trouble::Ours)?;
    let Some(Held { mut tx, mut now }) = still else { return Ok(Outcome::Moved) };
    now.host = next.host;
    // What a foreign agent says of itself and its routes comes later.
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
