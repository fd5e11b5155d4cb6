//! Acts on `deprovision` and `deleting`: waits for the agent to be done, then takes away what is
//! outside, frees capacity and quota, and lets go.

use model::instance::{External, Instance, Reason, Status};
use model::work::Next;
use store::{Scope, deployment, instance};

use super::sign_in::Trouble;
use super::{Instances, Outcome, names, sign_in};
use crate::Error;
use crate::held::{Held, existing};

pub(super) async fn step(all: &Instances, seen: &Instance) -> Result<Outcome, Error> {
    if seen.status == Status::Deprovision {
        return take_down(all, seen).await;
    }
    match clear_away(all, seen).await {
        Ok(()) => end(all, seen).await,
        // Nothing external may be left behind: no fault ends the retries, since `deleting` can't fail.
        Err(met) => all.trouble(seen, met).await,
    }
}

/// Has its agent take it down.
async fn take_down(all: &Instances, seen: &Instance) -> Result<Outcome, Error> {
    if is_with_foreign_agent(all, seen).await? {
        return wait(all, seen).await;
    }
    let Some(Held { mut tx, mut now }) = all.still(seen).await? else { return Ok(Outcome::Moved) };
    if is_held(&mut tx, &now).await? {
        tx.commit().await?;
        return wait(all, seen).await;
    }
    instance::transition(&mut tx, &mut now, Status::Deleting, Reason::CleaningUp).await?;
    tx.commit().await?;
    Ok(Outcome::Moved)
}

/// A foreign agent that knows of it says itself when it is gone.
async fn is_with_foreign_agent(all: &Instances, seen: &Instance) -> Result<bool, Error> {
    let on = all.cluster_of(seen).await?.filter(|_| seen.host.is_some());
    Ok(on.is_some_and(|on| on.hosting.is_foreign))
}

/// Is there still something that holds its capacity? If so, that it shall go is asked for.
async fn is_held(tx: &mut store::Tx, now: &Instance) -> Result<bool, Error> {
    let Some(id) = now.deployment_id else { return Ok(false) };
    let asked = existing(deployment::request_delete(tx, Scope::All, id).await)?;
    Ok(asked.is_some() && existing(deployment::get(tx, Scope::All, id).await)?.is_some())
}

async fn wait(all: &Instances, seen: &Instance) -> Result<Outcome, Error> {
    let Some(end) = seen.deadline().filter(|end| *end <= all.db.now()) else {
        return Ok(Outcome::Wait(seen.deadline().map_or(Next::Rest, Next::At)));
    };
    let cluster = all.cluster_of(seen).await?.map(|on| on.name);
    all.explain(seen, Reason::AgentNotResponding { cluster, due: end }).await?;
    Ok(Outcome::Wait(Next::At(all.soon(super::LOOK_AGAIN * 12))))
}

/// Takes away its names and its client.
async fn clear_away(all: &Instances, seen: &Instance) -> Result<(), Trouble> {
    if let Some(dns) = &all.outside.dns {
        names::remove(&**dns, seen).await.map_err(Trouble::of(External::Dns))?;
    }
    if let Some(sso) = &all.outside.sso
        && let Some(client) = sign_in::client(&all.db, &*all.outside.seal, seen.id).await?
    {
        sso.remove(&client).await.map_err(Trouble::of(External::Sso))?;
    }
    Ok(())
}

async fn end(all: &Instances, seen: &Instance) -> Result<Outcome, Error> {
    let Some(Held { mut tx, now }) = all.still(seen).await? else { return Ok(Outcome::Moved) };
    if is_held(&mut tx, &now).await? {
        tx.commit().await?;
        return Ok(Outcome::Wait(Next::At(all.soon(super::LOOK_AGAIN))));
    }
    instance::delete(&mut tx, &now).await?;
    tx.commit().await?;
    Ok(Outcome::Wait(Next::Rest))
}
