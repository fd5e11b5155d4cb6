//! Is what somebody has still granted?

use super::Grant;
use crate::Time;
use crate::kind::Kind;

/// Is an instance's entitlement alive?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Active {
    /// It is.
    Yes,
    /// It is not.
    No {
        /// Since when, if it ended by its own date.
        since: Option<Time>,
        /// Why, for its owner.
        reason: String,
    },
}

/// Is an instance of this type and billing model still granted to its holder?
///
/// Trials need no grant; they end with their lifespan.
pub fn is_active(
    kind: &Kind,
    grants: Option<&[Grant]>,
    is_limited: bool,
    instance_type: &str,
    billing_model: &str,
    now: Time,
) -> Active {
    if !is_limited || kind.is_trial(instance_type) {
        return Active::Yes;
    }
    let its = |grant: &&Grant| {
        grant.kind.as_ref().is_none_or(|name| *name == kind.name)
            && grant.is_for(instance_type, billing_model)
    };
    let its: Vec<&Grant> = grants.unwrap_or_default().iter().filter(its).collect();
    if its.iter().any(|grant| !grant.is_expired(now)) {
        return Active::Yes;
    }
    let since = its.iter().filter_map(|grant| grant.expires_at).max();
    let what = format!("{instance_type} instances with the billing model {billing_model}");
    let reason = match since {
        Some(end) => format!("the quota for {what} ended on {end}"),
        None => format!("there is no quota for {what} any more"),
    };
    Active::No { since, reason }
}
