//! The instance types of a region, with their sizes and what these allow.

use axum::Json as Answer;
use axum::extract::Path;
use model::kind::{self, LimitValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use super::Error;
use super::place::of_region;
use super::tenant::Tenant;

/// The instance types of a region.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstanceTypes {
    /// By id.
    instance_types: Vec<InstanceType>,
}

/// An instance type.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstanceType {
    /// Its id, the first half of a plan.
    id: String,
    /// Its name for people.
    display_name: String,
    /// How it can be paid for.
    supported_billing_models: Vec<SupportedBillingModel>,
    /// Its sizes, smallest first.
    sizes: Vec<Size>,
}

/// A way to pay for an instance type.
#[derive(Serialize, ToSchema)]
pub(crate) struct SupportedBillingModel {
    /// Its id.
    id: String,
    /// What it is called where accounts are managed.
    ams_resource: String,
    /// The product there.
    ams_product: String,
    /// The billing models there.
    ams_billing_models: Vec<String>,
}

/// A size of an instance type. Beside these fields it has the kind's limits, by name.
#[derive(Serialize, ToSchema)]
#[schema(as = InstanceSize)]
pub(crate) struct Size {
    /// Its id, the second half of a plan.
    id: String,
    /// Its name for people.
    display_name: String,
    /// `single`, `multi`, or both.
    supported_az_modes: Vec<&'static str>,
    /// How many seconds an instance lives; nothing if it is not limited.
    lifespan_seconds: Option<u32>,
    /// What it counts against the quota.
    quota_consumed: u32,
    /// The product whose quota that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_type: Option<String>,
    /// What it counts against clusters and regions.
    capacity_consumed: u32,
    /// `stable` or `preview`.
    maturity_status: &'static str,
    #[serde(flatten)]
    limits: Map<String, Value>,
}

impl From<&kind::InstanceType> for InstanceType {
    fn from(of: &kind::InstanceType) -> Self {
        let models = of.billing_models.iter().map(|model| SupportedBillingModel {
            id: model.id.clone(),
            ams_resource: model.resource.clone(),
            ams_product: model.product.clone(),
            ams_billing_models: model.models.clone(),
        });
        let product = of.billing_models.first().map(|model| model.product.as_str());
        Self {
            id: of.id.clone(),
            display_name: of.display_name.clone(),
            supported_billing_models: models.collect(),
            sizes: of.sizes.iter().map(|size| Size::new(size, product)).collect(),
        }
    }
}

impl Size {
    fn new(of: &kind::Size, product: Option<&str>) -> Self {
        let limits = of.limits.iter().map(|limit| {
            let value = match &limit.value {
                LimitValue::Quantity { bytes, .. } => json!({"bytes": bytes}),
                LimitValue::Number(number) => json!(number),
                LimitValue::Text(text) => json!(text),
            };
            (limit.name.clone(), value)
        });
        Self {
            id: of.id.clone(),
            display_name: of.display_name.clone(),
            supported_az_modes: of.zones.iter().map(|zones| zones.as_str()).collect(),
            lifespan_seconds: of.lifespan_seconds,
            quota_consumed: of.quota_consumed,
            quota_type: product.map(str::to_owned),
            capacity_consumed: of.capacity_consumed,
            maturity_status: of.maturity.as_str(),
            limits: limits.collect(),
        }
    }
}

/// Which region of which API.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct RegionPath {
    /// The API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    _api: String,
    /// The cloud provider's id.
    cloud_provider: String,
    /// The region's id.
    cloud_region: String,
}

/// Lists the instance types of a region.
#[utoipa::path(get, path = "/api/{api}/v1/instance_types/{cloud_provider}/{cloud_region}",
    tag = "places", params(RegionPath),
    responses((status = 200, body = InstanceTypes, description = "All of them"), Error))]
pub(crate) async fn instance_type_list(
    tenant: Tenant,
    Path(path): Path<RegionPath>,
) -> Result<Answer<InstanceTypes>, Error> {
    let kind = &tenant.kind;
    tenant.must_offer(kind.offers.instance_types, "list of instance types")?;
    let (_, region) = kind.place(&path.cloud_provider, &path.cloud_region)?;
    let mut types: Vec<InstanceType> = of_region(kind, region).map(InstanceType::from).collect();
    types.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(Answer(InstanceTypes { instance_types: types }))
}
