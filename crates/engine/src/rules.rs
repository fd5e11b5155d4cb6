//! What is in force: the catalog of kinds, the quota list, denied owners, pools. Each can change while the
//! server runs; whoever looks sees what is in force now.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::OrganizationId;
use model::kind::Catalog;
use model::quota::{Grant, Holder, QuotaList};
use model::scaling::Pool;
use store::{Read, denied_owner, quota};
use tokio::sync::watch;

/// What is in force, for those who go by it.
#[derive(Clone)]
pub struct Rules(watch::Receiver<InForce>);

/// Where what is in force is changed.
pub struct Rulebook(watch::Sender<InForce>);

/// What is in force.
#[derive(Debug, Clone)]
pub struct InForce {
    /// The kinds.
    pub catalog: Arc<Catalog>,
    /// The quota list, if there is one.
    pub quota: Option<Arc<QuotaList>>,
    /// Users who may not have instances.
    pub denied: Arc<BTreeSet<String>>,
    /// What may grow and shrink, the first first.
    pub pools: Arc<Vec<Pool>>,
}

impl Rulebook {
    /// Begins with this.
    pub fn new(now: InForce) -> (Self, Rules) {
        let (sender, receiver) = watch::channel(now);
        (Self(sender), Rules(receiver))
    }

    /// Changes what is in force.
    pub fn change(&self, change: impl FnOnce(&mut InForce)) {
        self.0.send_modify(change);
    }
}

/// What somebody may have.
#[derive(Debug, Clone, Default)]
pub struct Entitled {
    /// Does quota count at all? Not while there is neither a list nor a grant.
    pub is_limited: bool,
    /// Whose account is charged; nobody's when nothing was granted.
    pub holder: Option<String>,
    /// What was granted.
    pub grants: Option<Vec<Grant>>,
}

impl Rules {
    /// The kinds.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.borrow().catalog.clone()
    }

    /// What may grow and shrink, the first first.
    pub fn pools(&self) -> Arc<Vec<Pool>> {
        self.0.borrow().pools.clone()
    }

    /// Changes whenever something in force does.
    pub fn changes(&self) -> watch::Receiver<InForce> {
        self.0.clone()
    }

    /// May this user not have instances?
    pub async fn is_denied(&self, read: &mut Read, owner: &str) -> store::Result<bool> {
        if self.0.borrow().denied.contains(owner) {
            return Ok(true);
        }
        denied_owner::is_denied(read, owner).await
    }

    /// What a user may have: what was granted through the API goes before what the list says.
    pub async fn entitled(
        &self,
        read: &mut Read,
        organization: OrganizationId,
        foreign: Option<&str>,
        username: &str,
    ) -> store::Result<Entitled> {
        let list = self.0.borrow().quota.clone();
        let is_limited = list.is_some() || quota::is_in_use(read).await?;
        if !is_limited {
            return Ok(Entitled::default());
        }
        let own = organization.to_string();
        let listed = list.and_then(|list| {
            let foreign = foreign.and_then(|id| list.grants(id, username));
            foreign.or_else(|| list.grants(&own, username))
        });
        let holder = format!("organization/{organization}");
        let mut grants = granted(quota::list(read, Some(&holder)).await?);
        if let Some((Holder::Organization(_), more)) = &listed {
            add(&mut grants, more);
        }
        if !grants.is_empty() {
            return Ok(Entitled { is_limited, holder: Some(holder), grants: Some(grants) });
        }
        let holder = format!("user/{username}");
        let mut grants = granted(quota::list(read, Some(&holder)).await?);
        if let Some((Holder::User(_), more)) = &listed {
            add(&mut grants, more);
        }
        let grants = (!grants.is_empty()).then_some(grants);
        Ok(Entitled { is_limited, holder: grants.is_some().then_some(holder), grants })
    }
}

/// Adds what is not granted for the same yet.
fn add(grants: &mut Vec<Grant>, more: &[Grant]) {
    for grant in more {
        let is_there = grants.iter().any(|other| {
            other.kind == grant.kind
                && other.instance_type == grant.instance_type
                && other.billing_model == grant.billing_model
        });
        if !is_there {
            grants.push(grant.clone());
        }
    }
}

fn granted(rows: Vec<quota::Quota>) -> Vec<Grant> {
    let grants = rows.into_iter().map(|row| Grant {
        kind: row.kind,
        instance_type: row.instance_type,
        billing_model: row.billing_model,
        limit: row.limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX)),
        expires_at: row.expires_at,
    });
    grants.collect()
}
