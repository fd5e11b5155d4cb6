//! Rules that are in force: the kind catalog, the quota list, denied owners, pools. Each can be
//! reloaded while the server runs; readers always get the current value.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::OrganizationId;
use model::kind::Catalog;
use model::quota::{Grant, Holder, QuotaList};
use model::scaling::Pool;
use store::{Read, denied_owner, quota};
use tokio::sync::watch;

/// Read access to the current rules.
#[derive(Clone)]
pub struct RulesReader(watch::Receiver<ActiveRules>);

/// Write access to the current rules.
pub struct RulesWriter(watch::Sender<ActiveRules>);

/// The current rules.
#[derive(Debug, Clone)]
pub struct ActiveRules {
    /// The kinds.
    pub catalog: Arc<Catalog>,
    /// The quota list, if configured.
    pub quota: Option<Arc<QuotaList>>,
    /// Users who may not have instances.
    pub denied: Arc<BTreeSet<String>>,
    /// The autoscaled pools, by precedence.
    pub pools: Arc<Vec<Pool>>,
}

impl RulesWriter {
    /// Creates both ends.
    pub fn new(now: ActiveRules) -> (Self, RulesReader) {
        let (sender, receiver) = watch::channel(now);
        (Self(sender), RulesReader(receiver))
    }

    /// Changes the rules.
    pub fn change(&self, change: impl FnOnce(&mut ActiveRules)) {
        self.0.send_modify(change);
    }
}

/// What a user is entitled to.
#[derive(Debug, Clone, Default)]
pub struct UserEntitlement {
    /// Whether quota is enforced: only if a list or a grant exists.
    pub is_limited: bool,
    /// The holder whose quota is charged; `None` without grants.
    pub holder: Option<String>,
    /// The grants.
    pub grants: Option<Vec<Grant>>,
}

impl RulesReader {
    /// The kinds.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.borrow().catalog.clone()
    }

    /// The autoscaled pools, by precedence.
    pub fn pools(&self) -> Arc<Vec<Pool>> {
        self.0.borrow().pools.clone()
    }

    /// Notifies of every change.
    pub fn changes(&self) -> watch::Receiver<ActiveRules> {
        self.0.clone()
    }

    /// Whether this user may not have instances.
    pub async fn is_denied(&self, read: &mut Read, owner: &str) -> store::Result<bool> {
        if self.0.borrow().denied.contains(owner) {
            return Ok(true);
        }
        denied_owner::is_denied(read, owner).await
    }

    /// The entitlement of a user. Grants made through the API override the quota list.
    pub async fn entitled(
        &self,
        read: &mut Read,
        organization: OrganizationId,
        foreign: Option<&str>,
        username: &str,
    ) -> store::Result<UserEntitlement> {
        let list = self.0.borrow().quota.clone();
        let is_limited = list.is_some() || quota::is_in_use(read).await?;
        if !is_limited {
            return Ok(UserEntitlement::default());
        }
        let own = organization.to_string();
        let listed = list.and_then(|list| {
            let foreign = foreign.and_then(|id| list.grants(id, username));
            foreign.or_else(|| list.grants(&own, username))
        });
        let holder = format!("organization/{organization}");
        let mut grants = grants_of(quota::list(read, Some(&holder)).await?);
        if let Some((Holder::Organization(_), more)) = &listed {
            add_missing(&mut grants, more);
        }
        if !grants.is_empty() {
            return Ok(UserEntitlement { is_limited, holder: Some(holder), grants: Some(grants) });
        }
        let holder = format!("user/{username}");
        let mut grants = grants_of(quota::list(read, Some(&holder)).await?);
        if let Some((Holder::User(_), more)) = &listed {
            add_missing(&mut grants, more);
        }
        let grants = (!grants.is_empty()).then_some(grants);
        Ok(UserEntitlement { is_limited, holder: grants.is_some().then_some(holder), grants })
    }
}

/// Adds grants for kinds, types and billing models that have none yet.
fn add_missing(grants: &mut Vec<Grant>, more: &[Grant]) {
    for grant in more {
        let exists = grants.iter().any(|other| {
            other.kind == grant.kind
                && other.instance_type == grant.instance_type
                && other.billing_model == grant.billing_model
        });
        if !exists {
            grants.push(grant.clone());
        }
    }
}

fn grants_of(rows: Vec<quota::Quota>) -> Vec<Grant> {
    let grants = rows.into_iter().map(|row| Grant {
        kind: row.kind,
        instance_type: row.instance_type,
        billing_model: row.billing_model,
        limit: row.limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX)),
        expires_at: row.expires_at,
    });
    grants.collect()
}
