//! Asking for an instance, whoever asks: what it gets, what it is charged to, why not.
//!
//! Names, quota and regions' limits are decided where the row is inserted: what is looked at before
//! only makes for a better answer.

mod charge;
mod choice;

use std::time::Duration;

use model::instance::{Billing, Detail, Instance, NewInstance};
use model::kind::{InstanceType, Kind, MultiAz, PlaceError, Size};
use model::quota;
use model::user::User;
use store::{Scope, Tx};

use crate::rules::Rules;

pub use charge::{organization_holder, region_holder, trial_holder};

/// Why something is not done. The sentences are for users.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The name is longer than allowed.
    #[error("the name has {length} characters; at most {most} are allowed")]
    NameTooLong {
        /// How many characters it has.
        length: usize,
        /// How many are allowed.
        most: usize,
    },
    /// There is no name.
    #[error("the name must have at least 1 character")]
    NameMissing,
    /// The name has other characters than allowed.
    #[error("the name must have only a-z, 0-9 and -, begin with a letter, and not end with -")]
    NameMalformed,
    /// What was asked for is not granted, or does not exist.
    #[error(transparent)]
    Denied(#[from] quota::Denied),
    /// The kind can't be had there.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Instances of this kind must span zones.
    #[error("only instances that span zones are supported: multi_az must be true")]
    MustSpanZones,
    /// A marketplace is named without the account there.
    #[error("a marketplace needs the billing account there: give billing_cloud_account_id")]
    BillingAccountMissing,
    /// The organization has no such cluster.
    #[error("the organization has no cluster \"{}\" of its own", .0.escape_default())]
    UnknownCluster(String),
    /// There is no owner.
    #[error("the owner must have at least 1 character")]
    OwnerMissing,
    /// The organization has no such user.
    #[error("there is no such user in the organization")]
    OwnerUnknown,
    /// The user may not have instances.
    #[error("this user may not have instances")]
    OwnerDenied,
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Refused {
    /// The field of the request that is at fault, unless the store refused.
    pub fn field(&self) -> Option<&'static str> {
        use quota::Denied as Quota;
        Some(match self {
            Self::NameTooLong { .. } | Self::NameMissing | Self::NameMalformed => "name",
            Self::Place(PlaceError::UnknownCloud { .. }) => "cloud_provider",
            Self::Place(_) => "region",
            Self::MustSpanZones => "multi_az",
            Self::BillingAccountMissing => "billing_cloud_account_id",
            Self::Denied(Quota::UnknownBillingModel { .. } | Quota::ClusterNeedsEnterprise(_)) => {
                "billing_model"
            }
            Self::UnknownCluster(_) | Self::Denied(Quota::EnterpriseNeedsCluster) => "cluster_id",
            Self::Denied(_) => "plan",
            Self::OwnerMissing | Self::OwnerUnknown | Self::OwnerDenied => "owner",
            Self::Store(_) => return None,
        })
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
        return Err(Refused::NameTooLong { length, most });
    }
    if length == 0 {
        return Err(Refused::NameMissing);
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if begins && name.chars().all(allowed) && !name.ends_with('-') {
        return Ok(());
    }
    Err(Refused::NameMalformed)
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

#[cfg(test)]
mod tests {
    use model::kind::Catalog;

    use super::*;

    #[test]
    fn names_of_instances() {
        let catalog = Catalog::built_in();
        let kind = catalog.kind("kafka").expect("is built in");
        let long = "a".repeat(33);
        for text in ["a", "my-kafka-1", &long[..32]] {
            assert!(name(kind, text).is_ok(), "{text:?}");
        }
        let too_long = name(kind, &long);
        assert!(matches!(too_long, Err(Refused::NameTooLong { length: 33, most: 32 })));
        assert!(matches!(name(kind, ""), Err(Refused::NameMissing)));
        for text in ["A", "1a", "a-", "-a", "a b", "a\n", "ä", "a_b"] {
            assert!(matches!(name(kind, text), Err(Refused::NameMalformed)), "{text:?}");
        }
    }
}
