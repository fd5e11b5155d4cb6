//! Instance types with their sizes and billing models.

use serde::Deserialize;

use super::Limit;
use crate::Resources;
use crate::text_enum::text_enum;

/// An instance type.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceType {
    /// The id, the first half of a plan.
    pub id: String,
    /// The display name.
    pub display_name: String,
    /// Do instances span availability zones?
    pub multi_az: bool,
    /// The billing models, in the order in which quota is tried.
    pub billing_models: Vec<BillingModel>,
    /// The sizes, smallest first.
    pub sizes: Vec<Size>,
}

/// A billing model of an instance type.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BillingModel {
    /// The id.
    pub id: String,
    /// The resource name in account management.
    pub resource: String,
    /// The product in account management.
    pub product: String,
    /// The billing models in account management.
    pub models: Vec<String>,
    /// The days for which an instance is suspended, not deleted, after its entitlement ends.
    #[serde(default = "default_grace_days")]
    pub grace_days: u32,
}

pub(super) fn default_grace_days() -> u32 {
    7
}

/// A size of an instance type.
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    /// The id, the second half of a plan.
    pub id: String,
    /// The display name.
    pub display_name: String,
    /// The resources that an instance consumes on its cluster.
    pub resources: Resources,
    /// The units that an instance consumes of regions, and of clusters with third-party agents.
    pub capacity_consumed: u32,
    /// The units of quota that an instance consumes.
    pub quota_consumed: u32,
    /// The lifespan of an instance; unlimited if absent.
    pub lifespan_seconds: Option<u32>,
    /// The maturity.
    pub maturity: Maturity,
    /// The supported zone modes.
    pub zones: Vec<Zones>,
    /// The limits for users, in the order of the file.
    pub limits: Vec<Limit>,
}

/// The maturity of a size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Maturity {
    /// Generally available.
    #[default]
    Stable,
    /// A preview.
    Preview,
}

text_enum!(Maturity { Stable => "stable", Preview => "preview" });

/// An availability zone mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zones {
    /// All replicas in one zone.
    Single,
    /// Replicas spread over zones.
    Multi,
}

text_enum!(Zones { Single => "single", Multi => "multi" });

impl InstanceType {
    /// The size with this id.
    pub fn size(&self, id: &str) -> Option<&Size> {
        self.sizes.iter().find(|size| size.id == id)
    }

    /// The smallest size, which is the default.
    pub fn default_size(&self) -> &Size {
        self.sizes.first().expect("parsing ensures at least one")
    }

    /// The billing model with this id.
    pub fn billing_model(&self, id: &str) -> Option<&BillingModel> {
        self.billing_models.iter().find(|model| model.id == id)
    }
}

impl Size {
    /// The limit with this name.
    pub fn limit(&self, name: &str) -> Option<&Limit> {
        self.limits.iter().find(|limit| limit.name == name)
    }
}
