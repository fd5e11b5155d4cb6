//! Who is charged for an instance, and up to which limit.

use model::instance::Charge;
use model::kind::Kind;
use model::quota::Per;
use model::user::User;

use super::Asker;
use super::choice::Chosen;
use crate::rules::Entitled;

/// What the account of a region is called.
pub fn region_holder(cloud: &str, region: &str) -> String {
    format!("region/{cloud}/{region}")
}

/// What the account of an owner's trials is called.
pub fn trial_holder(user: &User) -> String {
    format!("trial/{}/{}", user.organization_id, user.username)
}

/// What the account of an organization is called.
pub fn organization_holder(user: &User) -> String {
    format!("organization/{}", user.organization_id)
}

/// The charges for an instance. All who charge do so in this order, lest they wait for each other.
pub(super) fn of(
    asker: &Asker<'_>,
    kind: &Kind,
    entitled: &Entitled,
    chosen: &Chosen<'_>,
) -> Vec<(Charge, Option<i64>)> {
    let mut all = Vec::new();
    // A cluster of the organization's own takes nothing of the region.
    if chosen.place.pinned_to.is_none() {
        all.push(region(kind, chosen));
    }
    all.push(quota(asker, kind, entitled, chosen));
    all
}

fn region(kind: &Kind, chosen: &Chosen<'_>) -> (Charge, Option<i64>) {
    let (cloud, region) = (&chosen.place.cloud_provider, &chosen.place.region);
    let account = chosen.instance_type.id.clone();
    let known = kind.cloud(cloud).and_then(|cloud| cloud.region(region));
    let limit = known.and_then(|region| region.types.get(&account)).and_then(|of| of.limit);
    let units = i64::from(chosen.size.capacity_consumed);
    let charge = Charge { holder: region_holder(cloud, region), account, units };
    (charge, limit.map(i64::from))
}

/// The quota of whom it was granted to, or the owner's trials. Without limits it is counted, too: they
/// may come.
fn quota(
    asker: &Asker<'_>,
    kind: &Kind,
    entitled: &Entitled,
    chosen: &Chosen<'_>,
) -> (Charge, Option<i64>) {
    let instance_type = &chosen.instance_type.id;
    let is_trial = kind.is_trial(instance_type) && entitled.holder.is_none();
    if chosen.per == Per::Owner || is_trial {
        let account = instance_type.clone();
        return (Charge { holder: trial_holder(asker.user), account, units: 1 }, chosen.limit);
    }
    let holder = entitled.holder.clone().unwrap_or_else(|| organization_holder(asker.user));
    let account = format!("{instance_type}.{}", chosen.billing_model);
    let units = i64::from(chosen.size.capacity_consumed);
    (Charge { holder, account, units }, chosen.limit)
}
