//! Cloud providers and their regions with free capacity.

use axum::Json as Answer;
use axum::extract::Path;
use model::kind::{InstanceType, Kind, Region};
use serde::{Deserialize, Serialize};
use store::{Read, quota_usage};
use utoipa::{IntoParams, ToSchema};

use super::Error;
use super::error::ApiPath;
use super::tenant::Tenant;
use super::wire::List;
use crate::caller::Call;
use crate::instance::region_holder;

/// A cloud provider.
#[derive(Serialize, ToSchema)]
pub(crate) struct CloudProvider {
    /// Always `CloudProvider`.
    kind: &'static str,
    /// Unique identifier.
    id: String,
    /// Display name.
    display_name: String,
    /// Same as the ID.
    name: String,
    /// Whether instances can be created there.
    enabled: bool,
}

/// A region of a cloud provider.
#[derive(Serialize, ToSchema)]
pub(crate) struct CloudRegion {
    /// Always `CloudRegion`.
    kind: &'static str,
    /// Unique identifier.
    id: String,
    /// Display name.
    display_name: String,
    /// Whether instances can be created there.
    enabled: bool,
    /// Free capacity, for kinds that report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<Vec<RegionCapacity>>,
    /// Instance types of the region, for kinds that do not report capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    supported_instance_types: Option<Vec<String>>,
}

/// Free capacity for an instance type in a region.
#[derive(Serialize, ToSchema)]
pub(crate) struct RegionCapacity {
    /// Instance type.
    instance_type: String,
    /// Sizes that fit, smallest first; empty if the region is full.
    available_sizes: Vec<String>,
}

/// Path of a cloud provider.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct CloudPath {
    /// API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    _api: String,
    /// Cloud provider ID.
    id: String,
}

/// Lists the cloud providers.
#[utoipa::path(get, path = "/api/{api}/v1/cloud_providers", tag = "places", params(ApiPath),
    responses((status = 200, body = List<CloudProvider>, description = "Complete list"), Error))]
pub(crate) async fn cloud_provider_list(tenant: Tenant) -> Answer<List<CloudProvider>> {
    let clouds = tenant.kind.clouds.iter().map(|cloud| CloudProvider {
        kind: "CloudProvider",
        id: cloud.name.clone(),
        display_name: cloud.display_name.clone(),
        name: cloud.name.clone(),
        enabled: cloud.regions.iter().any(Region::is_enabled),
    });
    Answer(List::all("CloudProviderList", clouds.collect()))
}

/// Lists the regions of a cloud provider with their free capacity.
#[utoipa::path(get, path = "/api/{api}/v1/cloud_providers/{id}/regions", tag = "places",
    params(CloudPath),
    responses((status = 200, body = List<CloudRegion>, description = "Complete list"), Error))]
pub(crate) async fn region_list(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<CloudPath>,
) -> Result<Answer<List<CloudRegion>>, Error> {
    let kind = &tenant.kind;
    let cloud = kind.cloud(&path.id);
    let cloud = cloud.ok_or_else(|| Error::not_found("cloud provider", &path.id))?;
    let mut read = app.db.read().await?;
    let mut regions = Vec::new();
    for region in &cloud.regions {
        regions.push(region_response(&mut read, kind, &cloud.name, region).await?);
    }
    Ok(Answer(List::all("CloudRegionList", regions)))
}

async fn region_response(
    read: &mut Read,
    kind: &Kind,
    cloud: &str,
    region: &Region,
) -> Result<CloudRegion, Error> {
    let shows_capacity = kind.offers.capacity;
    let mut capacity = Vec::new();
    for instance_type in types_in_region(kind, region).filter(|_| shows_capacity) {
        let available_sizes = fitting_sizes(read, kind, cloud, region, instance_type).await?;
        capacity.push(RegionCapacity { instance_type: instance_type.id.clone(), available_sizes });
    }
    let types =
        || types_in_region(kind, region).map(|instance_type| instance_type.id.clone()).collect();
    Ok(CloudRegion {
        kind: "CloudRegion",
        id: region.name.clone(),
        display_name: region.display_name.clone(),
        enabled: region.is_enabled(),
        capacity: shows_capacity.then_some(capacity),
        supported_instance_types: (!shows_capacity).then(types),
    })
}

/// Returns the instance types of a region, in the order of the kind.
pub(super) fn types_in_region<'a>(
    kind: &'a Kind,
    region: &'a Region,
) -> impl Iterator<Item = &'a InstanceType> {
    kind.types.iter().filter(|instance_type| region.types.contains_key(&instance_type.id))
}

/// Returns the sizes of a type that fit in a region now.
pub(super) async fn fitting_sizes(
    read: &mut Read,
    kind: &Kind,
    cloud: &str,
    region: &Region,
    instance_type: &InstanceType,
) -> Result<Vec<String>, Error> {
    let limit = region.types.get(&instance_type.id).and_then(|offer| offer.limit).map(i64::from);
    let holder = region_holder(cloud, &region.name);
    let used = quota_usage::used(read, &kind.name, &holder, &instance_type.id).await?;
    let fits = |units: u32| limit.is_none_or(|limit| used + i64::from(units) <= limit);
    let sizes = instance_type.sizes.iter().filter(|size| fits(size.capacity_consumed));
    Ok(sizes.map(|size| size.id.clone()).collect())
}
