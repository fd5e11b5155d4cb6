//! Acts on `ready` and `suspended`: keeps what is outside true, and sees when the inside is not.

use std::time::Duration;

use model::deployment::{self, Deployment};
use model::instance::{Instance, Status};
use model::kind::Kind;
use model::work::Next;
use store::deployment::hosting;
use store::{Scope, instance};

use super::sign_in::Trouble;
use super::{Instances, Outcome, names, program, sign_in};
use crate::Error;

/// How often what is outside is looked at.
const LOOK_OUTSIDE: Duration = Duration::from_mins(10);

pub(super) async fn step(all: &Instances, kind: &Kind, seen: &Instance) -> Result<Outcome, Error> {
    if seen.status == Status::Ready
        && let Some(outcome) = look_inside(all, seen).await?
    {
        return Ok(outcome);
    }
    match look_outside(all, kind, seen).await {
        Ok(true) => Ok(Outcome::Wait(Next::At(all.soon(LOOK_OUTSIDE)))),
        Ok(false) => Ok(Outcome::Wait(Next::Rest)),
        Err(Trouble::Ours(error)) => Err(error),
        // It works all the same: what could not be looked at is looked at again.
        Err(Trouble::Outside(fault)) => {
            tracing::warn!(instance = %seen.id, %fault, "what is outside could not be looked at");
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
        let reason = format!("It does not run any more. {}", held.status_reason);
        return all.advance(seen, Status::Failed, &reason).await.map(Some);
    }
    if held.placed_on != seen.cluster_id {
        let reason =
            format!("Its cluster is lost; it is made again elsewhere. {}", held.status_reason);
        return all.advance(seen, Status::Accepted, &reason).await.map(Some);
    }
    let is_elsewhere = held.status == deployment::Status::Running
        && !held.endpoints.is_empty()
        && held.endpoints != seen.detail.endpoints;
    if is_elsewhere && let Some((mut tx, mut now)) = all.still(seen).await? {
        now.detail.endpoints = held.endpoints;
        instance::save(&mut tx, &mut now, "moved").await?;
        tx.commit().await?;
    }
    Ok(None)
}

/// What runs it, where Paddock's own agent does.
async fn own_deployment(all: &Instances, seen: &Instance) -> Result<Option<Deployment>, Error> {
    let Some(id) = seen.deployment_id else { return Ok(None) };
    match store::deployment::get(&mut all.db.read().await?, Scope::All, id).await {
        Ok(held) => Ok(held.spec.image.is_some().then_some(held)),
        Err(store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Mends what somebody has changed outside. False: there is nothing outside to look after.
async fn look_outside(all: &Instances, kind: &Kind, seen: &Instance) -> Result<bool, Trouble> {
    let mut mended = Vec::new();
    if let Some(dns) = &all.outside.dns {
        mended.extend(names::mend(&**dns, &seen.detail.routes).await?);
    }
    let sso = all.outside.sso.as_ref().filter(|_| kind.needs.sso);
    if let Some(sso) = sso {
        let (client, is_new) = sign_in::ensure(all, &**sso, seen).await?;
        if is_new {
            mended.push(format!("client {}", client.id));
            restart(all, kind, seen, &client).await?;
        }
    }
    if !mended.is_empty() {
        tracing::info!(instance = %seen.id, ?mended, "mended what was changed outside");
        let still = all.still(seen).await.map_err(Trouble::Ours)?;
        if let Some((mut tx, mut now)) = still {
            let reason = format!("It can be used. Mended outside: {}.", mended.join(", "));
            instance::explain(&mut tx, &mut now, &reason).await?;
            tx.commit().await?;
        }
    }
    Ok(all.outside.dns.is_some() || sso.is_some())
}

/// Gives a program that has another secret now that secret.
async fn restart(
    all: &Instances,
    kind: &Kind,
    seen: &Instance,
    client: &crate::port::Client,
) -> Result<(), Trouble> {
    let Some(held) = own_deployment(all, seen).await.map_err(Trouble::Ours)? else {
        return Ok(());
    };
    let program = program::of(kind, seen, held.id, Some(client), &*all.outside.seal).await?;
    if program.sealed_env.is_empty() && program.env == held.spec.env {
        return Ok(());
    }
    let Some((mut tx, _)) = all.still(seen).await.map_err(Trouble::Ours)? else { return Ok(()) };
    hosting::run(&mut tx, held.id, &program).await?;
    Ok(tx.commit().await?)
}
