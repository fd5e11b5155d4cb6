//! Creates instances: validates the request, chooses type, size and place, computes the charges.
//!
//! Uniqueness of names, quota and region limits are enforced when the row is inserted; the checks
//! before that only give better errors.

mod charge;
mod choice;

use std::time::Duration;

use model::instance::{Billing, Detail, Instance, NewInstance};
use model::kind::{InstanceType, Kind, LocationError, MultiAz, Size};
use model::quota;
use model::user::User;
use store::{Scope, Tx};

use crate::rules::RulesReader;

pub use charge::{organization_holder, region_holder, trial_holder};

/// Why a request is refused. The messages are for users.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The name is longer than allowed.
    #[error("the name has {length} characters; at most {most} are allowed")]
    NameTooLong {
        /// Length of the name.
        length: usize,
        /// Maximum length.
        most: usize,
    },
    /// The name is empty.
    #[error("the name must have at least 1 character")]
    NameMissing,
    /// The name has invalid characters.
    #[error("the name must contain only a-z, 0-9 and -, begin with a letter, and not end with -")]
    NameMalformed,
    /// The plan is not granted, or does not exist.
    #[error(transparent)]
    Denied(#[from] quota::Denied),
    /// The kind is not available there.
    #[error(transparent)]
    Place(#[from] LocationError),
    /// Instances of this kind must span zones.
    #[error("only multi-zone instances are supported: multi_az must be true")]
    MustSpanZones,
    /// A marketplace is given without a billing account.
    #[error("a marketplace requires billing_cloud_account_id")]
    BillingAccountMissing,
    /// The organization has no such cluster.
    #[error("the organization has no dedicated cluster \"{}\"", .0.escape_default())]
    UnknownCluster(String),
    /// The owner is empty.
    #[error("the owner must have at least 1 character")]
    OwnerMissing,
    /// The organization has no such user.
    #[error("user not found in the organization")]
    OwnerUnknown,
    /// The user may not have instances.
    #[error("this user may not own instances")]
    OwnerDenied,
    /// The store refused.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl CreateError {
    /// The invalid field of the request; `None` if the store refused.
    pub fn field(&self) -> Option<&'static str> {
        use quota::Denied as Quota;
        Some(match self {
            Self::NameTooLong { .. } | Self::NameMissing | Self::NameMalformed => "name",
            Self::Place(LocationError::UnknownCloud { .. }) => "cloud_provider",
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

/// Request for a new instance. An empty field counts as missing.
#[derive(Debug, Default)]
pub struct NewInstanceRequest {
    /// Name.
    pub name: String,
    /// The cloud provider.
    pub cloud_provider: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Instance type and size.
    pub plan: Option<String>,
    /// Billing model.
    pub billing_model: Option<String>,
    /// Marketplace.
    pub marketplace: Option<String>,
    /// Account at the marketplace.
    pub billing_account: Option<String>,
    /// The organization's cluster to use.
    pub cluster_id: Option<String>,
    /// Whether it spans zones.
    pub multi_az: Option<bool>,
    /// Whether clients must reauthenticate periodically.
    pub reauthentication: Option<bool>,
}

/// The caller.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The user: the instance belongs to this user and the user's organization.
    pub user: &'a User,
    /// The account's name at the external identity provider, if the user logged in there.
    pub account: Option<&'a str>,
}

impl Caller<'_> {
    fn own(&self) -> Scope {
        Scope::Organization(self.user.organization_id)
    }
}

/// Creates an instance.
pub async fn create(
    tx: &mut Tx,
    rules: &RulesReader,
    caller: &Caller<'_>,
    kind: &Kind,
    wanted: &NewInstanceRequest,
) -> Result<Instance, CreateError> {
    check_name(kind, &wanted.name)?;
    must_be_free(tx, caller, kind, &wanted.name).await?;
    let (owner, username) = (caller.user.organization_id, &caller.user.username);
    let foreign = store::external_identity::organization_external_id(tx, owner).await?;
    let entitled = rules.entitled(tx, owner, foreign.as_deref(), username).await?;
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
            owner_account: caller.account.map(str::to_owned),
            ..detail(wanted, size, &chosen.billing_model)
        },
        charges: charge::charges(caller, kind, &entitled, &chosen),
        cloud_provider: chosen.place.cloud_provider,
        region: chosen.place.region,
    };
    Ok(store::instance::create(tx, owner, &new).await?)
}

/// Validates the name of an instance: its length, then its characters.
fn check_name(kind: &Kind, name: &str) -> Result<(), CreateError> {
    let (length, most) = (name.chars().count(), kind.words.name_max);
    if length > most {
        return Err(CreateError::NameTooLong { length, most });
    }
    if length == 0 {
        return Err(CreateError::NameMissing);
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if begins && name.chars().all(allowed) && !name.ends_with('-') {
        return Ok(());
    }
    Err(CreateError::NameMalformed)
}

async fn must_be_free(
    tx: &mut Tx,
    caller: &Caller<'_>,
    kind: &Kind,
    name: &str,
) -> Result<(), CreateError> {
    let filter = store::instance::Filter {
        kind: Some(kind.name.clone()),
        name: Some(name.to_owned()),
        ..Default::default()
    };
    if store::instance::count(tx, caller.own(), &filter).await? == 0 {
        return Ok(());
    }
    Err(store::Error::AlreadyExists { field: "name" }.into())
}

/// Where the request sets it, only `true` is accepted; otherwise the type decides.
fn multi_az(kind: &Kind, instance_type: &InstanceType) -> bool {
    kind.offers.multi_az == MultiAz::Asked || instance_type.multi_az
}

fn detail(wanted: &NewInstanceRequest, size: &Size, billing_model: &str) -> Detail {
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
    fn instance_names_are_validated() {
        let catalog = Catalog::built_in();
        let kind = catalog.kind("kafka").expect("is built in");
        let long = "a".repeat(33);
        for text in ["a", "my-kafka-1", &long[..32]] {
            assert!(check_name(kind, text).is_ok(), "{text:?}");
        }
        let too_long = check_name(kind, &long);
        assert!(matches!(too_long, Err(CreateError::NameTooLong { length: 33, most: 32 })));
        assert!(matches!(check_name(kind, ""), Err(CreateError::NameMissing)));
        for text in ["A", "1a", "a-", "-a", "a b", "a\n", "ä", "a_b"] {
            assert!(matches!(check_name(kind, text), Err(CreateError::NameMalformed)), "{text:?}");
        }
    }
}
