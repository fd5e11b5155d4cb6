//! Handles instances in any status: deletes expired trials and instances of denied owners; suspends
//! instances without entitlement, deletes them after the grace period, and resumes them when the
//! entitlement is restored.

use std::time::Duration;

use model::event::Actor;
use model::instance::{Instance, Reason, Status, Suspension};
use model::kind::Kind;
use model::quota::{Entitlement, entitlement};
use model::work::Requeue;
use model::{InstanceId, Time};
use store::{Db, Scope, Tx, instance};

use crate::locked::existing;
use crate::rules::RulesReader;
use crate::{Error, Reconcile};

/// The worker for expiry and entitlements.
pub struct EntitlementWorker {
    /// The database.
    pub db: Db,
    /// The current rules.
    pub rules: RulesReader,
}

const DAY: Duration = Duration::from_hours(24);

impl EntitlementWorker {
    async fn enforce(&self, tx: &mut Tx, now: &mut Instance) -> Result<Option<Time>, Error> {
        if self.rules.is_denied(tx, &now.owner).await? {
            let reason = Reason::OwnerDenied { owner: now.owner.clone() };
            instance::transition(tx, now, Status::Deprovision, reason).await?;
            return Ok(None);
        }
        let catalog = self.rules.catalog();
        let Some(kind) = catalog.kind(&now.kind) else { return Ok(None) };
        let size = kind.instance_type(&now.instance_type).and_then(|t| t.size(&now.size));
        if size.is_some_and(|size| size.lifespan_seconds.is_some()) {
            return end_if_due(tx, now, Reason::TrialExpired).await;
        }
        self.enforce_entitlement(tx, kind, now).await
    }

    async fn enforce_entitlement(
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
        match entitlement(kind, grants, entitled.is_limited, &now.instance_type, &billing, tx.now())
        {
            Entitlement::Yes => {
                if now.detail.rest == Some(Suspension::Entitlement) || now.expires_at.is_some() {
                    restore(tx, now).await?;
                }
                // The grant that expires next may be the relevant one.
                let ends = grants.unwrap_or_default().iter().filter_map(|grant| grant.expires_at);
                Ok(ends.filter(|end| *end > tx.now()).min())
            }
            Entitlement::No { reason, .. } => expire(tx, kind, now, &reason).await,
        }
    }
}

/// Deletes the instance if it has expired. Returns when it will expire otherwise.
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

/// Sets the expiry, suspends the instance until then, and deletes it then.
async fn expire(
    tx: &mut Tx,
    kind: &Kind,
    now: &mut Instance,
    message: &str,
) -> Result<Option<Time>, Error> {
    let reason = |delete_at| Reason::EntitlementExpired { message: message.to_owned(), delete_at };
    if now.expires_at.is_none() {
        // At least one day: nothing is deleted immediately.
        let days = kind.grace_days(&now.instance_type, &now.detail.billing.model).max(1);
        now.expires_at = Some(tx.now() + DAY * days);
        now.reason = reason(now.expires_at);
        instance::save(tx, now, "entitlement_lost").await?;
    }
    if now.status == Status::Ready {
        now.detail.rest = Some(Suspension::Entitlement);
        now.detail.is_agent_ready = false;
        let until = reason(now.expires_at);
        instance::transition(tx, now, Status::Suspending, until).await?;
    }
    end_if_due(tx, now, reason(None)).await
}

/// Clears the expiry, and resumes a suspended instance.
async fn restore(tx: &mut Tx, now: &mut Instance) -> Result<(), Error> {
    now.expires_at = None;
    let was_entitlement = now.detail.rest == Some(Suspension::Entitlement);
    match now.status {
        Status::Suspended if was_entitlement => {
            now.detail.rest = None;
            instance::transition(tx, now, Status::Resuming, Reason::EntitlementRestored).await?;
        }
        // Still suspending: handled when it is suspended.
        _ => instance::save(tx, now, "entitlement_restored").await?,
    }
    Ok(())
}

impl Reconcile for EntitlementWorker {
    const NAME: &'static str = instance::GENERAL;

    async fn reconcile(&self, key: &str) -> Result<Requeue, Error> {
        let id: InstanceId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let taken = existing(instance::lock(&mut tx, Scope::All, id).await)?;
        let Some(mut now) = taken else { return Ok(Requeue::OnChange) };
        if now.status.is_deleting() {
            return Ok(Requeue::OnChange);
        }
        let next = self.enforce(&mut tx, &mut now).await?;
        tx.commit().await?;
        Ok(next.map_or(Requeue::OnChange, Requeue::At))
    }
}
