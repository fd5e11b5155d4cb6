//! Instance operations shared by the API families.
//!
//! The APIs differ in types and error formats; the rules and their order are here. Names, quota and
//! regional limits are enforced where the row is inserted: earlier checks only improve the error
//! message.

mod promotion;

use model::InstanceId;
use model::access::{Action, SubjectKind, Verb};
use model::instance::Instance;
use model::kind::Kind;
use store::{Scope, Tx};

use crate::App;
use crate::caller::Caller;

pub(crate) use engine::instance::commands::{
    CreateError, NewInstanceRequest, organization_holder, region_holder, trial_holder,
};
pub(crate) use promotion::{Promotion, promote};

/// Whether the caller may change or delete this instance: its owner and the organization's owners
/// may.
pub(crate) fn may_change(caller: &Caller, instance: &Instance) -> bool {
    instance.owner == caller.user.username
        || caller.allows(Action::new(SubjectKind::Instance, Verb::Administer))
}

/// Fields to update.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// Owner, by username.
    pub(crate) owner: Option<String>,
    /// Whether clients must reauthenticate periodically.
    pub(crate) reauthentication: Option<bool>,
}

/// Locks the instance of this kind until the end of the transaction.
pub(crate) async fn lock(
    tx: &mut Tx,
    scope: Scope,
    kind: &Kind,
    id: InstanceId,
) -> Result<Instance, CreateError> {
    let instance = store::instance::lock(tx, scope, id).await?;
    if instance.kind == kind.name {
        return Ok(instance);
    }
    Err(store::Error::not_found("instance", id).into())
}

/// Updates an instance that the caller may change.
pub(crate) async fn change(
    app: &App,
    tx: &mut Tx,
    instance: &mut Instance,
    change: &Change,
) -> Result<(), CreateError> {
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

/// Returns the user with this name, who must belong to the instance's organization and may own
/// instances.
async fn member(
    app: &App,
    tx: &mut Tx,
    instance: &Instance,
    name: &str,
) -> Result<String, CreateError> {
    if name.is_empty() {
        return Err(CreateError::OwnerMissing);
    }
    let unknown = || CreateError::OwnerUnknown;
    if name.chars().any(char::is_control) {
        return Err(unknown());
    }
    let (user, _) = store::user::credentials(tx, name).await?.ok_or_else(unknown)?;
    if user.organization_id != instance.organization_id {
        return Err(unknown());
    }
    if app.rules.is_denied(tx, &user.username).await? {
        return Err(CreateError::OwnerDenied);
    }
    Ok(user.username)
}
