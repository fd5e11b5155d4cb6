//! From one billing model to another.

use model::instance::{Billing, Charge, Instance};
use model::kind::Kind;
use model::quota::{self, Asked};
use store::{Scope, Tx};

use super::Refused;
use super::organization_holder;
use crate::App;
use crate::caller::Caller;

/// How an instance shall be paid for.
#[derive(Debug, Clone)]
pub(crate) struct Promotion {
    pub(crate) model: String,
    pub(crate) marketplace: Option<String>,
    pub(crate) account: Option<String>,
}

/// Promotes an instance that was checked. When its new account can't bear it, that is written down.
pub(crate) async fn promote(
    app: &App,
    mut tx: Tx,
    caller: &Caller,
    kind: &Kind,
    mut instance: Instance,
    to: &Promotion,
) -> Result<(), Refused> {
    let (id, wanted) = (instance.id, billing(&instance, to));
    let refusal = match charge(app, &mut tx, caller, kind, &instance, to).await? {
        Err(denied) => denied,
        Ok((charge, limit)) => {
            let done = store::instance::promotion::promote(
                &mut tx,
                &mut instance,
                wanted.clone(),
                charge,
                limit,
            );
            match done.await {
                Ok(()) => return Ok(tx.commit().await?),
                Err(error @ store::Error::Limit { .. }) => error.to_string(),
                Err(error) => return Err(error.into()),
            }
        }
    };
    // What was begun is undone: nothing but the failure is kept.
    drop(tx);
    let mut tx = app.db.begin(caller.actor()).await?;
    let mut instance = store::instance::take(&mut tx, Scope::All, id).await?;
    let failure = Some(refusal);
    instance.detail.billing = Billing { model: instance.detail.billing.model, failure, ..wanted };
    store::instance::save(&mut tx, &mut instance, "promotion_failed").await?;
    Ok(tx.commit().await?)
}

fn billing(instance: &Instance, to: &Promotion) -> Billing {
    Billing {
        model: instance.detail.billing.model.clone(),
        desired: to.model.clone(),
        marketplace: to.marketplace.clone(),
        account: to.account.clone(),
        failure: None,
    }
}

/// Who will be charged, or why nobody can be.
async fn charge(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    kind: &Kind,
    instance: &Instance,
    to: &Promotion,
) -> Result<Result<(Charge, Option<i64>), String>, Refused> {
    let owner = (instance.organization_id, instance.detail.foreign_organization.as_deref());
    let entitled = app.rules.entitled(tx, owner.0, owner.1, &instance.owner).await?;
    let plan = format!("{}.{}", instance.instance_type, instance.size);
    let asked = Asked { plan: Some(&plan), billing_model: Some(&to.model), cluster: false };
    let grants = entitled.grants.as_deref();
    let choice = match quota::choose(kind, grants, entitled.is_limited, tx.now(), &asked) {
        Ok(choice) => choice,
        Err(denied) => return Ok(Err(denied.to_string())),
    };
    let holder = entitled.holder.unwrap_or_else(|| organization_holder(&caller.user));
    let account = format!("{}.{}", instance.instance_type, to.model);
    let charge = Charge { holder, account, units: instance.detail.units };
    Ok(Ok((charge, choice.limit.map(i64::from))))
}
