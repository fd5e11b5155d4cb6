//! From one billing model to another: the new account is charged before the old one is freed.

use model::instance::{Billing, Charge, Instance};

use super::{save, wake_general};
use crate::{Result, Tx, account};

/// Promotes an instance that the caller has taken, within the new account's limit, or not at all.
pub async fn promote(
    tx: &mut Tx,
    instance: &mut Instance,
    billing: Billing,
    charge: Charge,
    limit: Option<i64>,
) -> Result<()> {
    account::charge(tx, &instance.kind, &charge, limit).await?;
    let (kept, freed) = instance.detail.charges.drain(..).partition(is_of_region);
    let freed: Vec<Charge> = freed;
    for old in &freed {
        account::release(tx, &instance.kind, old).await?;
    }
    instance.detail.charges = kept;
    instance.detail.charges.push(charge);
    let model = billing.desired.clone();
    instance.detail.billing = Billing { model, failure: None, ..billing };
    // What it was paid with may have ended; what it is paid with now has not.
    instance.expires_at = None;
    instance.generation += 1;
    save(tx, instance, "promoted").await?;
    wake_general(tx, instance.id);
    Ok(())
}

/// What a region is charged with stays: the instance does not move.
fn is_of_region(charge: &Charge) -> bool {
    charge.holder.starts_with("region/")
}
