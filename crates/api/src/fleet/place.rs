//! Where instances can be had: cloud providers, and their regions with what still fits.

use axum::Json as Answer;
use axum::extract::Path;
use model::kind::{InstanceType, Kind, Region};
use serde::{Deserialize, Serialize};
use store::{Read, account};
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
    /// Its id.
    id: String,
    /// Its name for people.
    display_name: String,
    /// The same as its id.
    name: String,
    /// Can instances be had there?
    enabled: bool,
}

/// A region of a cloud provider.
#[derive(Serialize, ToSchema)]
pub(crate) struct CloudRegion {
    /// Always `CloudRegion`.
    kind: &'static str,
    /// Its id.
    id: String,
    /// Its name for people.
    display_name: String,
    /// Can instances be had there?
    enabled: bool,
    /// What fits there now, for kinds that tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<Vec<RegionCapacity>>,
    /// The instance types that it has, for kinds that don't tell more.
    #[serde(skip_serializing_if = "Option::is_none")]
    supported_instance_types: Option<Vec<String>>,
}

/// What of an instance type fits in a region now.
#[derive(Serialize, ToSchema)]
pub(crate) struct RegionCapacity {
    /// The instance type.
    instance_type: String,
    /// The sizes that fit, smallest first; none when it is full.
    available_sizes: Vec<String>,
}

/// Which cloud provider of which API.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct CloudPath {
    /// The API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    _api: String,
    /// The cloud provider's id.
    id: String,
}

/// Lists the cloud providers.
#[utoipa::path(get, path = "/api/{api}/v1/cloud_providers", tag = "places", params(ApiPath),
    responses((status = 200, body = List<CloudProvider>, description = "All of them"), Error))]
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

/// Lists the regions of a cloud provider, with what fits there now.
#[utoipa::path(get, path = "/api/{api}/v1/cloud_providers/{id}/regions", tag = "places",
    params(CloudPath),
    responses((status = 200, body = List<CloudRegion>, description = "All of them"), Error))]
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
        regions.push(shown(&mut read, kind, &cloud.name, region).await?);
    }
    Ok(Answer(List::all("CloudRegionList", regions)))
}

async fn shown(
    read: &mut Read,
    kind: &Kind,
    cloud: &str,
    region: &Region,
) -> Result<CloudRegion, Error> {
    let is_told = kind.offers.capacity;
    let mut capacity = Vec::new();
    for instance_type in of_region(kind, region).filter(|_| is_told) {
        let available_sizes = fitting(read, kind, cloud, region, instance_type).await?;
        capacity.push(RegionCapacity { instance_type: instance_type.id.clone(), available_sizes });
    }
    let types = || of_region(kind, region).map(|one| one.id.clone()).collect();
    Ok(CloudRegion {
        kind: "CloudRegion",
        id: region.name.clone(),
        display_name: region.display_name.clone(),
        enabled: region.is_enabled(),
        capacity: is_told.then_some(capacity),
        supported_instance_types: (!is_told).then(types),
    })
}

/// The instance types of a region, in the order of the kind.
pub(super) fn of_region<'a>(
    kind: &'a Kind,
    region: &'a Region,
) -> impl Iterator<Item = &'a InstanceType> {
    kind.types.iter().filter(|one| region.types.contains_key(&one.id))
}

/// The sizes of a type that fit in a region now.
pub(super) async fn fitting(
    read: &mut Read,
    kind: &Kind,
    cloud: &str,
    region: &Region,
    instance_type: &InstanceType,
) -> Result<Vec<String>, Error> {
    let limit = region.types.get(&instance_type.id).and_then(|of| of.limit).map(i64::from);
    let holder = region_holder(cloud, &region.name);
    let used = account::used(read, &kind.name, &holder, &instance_type.id).await?;
    let fits = |units: u32| limit.is_none_or(|limit| used + i64::from(units) <= limit);
    let sizes = instance_type.sizes.iter().filter(|size| fits(size.capacity_consumed));
    Ok(sizes.map(|size| size.id.clone()).collect())
}
