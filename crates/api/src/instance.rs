//! What can be done with instances, whichever API it is asked through.
//!
//! The APIs differ in shapes and in how they say no; the rules, and the order in which they are looked
//! at, are here. Names, quota and regions' limits are decided where the row is inserted: what is looked
//! at before only makes for a better answer.

mod promotion;

use model::InstanceId;
use model::instance::Instance;
use model::kind::Kind;
use model::user::Role;
use store::{Scope, Tx};

use crate::App;
use crate::caller::Caller;

pub(crate) use engine::instance::asking::{
    Refused, Wanted, organization_holder, region_holder, trial_holder,
};
pub(crate) use promotion::{Promotion, promote};

/// May the caller change or delete this instance? Its owner may, and the organization's owners.
pub(crate) fn may_change(caller: &Caller, instance: &Instance) -> bool {
    instance.owner == caller.user.username || caller.user.role == Role::Owner || caller.is_admin()
}

/// What of an instance shall change.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// Its owner, by name.
    pub(crate) owner: Option<String>,
    /// Must clients sign in again from time to time?
    pub(crate) reauthentication: Option<bool>,
}

/// The instance of this kind, which nobody else changes until the end.
pub(crate) async fn take(
    tx: &mut Tx,
    scope: Scope,
    kind: &Kind,
    id: InstanceId,
) -> Result<Instance, Refused> {
    let found = store::instance::take(tx, scope, id).await?;
    if found.kind == kind.name {
        return Ok(found);
    }
    Err(store::Error::not_found("instance", id).into())
}

/// Changes an instance that the caller may change.
pub(crate) async fn change(
    app: &App,
    tx: &mut Tx,
    instance: &mut Instance,
    change: &Change,
) -> Result<(), Refused> {
    let mut changed = instance.clone();
    if let Some(owner) = &change.owner {
        changed.owner = member(app, tx, instance, owner).await?;
    }
    changed.reauthentication = change.reauthentication.unwrap_or(changed.reauthentication);
    if changed == *instance {
        return Ok(());
    }
    changed.generation += 1;
    *instance = changed;
    Ok(store::instance::save(tx, instance, "updated").await?)
}

/// The user of that name, who must be of the instance's organization and may have instances.
async fn member(
    app: &App,
    tx: &mut Tx,
    instance: &Instance,
    name: &str,
) -> Result<String, Refused> {
    if name.is_empty() {
        return Err(Refused::OwnerMissing);
    }
    let unknown = || Refused::OwnerUnknown;
    if name.chars().any(char::is_control) {
        return Err(unknown());
    }
    let (user, _) = store::user::credentials(tx, name).await?.ok_or_else(unknown)?;
    if user.organization_id != instance.organization_id {
        return Err(unknown());
    }
    if app.rules.is_denied(tx, &user.username).await? {
        return Err(Refused::OwnerDenied);
    }
    Ok(user.username)
}
