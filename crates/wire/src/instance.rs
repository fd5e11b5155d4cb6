//! Instances of managed services.

use model::reason::Coded as _;
use model::{ClusterId, InstanceId, OrganizationId, Time, instance};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An instance.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ManagedInstance)]
pub struct Instance {
    /// Its id.
    #[schema(value_type = String)]
    pub id: InstanceId,
    /// The kind of service.
    pub kind: String,
    /// The organization that it belongs to.
    #[schema(value_type = String)]
    pub organization_id: OrganizationId,
    /// Who has it, by user name.
    pub owner: String,
    /// Its name, unique among its kind in the organization.
    pub name: String,
    /// The cloud provider.
    pub cloud_provider: String,
    /// The region there.
    pub region: String,
    /// Does it span zones?
    pub multi_az: bool,
    /// Its type and size: `standard.x1`.
    pub plan: String,
    /// How it is paid for.
    pub billing_model: String,
    /// Must its clients sign in again from time to time?
    pub reauthentication: bool,
    /// Where it is on its way: `accepted`, `preparing`, `provisioning`, `ready`, `failed`, `deprovision`,
    /// `deleting`, `suspending`, `suspended`, `resuming`.
    pub status: String,
    /// Why it has that status; empty if there is nothing to add.
    pub status_reason: String,
    /// The code of that reason, such as `InsufficientCapacity`: for programs, which never read messages.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// The cluster that it is on.
    #[schema(value_type = Option<String>)]
    pub cluster_id: Option<ClusterId>,
    /// Its name in the domain name system.
    pub host: Option<String>,
    /// Where it can be reached.
    pub endpoints: Vec<String>,
    /// The version that runs.
    pub version: Option<String>,
    /// When it ends, if it does.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Time>,
    /// Counts the changes of what users set; also its ETag.
    pub generation: i64,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// When it last changed.
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

/// An instance to make. What is left out is chosen.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewManagedInstance)]
pub struct NewInstance {
    /// The kind of service; `GET /api/v1/kinds` lists them.
    pub kind: String,
    /// Its name: a-z, 0-9 and -; begins with a letter, and does not end with -.
    pub name: String,
    /// Type and size, such as `standard.x1`; by quota when it is left out.
    pub plan: Option<String>,
    /// The cloud provider; the kind's default when it is left out.
    pub cloud_provider: Option<String>,
    /// The region; the cloud provider's default when it is left out.
    pub region: Option<String>,
    /// How it is paid for; by quota when it is left out.
    pub billing_model: Option<String>,
    /// Through which marketplace; needs `billing_cloud_account_id`.
    pub marketplace: Option<String>,
    /// From which account there.
    pub billing_cloud_account_id: Option<String>,
    /// The organization's own cluster that it shall be on.
    pub cluster_id: Option<String>,
    /// Must its clients sign in again from time to time? True when it is left out.
    pub reauthentication: Option<bool>,
}

/// What of an instance shall change.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ManagedInstanceChange)]
pub struct InstanceChange {
    /// Its new owner, by user name: a member of the same organization.
    pub owner: Option<String>,
    /// Must its clients sign in again from time to time?
    pub reauthentication: Option<bool>,
}
