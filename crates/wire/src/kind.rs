//! Kinds of managed services.

use model::{Resources, kind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// List of kinds of managed services.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Kinds {
    /// Kinds, ordered by name.
    pub items: Vec<Kind>,
}

/// A kind of managed service.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Kind {
    /// Name.
    pub name: String,
    /// Display name.
    pub display_name: String,
    /// Path of the kind's own API below `/api`.
    pub api: String,
    /// Plans: combinations of instance type and size.
    pub plans: Vec<Plan>,
    /// Instance type that every user may create without quota.
    pub trial: Option<String>,
    /// Regions that offer the kind.
    pub regions: Vec<KindRegion>,
    /// Available versions, oldest first.
    pub versions: Vec<String>,
}

/// A plan: an instance type in one size.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Name, such as `standard.x1`.
    pub name: String,
    /// Display name of the instance type.
    pub display_name: String,
    /// Billing models.
    pub billing_models: Vec<String>,
    /// Resources of one instance.
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    pub resources: Resources,
    /// Units that an instance counts against quota and regional limits.
    pub units: u32,
    /// Lifetime in seconds; null if unlimited.
    pub lifespan_seconds: Option<u32>,
}

/// A region of a cloud provider.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KindRegion {
    /// Cloud provider.
    pub cloud_provider: String,
    /// Region name.
    pub region: String,
    /// Whether this is the default region.
    pub is_default: bool,
    /// Instance types that the region offers.
    pub instance_types: Vec<String>,
}

impl From<&kind::Kind> for Kind {
    fn from(kind: &kind::Kind) -> Self {
        Self {
            name: kind.name.clone(),
            display_name: kind.display_name.clone(),
            api: kind.api.clone(),
            plans: kind.types.iter().flat_map(plans).collect(),
            trial: kind.trial.clone(),
            regions: kind.clouds.iter().flat_map(regions).collect(),
            versions: kind.versions.iter().map(|version| version.version.clone()).collect(),
        }
    }
}

fn plans(instance_type: &kind::InstanceType) -> impl Iterator<Item = Plan> {
    instance_type.sizes.iter().map(|size| Plan {
        name: format!("{}.{}", instance_type.id, size.id),
        display_name: instance_type.display_name.clone(),
        billing_models: instance_type.billing_models.iter().map(|model| model.id.clone()).collect(),
        resources: size.resources.clone(),
        units: size.capacity_consumed,
        lifespan_seconds: size.lifespan_seconds,
    })
}

fn regions(cloud: &kind::Cloud) -> impl Iterator<Item = KindRegion> {
    cloud.regions.iter().map(|region| KindRegion {
        cloud_provider: cloud.name.clone(),
        region: region.name.clone(),
        is_default: cloud.is_default && region.is_default,
        instance_types: region.types.keys().cloned().collect(),
    })
}
