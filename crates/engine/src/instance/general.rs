//! Acts on any: ends trials whose life is over, ends what belongs to denied owners, has what nobody is
//! entitled to any more rest for the grace and then go, and wakes it when the entitlement is back.

use std::time::Duration;

use model::event::Actor;
use model::instance::{Instance, Reason, Rest, Status};
use model::kind::Kind;
use model::quota::{Active, is_active};
use model::work::Next;
use model::{InstanceId, Time};
use store::{Db, Scope, Tx, instance};

use crate::held::existing;
use crate::rules::Rules;
use crate::{Error, Reconcile};

/// The worker.
pub struct General {
    /// Where.
    pub db: Db,
    /// By which rules.
    pub rules: Rules,
}

const DAY: Duration = Duration::from_hours(24);

impl General {
    async fn look(&self, tx: &mut Tx, now: &mut Instance) -> Result<Option<Time>, Error> {
        if self.rules.is_denied(tx, &now.owner).await? {
            let reason = Reason::OwnerDenied { owner: now.owner.clone() };
            instance::transition(tx, now, Status::Deprovision, reason).await?;
            return Ok(None);
        }
        let catalog = self.rules.catalog();
        let Some(kind) = catalog.kind(&now.kind) else { return Ok(None) };
        let size = kind.type_of(&now.instance_type).and_then(|t| t.size(&now.size));
        if size.is_some_and(|size| size.lifespan_seconds.is_some()) {
            return end_if_due(tx, now, Reason::TrialExpired).await;
        }
        self.look_after_entitlement(tx, kind, now).await
    }

    async fn look_after_entitlement(
        &self,
        tx: &mut Tx,
        kind: &Kind,
        now: &mut Instance,
    ) -> Result<Option<Time>, Error> {
        let foreign = now.detail.foreign_organization.clone();
        let entitled =
            self.rules.entitled(tx, now.organization_id, foreign.as_deref(), &now.owner).await?;
        let billing = now.detail.billing.model.clone();
        let grants = entitled.grants.as_deref();
        match is_active(kind, grants, entitled.is_limited, &now.instance_type, &billing, tx.now()) {
            Active::Yes => {
                if now.detail.rest == Some(Rest::Entitlement) || now.expires_at.is_some() {
                    restore(tx, now).await?;
                }
                // The next end of a grant may be the one that matters.
                let ends = grants.unwrap_or_default().iter().filter_map(|grant| grant.expires_at);
                Ok(ends.filter(|end| *end > tx.now()).min())
            }
            Active::No { reason, .. } => expire(tx, kind, now, &reason).await,
        }
    }
}

/// Ends it if its end has come; else when that will be.
async fn end_if_due(
    tx: &mut Tx,
    now: &mut Instance,
    reason: Reason,
) -> Result<Option<Time>, Error> {
    let Some(end) = now.expires_at else { return Ok(None) };
    if end > tx.now() {
        return Ok(Some(end));
    }
    instance::transition(tx, now, Status::Deprovision, reason).await?;
    Ok(None)
}

/// Sets its end, suspends it until then, and deletes it then.
async fn expire(
    tx: &mut Tx,
    kind: &Kind,
    now: &mut Instance,
    message: &str,
) -> Result<Option<Time>, Error> {
    let reason = |delete_at| Reason::EntitlementExpired { message: message.to_owned(), delete_at };
    if now.expires_at.is_none() {
        // Never none: nothing is deleted at once.
        let days = kind.grace_days(&now.instance_type, &now.detail.billing.model).max(1);
        now.expires_at = Some(tx.now() + DAY * days);
        now.reason = reason(now.expires_at);
        instance::save(tx, now, "entitlement_lost").await?;
    }
    if now.status == Status::Ready {
        now.detail.rest = Some(Rest::Entitlement);
        now.detail.is_agent_ready = false;
        let until = reason(now.expires_at);
        instance::transition(tx, now, Status::Suspending, until).await?;
    }
    end_if_due(tx, now, reason(None)).await
}

/// The entitlement is back.
async fn restore(tx: &mut Tx, now: &mut Instance) -> Result<(), Error> {
    now.expires_at = None;
    let was_ours = now.detail.rest == Some(Rest::Entitlement);
    match now.status {
        Status::Suspended if was_ours => {
            now.detail.rest = None;
            instance::transition(tx, now, Status::Resuming, Reason::EntitlementRestored).await?;
        }
        // First it must have come to rest; this is looked at again then.
        _ => instance::save(tx, now, "entitlement_restored").await?,
    }
    Ok(())
}

impl Reconcile for General {
    const NAME: &'static str = instance::GENERAL;

    async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let id: InstanceId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let taken = existing(instance::take(&mut tx, Scope::All, id).await)?;
        let Some(mut now) = taken else { return Ok(Next::Rest) };
        if now.status.is_leaving() {
            return Ok(Next::Rest);
        }
        let next = self.look(&mut tx, &mut now).await?;
        tx.commit().await?;
        Ok(next.map_or(Next::Rest, Next::At))
    }
}
