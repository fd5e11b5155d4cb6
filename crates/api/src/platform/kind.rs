//! The kinds of managed services in the catalog.

use axum::Json as Answer;
use axum::extract::State;
use model::kind;
use serde::Serialize;
use utoipa::ToSchema;

use crate::caller::Caller;
use crate::{App, Problem};

/// The kinds of managed services.
#[derive(Serialize, ToSchema)]
pub(crate) struct Kinds {
    /// By name.
    items: Vec<Kind>,
}

/// A kind of managed service.
#[derive(Serialize, ToSchema)]
pub(crate) struct Kind {
    /// Its name.
    name: String,
    /// Its name for people.
    display_name: String,
    /// Its own API, below `/api`.
    api: String,
    /// Its plans: instance type and size.
    plans: Vec<Plan>,
    /// The type that everybody may try without quota.
    trial: Option<String>,
    /// The regions that it can be had in.
    regions: Vec<KindRegion>,
    /// The versions that can be run, oldest first.
    versions: Vec<String>,
}

/// An instance type in one of its sizes.
#[derive(Serialize, ToSchema)]
pub(crate) struct Plan {
    /// Its name: `standard.x1`.
    name: String,
    /// The type's name for people.
    display_name: String,
    /// How it can be paid for.
    billing_models: Vec<String>,
    /// What it takes of a cluster.
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    resources: model::Resources,
    /// What it counts against quota and regions.
    units: u32,
    /// How many seconds it lives; nothing if it is not limited.
    lifespan_seconds: Option<u32>,
}

/// A region of a cloud provider.
#[derive(Serialize, ToSchema)]
pub(crate) struct KindRegion {
    /// The cloud provider.
    cloud_provider: String,
    /// The region there.
    region: String,
    /// Is it meant when none is named?
    is_default: bool,
    /// The instance types that it has.
    instance_types: Vec<String>,
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

/// Lists the kinds of managed services.
#[utoipa::path(get, path = "/api/v1/kinds", tag = "instances",
    responses((status = 200, body = Kinds, description = "All of them"), Problem))]
pub(crate) async fn kind_list(State(app): State<App>, _: Caller) -> Answer<Kinds> {
    let catalog = app.rules.catalog();
    Answer(Kinds { items: catalog.kinds().map(|kind| Kind::from(&**kind)).collect() })
}
