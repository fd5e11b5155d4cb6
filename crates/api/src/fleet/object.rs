//! Instance object of the fleet API.

use model::instance::{self, Status};
use model::kind::{Kind, LimitValue, Shown, Size};
use model::quota::ENTERPRISE;
use model::reason::StatusReason;
use model::{InstanceId, Time};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::wire::Origin;

/// An instance. Fields without a value are omitted. The kind determines the names of the host field
/// and of the limits of its size.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the wire")]
pub(crate) struct Instance {
    /// Unique identifier.
    #[schema(value_type = String)]
    id: InstanceId,
    /// Kind of the object: `Kafka`.
    kind: String,
    /// Path in this API.
    href: String,
    /// One of `accepted`, `preparing`, `provisioning`, `ready`, `failed`, `deprovision`,
    /// `deleting`, `suspending`, `suspended`, `resuming`.
    #[schema(value_type = String)]
    status: Status,
    /// Human-readable reason for the status.
    status_reason: String,
    /// Machine-readable reason code, such as `InsufficientCapacity`.
    reason_code: String,
    /// Cloud provider.
    cloud_provider: String,
    /// Region of the cloud provider.
    region: String,
    /// Whether it spans availability zones.
    multi_az: bool,
    /// Owner, by username.
    owner: String,
    /// Name.
    name: String,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// Time of the last change.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    /// Expiry time, if the instance expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Time>,
    /// URL of the admin API.
    #[serde(skip_serializing_if = "Option::is_none")]
    admin_api_server_url: Option<String>,
    /// Reason of the failure, if the instance failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_reason: Option<String>,
    /// Running version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Instance type.
    instance_type: String,
    /// Display name of the instance type.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_type_name: Option<String>,
    /// Whether clients must reauthenticate periodically.
    reauthentication_enabled: bool,
    /// URL in the console.
    browser_url: String,
    /// Size.
    #[serde(skip_serializing_if = "Option::is_none")]
    size_id: Option<String>,
    /// Billing model.
    #[serde(skip_serializing_if = "Option::is_none")]
    billing_model: Option<String>,
    /// Billing account.
    #[serde(skip_serializing_if = "Option::is_none")]
    billing_cloud_account_id: Option<String>,
    /// Marketplace of the billing account.
    #[serde(skip_serializing_if = "Option::is_none")]
    marketplace: Option<String>,
    /// `promoting` or `failed`, while a promotion is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    promotion_status: Option<&'static str>,
    /// Reason why the promotion failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    promotion_details: Option<String>,
    /// Enterprise cluster that the instance was requested on, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_id: Option<String>,
    /// Addresses where the instance can be reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    endpoints: Vec<String>,
    #[serde(flatten)]
    named_by_kind: Map<String, Value>,
}

impl Instance {
    /// Creates the object for the API of its kind.
    pub(crate) fn new(kind: &Kind, origin: &Origin, instance: instance::Instance) -> Self {
        let (offers, billing) = (&kind.offers, &instance.detail.billing);
        let is_enterprise = billing.desired == ENTERPRISE;
        let instance_type = kind.instance_type(&instance.instance_type);
        let version = Some(instance.detail.actual.service.clone()).filter(|text| !text.is_empty());
        let promotion_details = billing.failure.clone();
        Self {
            kind: kind.words.object.clone(),
            href: format!("/api/{}/v1/{}/{}", kind.api, kind.plural, instance.id),
            named_by_kind: named_by_kind(kind, &instance),
            failed_reason: (instance.status == Status::Failed).then(|| instance.reason.to_string()),
            version,
            instance_type_name: instance_type
                .map(|instance_type| instance_type.display_name.clone()),
            browser_url: format!("{}/#/instances/{}", origin.0, instance.id),
            size_id: offers.plans.then_some(instance.size),
            billing_model: offers.billing.then(|| billing.model.clone()),
            promotion_status: promotion_status(billing),
            promotion_details,
            cluster_id: instance.pinned_to.filter(|_| is_enterprise).map(|id| id.to_string()),
            billing_cloud_account_id: instance.detail.billing.account,
            marketplace: instance.detail.billing.marketplace,
            admin_api_server_url: instance.detail.admin_url,
            endpoints: instance.detail.endpoints,
            id: instance.id,
            status: instance.status,
            status_reason: instance.reason.to_string(),
            reason_code: instance.reason.code().to_owned(),
            cloud_provider: instance.cloud_provider,
            region: instance.region,
            multi_az: instance.multi_az,
            owner: instance.owner,
            name: instance.name,
            created_at: instance.created_at,
            updated_at: instance.updated_at,
            expires_at: instance.expires_at,
            instance_type: instance.instance_type,
            reauthentication_enabled: instance.reauthentication,
        }
    }
}

fn promotion_status(billing: &instance::Billing) -> Option<&'static str> {
    if billing.failure.is_some() {
        return Some("failed");
    }
    (billing.desired != billing.model).then_some("promoting")
}

fn named_by_kind(kind: &Kind, instance: &instance::Instance) -> Map<String, Value> {
    let mut fields = Map::new();
    if let Some(host) = &instance.host {
        let port = kind.words.host_port.map(|port| format!(":{port}")).unwrap_or_default();
        fields.insert(kind.words.host.clone(), json!(format!("{host}{port}")));
    }
    // If the catalog no longer has the size, the instance is shown without limits.
    let size = kind
        .instance_type(&instance.instance_type)
        .and_then(|instance_type| instance_type.size(&instance.size));
    if let Some(size) = size {
        fields.extend(limits(size, instance.detail.retention_bytes));
    }
    fields
}

fn limits(size: &Size, retention_bytes: Option<i64>) -> impl Iterator<Item = (String, Value)> {
    size.limits.iter().filter_map(move |limit| {
        let value = match (limit.shown, &limit.value) {
            (Shown::Hidden, _) => return None,
            (Shown::Bytes, LimitValue::Quantity { bytes, .. }) => {
                json!({"bytes": retention_bytes.unwrap_or(*bytes)})
            }
            (_, LimitValue::Quantity { text, .. } | LimitValue::Text(text)) => json!(text),
            (_, LimitValue::Number(number)) => json!(number),
        };
        Some((limit.name.clone(), value))
    })
}
