//! Acts on `ready` and `suspended`: keeps what is outside true, and sees when the inside is not.

use std::time::Duration;

use model::deployment::{self, Deployment};
use model::instance::{External, Instance, Reason, Status};
use model::kind::Kind;
use model::work::Next;
use store::deployment::hosting;
use store::instance;

use super::sign_in::Trouble;
use super::{Instances, Outcome, names, program, sign_in};
use crate::Error;
use crate::held::Held;

/// How often what is outside is looked at.
const LOOK_OUTSIDE: Duration = Duration::from_mins(10);

pub(super) async fn step(all: &Instances, kind: &Kind, seen: &Instance) -> Result<Outcome, Error> {
    if seen.status == Status::Ready
        && let Some(outcome) = look_inside(all, seen).await?
    {
        return Ok(outcome);
    }
    if seen.status == Status::Ready
        && seen.detail.desired != seen.detail.actual
        && let Err(met) = upgrade(all, kind, seen).await
    {
        return all.trouble(seen, met).await;
    }
    match look_outside(all, kind, seen).await {
        Ok(true) => Ok(Outcome::Wait(Next::At(all.soon(LOOK_OUTSIDE)))),
        Ok(false) => Ok(Outcome::Wait(Next::Rest)),
        Err(Trouble::Ours(error)) => Err(error),
        // It works all the same: what could not be looked at is looked at again.
        Err(Trouble::Outside(system, fault)) => {
            tracing::warn!(instance = %seen.id, %system, %fault, "external check failed");
            Ok(Outcome::Wait(Next::At(all.soon(super::LOOK_AGAIN * 2))))
        }
    }
}

/// Does it still run where it should?
async fn look_inside(all: &Instances, seen: &Instance) -> Result<Option<Outcome>, Error> {
    let Some(held) = own_deployment(all, seen).await? else { return Ok(None) };
    let failed = matches!(
        held.status,
        deployment::Status::Failed | deployment::Status::Completed | deployment::Status::Deleting
    );
    if failed {
        let reason = Reason::DeploymentFailed { reason: held.reason };
        return all.transition(seen, Status::Failed, reason).await.map(Some);
    }
    if held.placed_on != seen.cluster_id {
        let reason = Reason::PlacementLost { deployment: Some(held.reason) };
        return all.transition(seen, Status::Accepted, reason).await.map(Some);
    }
    if held.status != deployment::Status::Running || held.endpoints.is_empty() {
        return Ok(None);
    }
    let is_elsewhere = held.endpoints != seen.detail.endpoints;
    let is_new = !seen.detail.upgrading.is_empty();
    if (is_elsewhere || is_new)
        && let Some(Held { mut tx, mut now }) = all.still(seen).await?
    {
        now.detail.endpoints = held.endpoints;
        now.detail.upgrading.clear();
        now.detail.actual = now.detail.desired.clone();
        instance::save(&mut tx, &mut now, if is_new { "upgraded" } else { "moved" }).await?;
        tx.commit().await?;
    }
    Ok(None)
}

/// What runs it, where Paddock's own agent does.
async fn own_deployment(all: &Instances, seen: &Instance) -> Result<Option<Deployment>, Error> {
    let held = all.deployment_of(seen).await?;
    Ok(held.filter(|held| held.spec.image.is_some()))
}

/// Mends what somebody has changed outside. False: there is nothing outside to look after.
async fn look_outside(all: &Instances, kind: &Kind, seen: &Instance) -> Result<bool, Trouble> {
    let mut mended = Vec::new();
    if let Some(dns) = &all.outside.dns {
        let names = names::mend(&**dns, &seen.detail.routes).await;
        mended.extend(names.map_err(Trouble::of(External::Dns))?);
    }
    let sso = all.outside.sso.as_ref().filter(|_| kind.needs.sso);
    if let Some(sso) = sso {
        let (client, is_new) = sign_in::ensure(all, &**sso, seen).await?;
        if is_new {
            mended.push(format!("client {}", client.id));
            restart(all, kind, seen, &client).await?;
        } else if let Some(client) = sign_in::rotate(all, &**sso, seen, &client).await? {
            restart(all, kind, seen, &client).await?;
        }
    }
    if !mended.is_empty() {
        tracing::info!(instance = %seen.id, ?mended, "mended what was changed outside");
        let still = all.still(seen).await.map_err(Trouble::Ours)?;
        if let Some(Held { mut tx, mut now }) = still {
            let reason = Reason::Repaired { objects: mended };
            instance::explain(&mut tx, &mut now, reason).await?;
            tx.commit().await?;
        }
    }
    Ok(all.outside.dns.is_some() || sso.is_some())
}

/// Has the versions run that shall, where Paddock's own agent does that.
async fn upgrade(all: &Instances, kind: &Kind, seen: &Instance) -> Result<(), Trouble> {
    let held = own_deployment(all, seen).await.map_err(Trouble::Ours)?;
    let Some(held) = held.filter(|_| seen.detail.upgrading.is_empty()) else { return Ok(()) };
    let program = program::as_kept(all, kind, seen, held.id).await?;
    let Some(Held { mut tx, mut now }) = all.still(seen).await.map_err(Trouble::Ours)? else {
        return Ok(());
    };
    now.detail.upgrading = vec!["service".into()];
    instance::save(&mut tx, &mut now, "upgrading").await?;
    hosting::run(&mut tx, held.id, &program).await?;
    Ok(tx.commit().await?)
}

/// Gives a program that has another secret now that secret.
async fn restart(
    all: &Instances,
    kind: &Kind,
    seen: &Instance,
    client: &port::Client,
) -> Result<(), Trouble> {
    let Some(held) = own_deployment(all, seen).await.map_err(Trouble::Ours)? else {
        return Ok(());
    };
    let program = program::of(all, kind, seen, held.id, Some(client)).await?;
    let has_secrets = !program.sealed_env.is_empty() || program.sealed_manifests.is_some();
    if !has_secrets && program.env == held.spec.env {
        return Ok(());
    }
    let Some(Held { mut tx, .. }) = all.still(seen).await.map_err(Trouble::Ours)? else {
        return Ok(());
    };
    hosting::run(&mut tx, held.id, &program).await?;
    Ok(tx.commit().await?)
}
