//! Quota charges of an instance: the holder, and the limit.

use model::instance::Charge;
use model::kind::Kind;
use model::quota::CountedPer;
use model::user::User;

use super::Caller;
use super::choice::Chosen;
use crate::rules::UserEntitlement;

/// The quota holder of a region.
pub fn region_holder(cloud: &str, region: &str) -> String {
    format!("region/{cloud}/{region}")
}

/// The quota holder of an owner's trials.
pub fn trial_holder(user: &User) -> String {
    format!("trial/{}/{}", user.organization_id, user.username)
}

/// The quota holder of an organization.
pub fn organization_holder(user: &User) -> String {
    format!("organization/{}", user.organization_id)
}

/// The charges of an instance. The order is the same everywhere, to avoid deadlocks.
pub(super) fn charges(
    caller: &Caller<'_>,
    kind: &Kind,
    entitled: &UserEntitlement,
    chosen: &Chosen<'_>,
) -> Vec<(Charge, Option<i64>)> {
    let mut all = Vec::new();
    // An organization's own cluster uses no capacity of the region.
    if chosen.place.pinned_to.is_none() {
        all.push(region(kind, chosen));
    }
    all.push(quota(caller, kind, entitled, chosen));
    all
}

fn region(kind: &Kind, chosen: &Chosen<'_>) -> (Charge, Option<i64>) {
    let (cloud, region) = (&chosen.place.cloud_provider, &chosen.place.region);
    let account = chosen.instance_type.id.clone();
    let offered = kind.cloud(cloud).and_then(|cloud| cloud.region(region));
    let limit = offered.and_then(|region| region.types.get(&account)).and_then(|of| of.limit);
    let units = i64::from(chosen.size.capacity_consumed);
    let charge = Charge { holder: region_holder(cloud, region), account, units };
    (charge, limit.map(i64::from))
}

/// Charges the holder of the grant, or the owner's trials. Usage is counted even without a limit,
/// because one may be set later.
fn quota(
    caller: &Caller<'_>,
    kind: &Kind,
    entitled: &UserEntitlement,
    chosen: &Chosen<'_>,
) -> (Charge, Option<i64>) {
    let instance_type = &chosen.instance_type.id;
    let is_trial = kind.is_trial(instance_type) && entitled.holder.is_none();
    if chosen.per == CountedPer::Owner || is_trial {
        let account = instance_type.clone();
        return (Charge { holder: trial_holder(caller.user), account, units: 1 }, chosen.limit);
    }
    let holder = entitled.holder.clone().unwrap_or_else(|| organization_holder(caller.user));
    let account = format!("{instance_type}.{}", chosen.billing_model);
    let units = i64::from(chosen.size.capacity_consumed);
    (Charge { holder, account, units }, chosen.limit)
}
