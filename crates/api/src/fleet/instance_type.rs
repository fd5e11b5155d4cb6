//! Instance types of a region, with their sizes and limits.

use axum::Json as Answer;
use axum::extract::Path;
use model::kind::{self, LimitValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use super::Error;
use super::place::types_in_region;
use super::tenant::Tenant;

/// Instance types of a region.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstanceTypes {
    /// Instance types, ordered by ID.
    instance_types: Vec<InstanceType>,
}

/// An instance type.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstanceType {
    /// ID: the first half of a plan.
    id: String,
    /// Display name.
    display_name: String,
    /// Supported billing models.
    supported_billing_models: Vec<SupportedBillingModel>,
    /// Sizes, smallest first.
    sizes: Vec<Size>,
}

/// A billing model of an instance type.
#[derive(Serialize, ToSchema)]
pub(crate) struct SupportedBillingModel {
    /// Unique identifier.
    id: String,
    /// Resource name in account management.
    ams_resource: String,
    /// Product in account management.
    ams_product: String,
    /// Billing models in account management.
    ams_billing_models: Vec<String>,
}

/// A size of an instance type. In addition, the kind's limits by name.
#[derive(Serialize, ToSchema)]
#[schema(as = InstanceSize)]
pub(crate) struct Size {
    /// ID: the second half of a plan.
    id: String,
    /// Display name.
    display_name: String,
    /// Availability zone modes: `single`, `multi`, or both.
    supported_az_modes: Vec<&'static str>,
    /// Lifetime in seconds; null if unlimited.
    lifespan_seconds: Option<u32>,
    /// Quota that an instance consumes.
    quota_consumed: u32,
    /// Product of that quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_type: Option<String>,
    /// Capacity that an instance consumes on clusters and in regions.
    capacity_consumed: u32,
    /// Maturity: `stable` or `preview`.
    maturity_status: &'static str,
    #[serde(flatten)]
    limits: Map<String, Value>,
}

impl From<&kind::InstanceType> for InstanceType {
    fn from(instance_type: &kind::InstanceType) -> Self {
        let models = instance_type.billing_models.iter().map(|model| SupportedBillingModel {
            id: model.id.clone(),
            ams_resource: model.resource.clone(),
            ams_product: model.product.clone(),
            ams_billing_models: model.models.clone(),
        });
        let product = instance_type.billing_models.first().map(|model| model.product.as_str());
        Self {
            id: instance_type.id.clone(),
            display_name: instance_type.display_name.clone(),
            supported_billing_models: models.collect(),
            sizes: instance_type.sizes.iter().map(|size| Size::new(size, product)).collect(),
        }
    }
}

impl Size {
    fn new(size: &kind::Size, product: Option<&str>) -> Self {
        let limits = size.limits.iter().map(|limit| {
            let value = match &limit.value {
                LimitValue::Quantity { bytes, .. } => json!({"bytes": bytes}),
                LimitValue::Number(number) => json!(number),
                LimitValue::Text(text) => json!(text),
            };
            (limit.name.clone(), value)
        });
        Self {
            id: size.id.clone(),
            display_name: size.display_name.clone(),
            supported_az_modes: size.zones.iter().map(|zones| zones.as_str()).collect(),
            lifespan_seconds: size.lifespan_seconds,
            quota_consumed: size.quota_consumed,
            quota_type: product.map(str::to_owned),
            capacity_consumed: size.capacity_consumed,
            maturity_status: size.maturity.as_str(),
            limits: limits.collect(),
        }
    }
}

/// Path of a region.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct RegionPath {
    /// API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    _api: String,
    /// Cloud provider ID.
    cloud_provider: String,
    /// Region ID.
    cloud_region: String,
}

/// Lists the instance types of a region.
#[utoipa::path(get, path = "/api/{api}/v1/instance_types/{cloud_provider}/{cloud_region}",
    tag = "places", params(RegionPath),
    responses((status = 200, body = InstanceTypes, description = "Complete list"), Error))]
pub(crate) async fn instance_type_list(
    tenant: Tenant,
    Path(path): Path<RegionPath>,
) -> Result<Answer<InstanceTypes>, Error> {
    let kind = &tenant.kind;
    tenant.must_offer(kind.offers.instance_types, "list of instance types")?;
    let (_, region) = kind.location(&path.cloud_provider, &path.cloud_region)?;
    let mut types: Vec<InstanceType> =
        types_in_region(kind, region).map(InstanceType::from).collect();
    types.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(Answer(InstanceTypes { instance_types: types }))
}
