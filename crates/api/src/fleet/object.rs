//! An instance as fleet managers show it.

use model::instance::{self, Status};
use model::kind::{Kind, LimitValue, Shown, Size};
use model::quota::ENTERPRISE;
use model::reason::Coded;
use model::{InstanceId, Time};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::wire::Origin;

/// An instance. Fields without a value are left out. The field with its host is named as the kind says,
/// and so are the limits that its size shows.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the wire")]
pub(crate) struct Instance {
    /// Its id.
    #[schema(value_type = String)]
    id: InstanceId,
    /// What it is: `Kafka`.
    kind: String,
    /// Where it is.
    href: String,
    /// Where it is on its way: `accepted`, `preparing`, `provisioning`, `ready`, `failed`, `deprovision`,
    /// `deleting`, `suspending`, `suspended`, `resuming`.
    #[schema(value_type = String)]
    status: Status,
    /// Why it is there.
    status_reason: String,
    /// The code of that reason, such as `InsufficientCapacity`.
    reason_code: String,
    /// The cloud provider.
    cloud_provider: String,
    /// The region there.
    region: String,
    /// Does it span zones?
    multi_az: bool,
    /// Who has it, by user name.
    owner: String,
    /// Its name.
    name: String,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    /// When it ends, if it does.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Time>,
    /// Where it is administered.
    #[serde(skip_serializing_if = "Option::is_none")]
    admin_api_server_url: Option<String>,
    /// Why it failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_reason: Option<String>,
    /// The version that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Its type.
    instance_type: String,
    /// The name of its type, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_type_name: Option<String>,
    /// Must its clients sign in again from time to time?
    reauthentication_enabled: bool,
    /// Its page in the console.
    browser_url: String,
    /// Its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    size_id: Option<String>,
    /// How it is paid for.
    #[serde(skip_serializing_if = "Option::is_none")]
    billing_model: Option<String>,
    /// The account that it is paid from.
    #[serde(skip_serializing_if = "Option::is_none")]
    billing_cloud_account_id: Option<String>,
    /// The marketplace of that account.
    #[serde(skip_serializing_if = "Option::is_none")]
    marketplace: Option<String>,
    /// `promoting` or `failed`, while its billing model is to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    promotion_status: Option<&'static str>,
    /// Why its billing model could not be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    promotion_details: Option<String>,
    /// The organization's own cluster that it is on, if it was asked for there.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_id: Option<String>,
    /// Where it can really be reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    endpoints: Vec<String>,
    #[serde(flatten)]
    named_by_kind: Map<String, Value>,
}

impl Instance {
    /// The instance as the API of its kind shows it.
    pub(crate) fn new(kind: &Kind, origin: &Origin, of: instance::Instance) -> Self {
        let (offers, billing) = (&kind.offers, &of.detail.billing);
        let is_enterprise = billing.desired == ENTERPRISE;
        let instance_type = kind.type_of(&of.instance_type);
        let version = Some(of.detail.actual.service.clone()).filter(|text| !text.is_empty());
        let promotion_details = billing.failure.clone();
        Self {
            kind: kind.words.object.clone(),
            href: format!("/api/{}/v1/{}/{}", kind.api, kind.plural, of.id),
            named_by_kind: named_by_kind(kind, &of),
            failed_reason: (of.status == Status::Failed).then(|| of.reason.to_string()),
            version,
            instance_type_name: instance_type.map(|one| one.display_name.clone()),
            browser_url: format!("{}/#/instances/{}", origin.0, of.id),
            size_id: offers.plans.then_some(of.size),
            billing_model: offers.billing.then(|| billing.model.clone()),
            promotion_status: promotion_status(billing),
            promotion_details,
            cluster_id: of.pinned_to.filter(|_| is_enterprise).map(|id| id.to_string()),
            billing_cloud_account_id: of.detail.billing.account,
            marketplace: of.detail.billing.marketplace,
            admin_api_server_url: of.detail.admin_url,
            endpoints: of.detail.endpoints,
            id: of.id,
            status: of.status,
            status_reason: of.reason.to_string(),
            reason_code: of.reason.code().to_owned(),
            cloud_provider: of.cloud_provider,
            region: of.region,
            multi_az: of.multi_az,
            owner: of.owner,
            name: of.name,
            created_at: of.created_at,
            updated_at: of.updated_at,
            expires_at: of.expires_at,
            instance_type: of.instance_type,
            reauthentication_enabled: of.reauthentication,
        }
    }
}

fn promotion_status(billing: &instance::Billing) -> Option<&'static str> {
    if billing.failure.is_some() {
        return Some("failed");
    }
    (billing.desired != billing.model).then_some("promoting")
}

fn named_by_kind(kind: &Kind, of: &instance::Instance) -> Map<String, Value> {
    let mut fields = Map::new();
    if let Some(host) = &of.host {
        let port = kind.words.host_port.map(|port| format!(":{port}")).unwrap_or_default();
        fields.insert(kind.words.host.clone(), json!(format!("{host}{port}")));
    }
    // A size that the catalog has no more shows no limits; the instance is there all the same.
    let size = kind.type_of(&of.instance_type).and_then(|one| one.size(&of.size));
    if let Some(size) = size {
        fields.extend(limits(size, of.detail.retention_bytes));
    }
    fields
}

fn limits(size: &Size, kept_bytes: Option<i64>) -> impl Iterator<Item = (String, Value)> {
    size.limits.iter().filter_map(move |limit| {
        let value = match (limit.shown, &limit.value) {
            (Shown::Hidden, _) => return None,
            (Shown::Bytes, LimitValue::Quantity { bytes, .. }) => {
                json!({"bytes": kept_bytes.unwrap_or(*bytes)})
            }
            (_, LimitValue::Quantity { text, .. } | LimitValue::Text(text)) => json!(text),
            (_, LimitValue::Number(number)) => json!(number),
        };
        Some((limit.name.clone(), value))
    })
}
