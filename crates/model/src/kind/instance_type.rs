//! Instance types: their sizes, and how they are paid for.

use serde::Deserialize;

use super::Limit;
use crate::Resources;
use crate::text_enum::text_enum;

/// A type of instance, with its sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceType {
    /// Its id, the first half of a plan.
    pub id: String,
    /// Its name for people.
    pub display_name: String,
    /// Do its instances span zones?
    pub multi_az: bool,
    /// How it can be paid for, in the order in which quota is looked for.
    pub billing_models: Vec<BillingModel>,
    /// Its sizes, smallest first.
    pub sizes: Vec<Size>,
}

/// A way to pay for an instance type.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BillingModel {
    /// Its id.
    pub id: String,
    /// What it is called where accounts are managed.
    pub resource: String,
    /// The product there.
    pub product: String,
    /// The billing models there.
    pub models: Vec<String>,
    /// For how many days an instance is only suspended after its entitlement has ended.
    #[serde(default = "a_week")]
    pub grace_days: u32,
}

pub(super) fn a_week() -> u32 {
    7
}

/// A size of an instance type.
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    /// Its id, the second half of a plan.
    pub id: String,
    /// Its name for people.
    pub display_name: String,
    /// What an instance takes of the cluster that it runs on.
    pub resources: Resources,
    /// What it counts against regions, and clusters of foreign agents.
    pub capacity_consumed: u32,
    /// What it counts against the customer.
    pub quota_consumed: u32,
    /// How long an instance lives, if not for ever.
    pub lifespan_seconds: Option<u32>,
    /// How sure its makers are of it.
    pub maturity: Maturity,
    /// The zone modes that it can have.
    pub zones: Vec<Zones>,
    /// What its users may do with it, in the order of the file.
    pub limits: Vec<Limit>,
}

/// How sure a size's makers are of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Maturity {
    /// To be relied on.
    #[default]
    Stable,
    /// To be tried.
    Preview,
}

text_enum!(Maturity { Stable => "stable", Preview => "preview" });

/// A zone mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zones {
    /// All in one zone.
    Single,
    /// Spread over zones.
    Multi,
}

text_enum!(Zones { Single => "single", Multi => "multi" });

impl InstanceType {
    /// The size with this id.
    pub fn size(&self, id: &str) -> Option<&Size> {
        self.sizes.iter().find(|size| size.id == id)
    }

    /// The smallest size, which is meant when none is named.
    pub fn default_size(&self) -> &Size {
        self.sizes.first().expect("parsing saw at least one")
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
