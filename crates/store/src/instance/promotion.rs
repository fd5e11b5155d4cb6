//! Changes the billing model: charges the new account before it releases the old one.

use model::instance::{Billing, Charge, Instance};

use super::{save, wake_general};
use crate::{Result, Tx, quota_usage};

/// Promotes a locked instance, within the new account's limit, or not at all.
pub async fn promote(
    tx: &mut Tx,
    instance: &mut Instance,
    billing: Billing,
    charge: Charge,
    limit: Option<i64>,
) -> Result<()> {
    quota_usage::charge(tx, &instance.kind, &charge, limit).await?;
    let (remaining, released) = instance.detail.charges.drain(..).partition(is_of_region);
    let released: Vec<Charge> = released;
    for old in &released {
        quota_usage::release(tx, &instance.kind, old).await?;
    }
    instance.detail.charges = remaining;
    instance.detail.charges.push(charge);
    let model = billing.desired.clone();
    instance.detail.billing = Billing { model, failure: None, ..billing };
    // An expiry of the old billing model does not apply to the new one.
    instance.expires_at = None;
    instance.generation += 1;
    save(tx, instance, "promoted").await?;
    wake_general(tx, instance.id);
    Ok(())
}

/// Charges of a region stay: the instance does not move.
fn is_of_region(charge: &Charge) -> bool {
    charge.holder.starts_with("region/")
}
