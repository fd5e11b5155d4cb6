//! Checks whether an instance is still granted.

use super::Grant;
use crate::Time;
use crate::kind::Kind;

/// Entitlement of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entitlement {
    /// Entitled.
    Yes,
    /// Not entitled.
    No {
        /// When the grant expired, if it did.
        since: Option<Time>,
        /// The reason, for the owner.
        reason: String,
    },
}

/// Is an instance of this type and billing model still granted to its holder?
///
/// Trials need no grant; they end with their lifespan.
pub fn entitlement(
    kind: &Kind,
    grants: Option<&[Grant]>,
    is_limited: bool,
    instance_type: &str,
    billing_model: &str,
    now: Time,
) -> Entitlement {
    if !is_limited || kind.is_trial(instance_type) {
        return Entitlement::Yes;
    }
    let matches = |grant: &&Grant| {
        grant.kind.as_ref().is_none_or(|name| *name == kind.name)
            && grant.is_for(instance_type, billing_model)
    };
    let matching: Vec<&Grant> = grants.unwrap_or_default().iter().filter(matches).collect();
    if matching.iter().any(|grant| !grant.is_expired(now)) {
        return Entitlement::Yes;
    }
    let since = matching.iter().filter_map(|grant| grant.expires_at).max();
    let what = format!("{instance_type} instances with the billing model {billing_model}");
    let reason = match since {
        Some(end) => format!("quota for {what} expired on {end}"),
        None => format!("no quota for {what}"),
    };
    Entitlement::No { since, reason }
}
