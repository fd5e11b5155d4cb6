//! Instances of managed services.

use model::reason::StatusReason as _;
use model::{ClusterId, InstanceId, OrganizationId, Time, instance};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An instance.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ManagedInstance)]
pub struct Instance {
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: InstanceId,
    /// Kind of service.
    pub kind: String,
    /// Owning organization.
    #[schema(value_type = String)]
    pub organization_id: OrganizationId,
    /// Owner, by username.
    pub owner: String,
    /// Name, unique among instances of the same kind in the organization.
    pub name: String,
    /// Cloud provider.
    pub cloud_provider: String,
    /// Region of the cloud provider.
    pub region: String,
    /// Whether the instance spans availability zones.
    pub multi_az: bool,
    /// Instance type and size: `standard.x1`.
    pub plan: String,
    /// Billing model.
    pub billing_model: String,
    /// Whether clients must reauthenticate periodically.
    pub reauthentication: bool,
    /// One of `accepted`, `preparing`, `provisioning`, `ready`, `failed`, `deprovision`,
    /// `deleting`, `suspending`, `suspended`, `resuming`.
    pub status: String,
    /// Human-readable reason for the status; empty when there is nothing to add.
    pub status_reason: String,
    /// Machine-readable reason code, such as `InsufficientCapacity`.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// Cluster that hosts it.
    #[schema(value_type = Option<String>)]
    pub cluster_id: Option<ClusterId>,
    /// DNS name.
    pub host: Option<String>,
    /// Addresses where it can be reached.
    pub endpoints: Vec<String>,
    /// Running version.
    pub version: Option<String>,
    /// Expiry time, if the instance expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Time>,
    /// Incremented by every change of the spec; also the ETag.
    pub generation: i64,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// Time of the last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Time,
}

impl From<instance::Instance> for Instance {
    fn from(i: instance::Instance) -> Self {
        Self {
            id: i.id,
            kind: i.kind,
            organization_id: i.organization_id,
            owner: i.owner,
            name: i.name,
            cloud_provider: i.cloud_provider,
            region: i.region,
            multi_az: i.multi_az,
            plan: format!("{}.{}", i.instance_type, i.size),
            billing_model: i.detail.billing.model,
            reauthentication: i.reauthentication,
            status: i.status.to_string(),
            status_reason: i.reason.to_string(),
            reason_code: i.reason.code().to_owned(),
            cluster_id: i.cluster_id,
            host: i.host,
            endpoints: i.detail.endpoints,
            version: Some(i.detail.actual.service).filter(|text| !text.is_empty()),
            expires_at: i.expires_at,
            generation: i.generation,
            created_at: i.created_at,
            updated_at: i.updated_at,
        }
    }
}

/// An instance to create. Omitted fields are chosen automatically.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewManagedInstance)]
pub struct NewInstance {
    /// Kind of service; `GET /api/v1/kinds` lists them.
    pub kind: String,
    /// Name: `a-z`, `0-9` and `-`; starts with a letter and does not end with `-`.
    pub name: String,
    /// Instance type and size, such as `standard.x1`; chosen by quota if omitted.
    pub plan: Option<String>,
    /// Cloud provider; defaults to the kind's default.
    pub cloud_provider: Option<String>,
    /// Region; defaults to the cloud provider's default.
    pub region: Option<String>,
    /// Billing model; chosen by quota if omitted.
    pub billing_model: Option<String>,
    /// Marketplace; requires `billing_cloud_account_id`.
    pub marketplace: Option<String>,
    /// Account in the marketplace.
    pub billing_cloud_account_id: Option<String>,
    /// Cluster of the organization to place the instance on.
    pub cluster_id: Option<String>,
    /// Whether clients must reauthenticate periodically. Defaults to true.
    pub reauthentication: Option<bool>,
}

/// Fields to update.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ManagedInstanceChange)]
pub struct InstanceChange {
    /// New owner, by username: a member of the same organization.
    pub owner: Option<String>,
    /// Whether clients must reauthenticate periodically.
    pub reauthentication: Option<bool>,
}
