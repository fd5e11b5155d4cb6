//! Kinds of managed services.

use model::{Resources, kind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The kinds of managed services.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Kinds {
    /// By name.
    pub items: Vec<Kind>,
}

/// A kind of managed service.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
    /// Its own API, below `/api`.
    pub api: String,
    /// Its plans: instance type and size.
    pub plans: Vec<Plan>,
    /// The type that everybody may try without quota.
    pub trial: Option<String>,
    /// The regions that it can be had in.
    pub regions: Vec<KindRegion>,
    /// The versions that can be run, oldest first.
    pub versions: Vec<String>,
}

/// An instance type in one of its sizes.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Its name: `standard.x1`.
    pub name: String,
    /// The type's name for people.
    pub display_name: String,
    /// How it can be paid for.
    pub billing_models: Vec<String>,
    /// What it takes of a cluster.
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    pub resources: Resources,
    /// What it counts against quota and regions.
    pub units: u32,
    /// How many seconds it lives; nothing if it is not limited.
    pub lifespan_seconds: Option<u32>,
}

/// A region of a cloud provider.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KindRegion {
    /// The cloud provider.
    pub cloud_provider: String,
    /// The region there.
    pub region: String,
    /// Is it meant when none is named?
    pub is_default: bool,
    /// The instance types that it has.
    pub instance_types: Vec<String>,
}

impl From<&kind::Kind> for Kind {
    fn from(of: &kind::Kind) -> Self {
        Self {
            name: of.name.clone(),
            display_name: of.display_name.clone(),
            api: of.api.clone(),
            plans: of.types.iter().flat_map(plans).collect(),
            trial: of.trial.clone(),
            regions: of.clouds.iter().flat_map(regions).collect(),
            versions: of.versions.iter().map(|one| one.version.clone()).collect(),
        }
    }
}

fn plans(of: &kind::InstanceType) -> impl Iterator<Item = Plan> {
    of.sizes.iter().map(|size| Plan {
        name: format!("{}.{}", of.id, size.id),
        display_name: of.display_name.clone(),
        billing_models: of.billing_models.iter().map(|model| model.id.clone()).collect(),
        resources: size.resources.clone(),
        units: size.capacity_consumed,
        lifespan_seconds: size.lifespan_seconds,
    })
}

fn regions(of: &kind::Cloud) -> impl Iterator<Item = KindRegion> {
    of.regions.iter().map(|region| KindRegion {
        cloud_provider: of.name.clone(),
        region: region.name.clone(),
        is_default: of.is_default && region.is_default,
        instance_types: region.types.keys().cloned().collect(),
    })
}
