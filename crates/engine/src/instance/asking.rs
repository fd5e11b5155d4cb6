//! Asking for an instance, whoever asks: what it gets, what it is charged to, why not.
//!
//! Names, quota and regions' limits are decided where the row is inserted: what is looked at before
//! only makes for a better answer.

mod charge;
mod choice;

use std::time::Duration;

use model::instance::{Billing, Detail, Instance, NewInstance};
use model::kind::{InstanceType, Kind, MultiAz, Size};
use model::quota;
use model::user::User;
use store::{Scope, Tx};

use crate::rules::Rules;

pub use charge::{organization_holder, region_holder, trial_holder};

/// Why something is not done.
#[derive(Debug)]
pub enum Refused {
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
    /// What was asked for is not possible.
    pub fn asked(code: u16, field: &'static str, reason: impl Into<String>) -> Self {
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
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// The cloud provider.
    pub cloud_provider: Option<String>,
    /// The region there.
    pub region: Option<String>,
    /// Type and size.
    pub plan: Option<String>,
    /// How it is paid for.
    pub billing_model: Option<String>,
    /// Through which marketplace.
    pub marketplace: Option<String>,
    /// From which account there.
    pub billing_account: Option<String>,
    /// The organization's own cluster that it shall be on.
    pub cluster_id: Option<String>,
    /// Shall it span zones?
    pub multi_az: Option<bool>,
    /// Must its clients sign in again from time to time?
    pub reauthentication: Option<bool>,
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// The user: what is made is theirs, and their organization's.
    pub user: &'a User,
    /// What the user's account is called where it signed in, if that is elsewhere.
    pub account: Option<&'a str>,
}

impl Asker<'_> {
    fn own(&self) -> Scope {
        Scope::Organization(self.user.organization_id)
    }
}

/// Asks for an instance.
pub async fn create(
    tx: &mut Tx,
    rules: &Rules,
    asker: &Asker<'_>,
    kind: &Kind,
    wanted: &Wanted,
) -> Result<Instance, Refused> {
    name(kind, &wanted.name)?;
    must_be_free(tx, asker, kind, &wanted.name).await?;
    let (owner, username) = (asker.user.organization_id, &asker.user.username);
    let foreign = store::foreign::organization_name(tx, owner).await?;
    let entitled = rules.entitled(tx, owner, foreign.as_deref(), username).await?;
    let chosen = choice::choose(tx, asker, kind, &entitled, wanted).await?;
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
            owner_account: asker.account.map(str::to_owned),
            ..detail(wanted, size, &chosen.billing_model)
        },
        charges: charge::of(asker, kind, &entitled, &chosen),
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
    asker: &Asker<'_>,
    kind: &Kind,
    name: &str,
) -> Result<(), Refused> {
    let filter = store::instance::Filter {
        kind: Some(kind.name.clone()),
        name: Some(name.to_owned()),
        ..Default::default()
    };
    if store::instance::count(tx, asker.own(), &filter).await? == 0 {
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
