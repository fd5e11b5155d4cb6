//! Promotion of an instance from one billing model to another.

use model::instance::{Billing, Charge, Instance};
use model::kind::Kind;
use model::quota::{self, Request};
use store::{Scope, Tx};

use super::CreateError;
use super::organization_holder;
use crate::App;
use crate::caller::Caller;

/// Requested billing of an instance.
#[derive(Debug, Clone)]
pub(crate) struct Promotion {
    pub(crate) model: String,
    pub(crate) marketplace: Option<String>,
    pub(crate) account: Option<String>,
}

/// Promotes a validated instance. Records the failure if the new account has insufficient quota.
pub(crate) async fn promote(
    app: &App,
    mut tx: Tx,
    caller: &Caller,
    kind: &Kind,
    mut instance: Instance,
    to: &Promotion,
) -> Result<(), CreateError> {
    let (id, desired) = (instance.id, billing(&instance, to));
    let failure = match charge(app, &mut tx, caller, kind, &instance, to).await? {
        Err(denied) => denied,
        Ok((charge, limit)) => {
            let promoted = store::instance::promotion::promote(
                &mut tx,
                &mut instance,
                desired.clone(),
                charge,
                limit,
            );
            match promoted.await {
                Ok(()) => return Ok(tx.commit().await?),
                Err(error @ store::Error::Limit { .. }) => error.to_string(),
                Err(error) => return Err(error.into()),
            }
        }
    };
    // Roll back everything else: only the failure is recorded.
    drop(tx);
    let mut tx = app.db.begin(caller.actor()).await?;
    let mut instance = store::instance::lock(&mut tx, Scope::All, id).await?;
    let failure = Some(failure);
    instance.detail.billing = Billing { model: instance.detail.billing.model, failure, ..desired };
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

/// Returns the quota account to charge and its limit, or the reason why it is denied.
async fn charge(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    kind: &Kind,
    instance: &Instance,
    to: &Promotion,
) -> Result<Result<(Charge, Option<i64>), String>, CreateError> {
    let owner = (instance.organization_id, instance.detail.foreign_organization.as_deref());
    let entitled = app.rules.entitled(tx, owner.0, owner.1, &instance.owner).await?;
    let plan = format!("{}.{}", instance.instance_type, instance.size);
    let request = Request { plan: Some(&plan), billing_model: Some(&to.model), cluster: false };
    let grants = entitled.grants.as_deref();
    let choice = match quota::choose(kind, grants, entitled.is_limited, tx.now(), &request) {
        Ok(choice) => choice,
        Err(denied) => return Ok(Err(denied.to_string())),
    };
    let holder = entitled.holder.unwrap_or_else(|| organization_holder(&caller.user));
    let account = format!("{}.{}", instance.instance_type, to.model);
    let charge = Charge { holder, account, units: instance.detail.units };
    Ok(Ok((charge, choice.limit.map(i64::from))))
}
