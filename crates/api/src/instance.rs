//! What can be done with instances, whichever API it is asked through.
//!
//! The APIs differ in shapes and in how they say no; the rules, and the order in which they are looked
//! at, are here. Names, quota and regions' limits are decided where the row is inserted: what is looked
//! at before only makes for a better answer.

mod charge;
mod choice;
mod promotion;

use std::time::Duration;

use model::instance::{Billing, Detail, Instance, NewInstance};
use model::kind::{InstanceType, Kind, MultiAz, Size};
use model::user::Role;
use model::{InstanceId, quota};
use store::{Scope, Tx};

use crate::App;
use crate::caller::Caller;

pub(crate) use charge::{organization_holder, region_holder, trial_holder};
pub(crate) use promotion::{Promotion, promote};

/// Why something is not done.
#[derive(Debug)]
pub(crate) enum Refused {
    /// What was asked for is not possible.
    Asked {
        /// The number of the error in the fleet managers' catalogue.
        code: u16,
        /// The field that is at fault.
        field: &'static str,
        /// Why, for users.
        reason: String,
    },
    /// The store did not do it.
    Store(store::Error),
}

impl Refused {
    pub(crate) fn asked(code: u16, field: &'static str, reason: impl Into<String>) -> Self {
        Self::Asked { code, field, reason: reason.into() }
    }
}

impl From<store::Error> for Refused {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

/// An instance as someone asks for it. What is empty counts as left out.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) cloud_provider: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) plan: Option<String>,
    pub(crate) billing_model: Option<String>,
    pub(crate) marketplace: Option<String>,
    pub(crate) billing_account: Option<String>,
    pub(crate) cluster_id: Option<String>,
    pub(crate) multi_az: Option<bool>,
    pub(crate) reauthentication: Option<bool>,
}

/// Asks for an instance.
pub(crate) async fn create(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    kind: &Kind,
    wanted: &Wanted,
) -> Result<Instance, Refused> {
    name(kind, &wanted.name)?;
    must_be_free(tx, caller, kind, &wanted.name).await?;
    let (owner, username) = (caller.user.organization_id, &caller.user.username);
    let foreign = store::foreign::organization_name(tx, owner).await?;
    let entitled = app.rules.entitled(tx, owner, foreign.as_deref(), username).await?;
    let chosen = choice::choose(tx, caller, kind, &entitled, wanted).await?;
    let (instance_type, size) = (chosen.instance_type, chosen.size);
    let new = NewInstance {
        kind: kind.name.clone(),
        owner: username.clone(),
        name: wanted.name.clone(),
        multi_az: multi_az(kind, instance_type),
        instance_type: instance_type.id.clone(),
        size: size.id.clone(),
        reauthentication: wanted.reauthentication.unwrap_or(true),
        pinned_to: chosen.place.pinned_to,
        lifespan: size.lifespan_seconds.map(|seconds| Duration::from_secs(seconds.into())),
        unit: kind.unit(&instance_type.id),
        priority: kind.priority,
        detail: Detail {
            foreign_organization: foreign,
            owner_account: caller.foreign_account().map(str::to_owned),
            ..detail(wanted, size, &chosen.billing_model)
        },
        charges: charge::of(caller, kind, &entitled, &chosen),
        cloud_provider: chosen.place.cloud_provider,
        region: chosen.place.region,
    };
    Ok(store::instance::create(tx, owner, &new).await?)
}

/// Checks the name of an instance: its length, then its letters.
fn name(kind: &Kind, name: &str) -> Result<(), Refused> {
    let (length, most) = (name.chars().count(), kind.words.name_max);
    if length > most {
        return Err(Refused::asked(
            34,
            "name",
            format!("the name has {length} characters; at most {most} are allowed"),
        ));
    }
    if length == 0 {
        return Err(Refused::asked(33, "name", "the name must have at least 1 character"));
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if begins && name.chars().all(allowed) && !name.ends_with('-') {
        return Ok(());
    }
    let rule = "the name must have only a-z, 0-9 and -, begin with a letter, and not end with -";
    Err(Refused::asked(32, "name", rule))
}

async fn must_be_free(
    tx: &mut Tx,
    caller: &Caller,
    kind: &Kind,
    name: &str,
) -> Result<(), Refused> {
    let filter = store::instance::Filter {
        kind: Some(kind.name.clone()),
        name: Some(name.to_owned()),
        ..Default::default()
    };
    if store::instance::count(tx, caller.own(), &filter).await? == 0 {
        return Ok(());
    }
    Err(store::Error::Taken { field: "name" }.into())
}

/// Who was asked has said yes; otherwise the type decides.
fn multi_az(kind: &Kind, instance_type: &InstanceType) -> bool {
    kind.offers.multi_az == MultiAz::Asked || instance_type.multi_az
}

fn detail(wanted: &Wanted, size: &Size, billing_model: &str) -> Detail {
    let billing = Billing {
        model: billing_model.to_owned(),
        desired: billing_model.to_owned(),
        marketplace: wanted.marketplace.clone(),
        account: wanted.billing_account.clone(),
        failure: None,
    };
    let units = i64::from(size.capacity_consumed);
    Detail { billing, resources: size.resources.clone(), units, ..Detail::default() }
}

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
        return Err(Refused::asked(33, "owner", "the owner must have at least 1 character"));
    }
    let unknown = || Refused::asked(21, "owner", "there is no such user in the organization");
    if name.chars().any(char::is_control) {
        return Err(unknown());
    }
    let (user, _) = store::user::credentials(tx, name).await?.ok_or_else(unknown)?;
    if user.organization_id != instance.organization_id {
        return Err(unknown());
    }
    if app.rules.is_denied(tx, &user.username).await? {
        return Err(Refused::asked(21, "owner", "this user may not have instances"));
    }
    Ok(user.username)
}

impl From<quota::Denied> for Refused {
    fn from(denied: quota::Denied) -> Self {
        use quota::Denied::{
            ClusterNeedsEnterprise, EnterpriseNeedsCluster, NoQuota, NoTrials, PlanMalformed,
            PlanOfOtherType, UnknownBillingModel, UnknownSize,
        };
        let field = match &denied {
            PlanMalformed
            | PlanOfOtherType { .. }
            | UnknownSize { .. }
            | NoQuota { .. }
            | NoTrials => "plan",
            UnknownBillingModel { .. } | ClusterNeedsEnterprise(_) => "billing_model",
            EnterpriseNeedsCluster => "cluster_id",
        };
        Self::asked(denied.code(), field, denied.to_string())
    }
}

#[cfg(test)]
mod tests {
    use model::kind::Catalog;

    use super::*;

    #[test]
    fn names_of_instances() {
        let catalog = Catalog::built_in();
        let kind = catalog.kind("kafka").expect("is built in");
        let long = "a".repeat(33);
        for (text, expected) in [
            ("a", None),
            ("my-kafka-1", None),
            (&long[..32], None),
            (long.as_str(), Some(34)),
            ("", Some(33)),
            ("A", Some(32)),
            ("1a", Some(32)),
            ("a-", Some(32)),
            ("-a", Some(32)),
            ("a b", Some(32)),
            ("a\n", Some(32)),
            ("ä", Some(32)),
            ("a_b", Some(32)),
        ] {
            let code = match name(kind, text) {
                Err(Refused::Asked { code, .. }) => Some(code),
                _ => None,
            };
            assert_eq!(code, expected, "{text:?}");
        }
    }
}
