//! Instances: managed services of a catalog kind, owned by a user and an organization.

pub mod change;
mod reason;
pub mod report;
#[cfg(test)]
mod sample;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::reason::StatusReason;
use crate::text_enum::text_enum;
use crate::{ClusterId, DeploymentId, InstanceId, OrganizationId, Resources, Time, Xid};

pub use reason::{External, Reason};

/// The status of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Requested; waiting for a cluster with capacity.
    Accepted,
    /// Placed; its DNS records and SSO client are being created.
    Preparing,
    /// The agent is creating it.
    Provisioning,
    /// Ready for use.
    Ready,
    /// Failed; see the reason.
    Failed,
    /// Being deleted by the agent.
    Deprovision,
    /// Deleted by the agent; DNS records and SSO client are being removed.
    Deleting,
    /// Being stopped by the agent.
    Suspending,
    /// Suspended; keeps its capacity.
    Suspended,
    /// Being started by the agent again.
    Resuming,
}

text_enum!(Status {
    Accepted => "accepted",
    Preparing => "preparing",
    Provisioning => "provisioning",
    Ready => "ready",
    Failed => "failed",
    Deprovision => "deprovision",
    Deleting => "deleting",
    Suspending => "suspending",
    Suspended => "suspended",
    Resuming => "resuming",
});

impl Status {
    /// Is the transition to `next` allowed?
    pub fn may_become(self, next: Status) -> bool {
        use Status::{
            Accepted, Deleting, Deprovision, Failed, Preparing, Provisioning, Ready, Resuming,
            Suspended, Suspending,
        };
        match self {
            Accepted => matches!(next, Preparing | Failed | Deprovision),
            Preparing => matches!(next, Accepted | Provisioning | Failed | Deprovision),
            // Placed again if the agent reports insufficient capacity.
            Provisioning => matches!(next, Accepted | Ready | Failed | Deprovision),
            // Recreated if its cluster is lost.
            Ready => matches!(next, Accepted | Suspending | Failed | Deprovision),
            Failed => matches!(next, Accepted | Ready | Deprovision),
            Suspending => matches!(next, Suspended | Deprovision),
            Suspended => matches!(next, Resuming | Deprovision),
            Resuming => matches!(next, Accepted | Ready | Suspending | Failed | Deprovision),
            Deprovision => next == Deleting,
            Deleting => false,
        }
    }

    /// Is it being deleted?
    pub fn is_deleting(self) -> bool {
        matches!(self, Status::Deprovision | Status::Deleting)
    }

    /// Is it suspended, or about to be?
    pub fn is_suspended(self) -> bool {
        matches!(self, Status::Suspending | Status::Suspended)
    }

    /// Has it been sent to the agent of its cluster?
    pub fn is_sent_to_agent(self) -> bool {
        !matches!(self, Status::Accepted | Status::Preparing | Status::Deleting)
    }

    /// Timeout of the status; none if it may last.
    pub fn timeout(self) -> Option<Duration> {
        match self {
            Status::Accepted | Status::Provisioning | Status::Resuming => {
                Some(Duration::from_hours(1))
            }
            Status::Preparing => Some(Duration::from_mins(30)),
            Status::Suspending | Status::Deprovision | Status::Deleting => {
                Some(Duration::from_mins(15))
            }
            Status::Ready | Status::Failed | Status::Suspended => None,
        }
    }
}

/// Why an instance is suspended, which decides who may resume it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspension {
    /// Requested by an administrator, who may also resume it.
    Asked,
    /// Entitlement expired; resumed when it is granted again.
    Entitlement,
}

/// A quota charge of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// `organization/ID`, `user/NAME`, `trial/ORGANIZATION/NAME` or `region/CLOUD/REGION`.
    pub holder: String,
    /// The holder's account: instance type and billing model.
    pub account: String,
    /// Number of units.
    pub units: i64,
}

/// A DNS record of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The domain.
    pub domain: String,
    /// The target of the alias.
    pub router: String,
}

/// Software versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Operator version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// Service version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service: String,
    /// Inter-node protocol version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
}

/// Billing of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billing {
    /// Current billing model.
    pub model: String,
    /// Billing model after the promotion; the same if there is none.
    pub desired: String,
    /// The marketplace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marketplace: Option<String>,
    /// The account at the marketplace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Why a promotion failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Rarely queried fields, stored as one document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Detail {
    /// Billing.
    pub billing: Billing,
    /// Quota charges.
    pub charges: Vec<Charge>,
    /// Requested resources.
    pub resources: Resources,
    /// Size in units.
    pub units: i64,
    /// Desired versions.
    pub desired: Versions,
    /// Versions reported by the agent.
    pub actual: Versions,
    /// Parts that are being upgraded: `operator`, `service`, `protocol`.
    pub upgrading: Vec<String>,
    /// DNS records.
    pub routes: Vec<Route>,
    /// Have the DNS records been created?
    pub routes_made: bool,
    /// Does the third-party agent report that it is ready?
    pub is_agent_ready: bool,
    /// Id of the provisioning attempt; a new id starts a new attempt.
    pub placement: Option<Xid>,
    /// Retention in bytes, if changed.
    pub retention_bytes: Option<i64>,
    /// Addresses on its cluster.
    pub endpoints: Vec<String>,
    /// URL of the admin API.
    pub admin_url: Option<String>,
    /// SSO client at the OpenID provider.
    pub sso_client: Option<String>,
    /// Time at which the SSO client got its secret.
    pub sso_since: Option<Time>,
    /// Why it is suspended, if it is.
    pub rest: Option<Suspension>,
    /// The owner's account id in the external identity system.
    pub owner_account: Option<String>,
    /// The organization's id at the external identity provider.
    pub foreign_organization: Option<String>,
}

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// The id.
    pub id: InstanceId,
    /// The catalog kind.
    pub kind: String,
    /// The owning organization.
    pub organization_id: OrganizationId,
    /// Name of the owning user.
    pub owner: String,
    /// The name, unique per kind and organization.
    pub name: String,
    /// The cloud provider.
    pub cloud_provider: String,
    /// The region.
    pub region: String,
    /// Is it spread over availability zones?
    pub multi_az: bool,
    /// The instance type.
    pub instance_type: String,
    /// The size.
    pub size: String,
    /// Must clients reauthenticate periodically?
    pub reauthentication: bool,
    /// The status.
    pub status: Status,
    /// The reason of the status.
    #[serde(flatten, serialize_with = "StatusReason::serialize_status")]
    pub reason: Reason,
    /// Time of the last status change.
    pub status_since: Time,
    /// The cluster it is pinned to, if any.
    pub pinned_to: Option<ClusterId>,
    /// The cluster it is placed on.
    pub cluster_id: Option<ClusterId>,
    /// The deployment that holds its capacity and runs it.
    pub deployment_id: Option<DeploymentId>,
    /// DNS host name.
    pub host: Option<String>,
    /// Expiry, if any.
    pub expires_at: Option<Time>,
    /// Everything else.
    #[serde(flatten)]
    pub detail: Detail,
    /// Incremented with every change of the spec.
    pub generation: i64,
    /// Time of the request.
    pub created_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
}

/// The Kubernetes namespace of an instance of a kind.
pub fn namespace(kind: &str, id: InstanceId) -> String {
    format!("{kind}-{id}")
}

impl Instance {
    /// The deadline of the current status, if it has one.
    pub fn deadline(&self) -> Option<Time> {
        Some(self.status_since + self.status.timeout()?)
    }

    /// Its Kubernetes namespace.
    pub fn namespace(&self) -> String {
        namespace(&self.kind, self.id)
    }

    /// Labels that the cluster must have.
    pub fn selector(&self) -> BTreeMap<String, String> {
        let labels = [("cloud_provider", &self.cloud_provider), ("region", &self.region)];
        labels.map(|(key, value)| (key.to_owned(), value.clone())).into()
    }
}

/// A validated request to create an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInstance {
    /// The catalog kind.
    pub kind: String,
    /// Name of the owning user.
    pub owner: String,
    /// The name.
    pub name: String,
    /// The cloud provider.
    pub cloud_provider: String,
    /// The region.
    pub region: String,
    /// Is it spread over availability zones?
    pub multi_az: bool,
    /// The instance type.
    pub instance_type: String,
    /// The size.
    pub size: String,
    /// Must clients reauthenticate periodically?
    pub reauthentication: bool,
    /// The cluster it is pinned to.
    pub pinned_to: Option<ClusterId>,
    /// Lifespan, if limited.
    pub lifespan: Option<Duration>,
    /// Resource name of its unit on clusters that count instances.
    pub unit: String,
    /// Scheduling priority.
    pub priority: i64,
    /// Billing, resources, units and external owner; other fields are not known yet.
    pub detail: Detail,
    /// Quota charges with their limits; none means unlimited.
    pub charges: Vec<(Charge, Option<i64>)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifecycle_transitions_are_allowed() {
        use Status::*;
        for path in [
            &[Accepted, Preparing, Provisioning, Ready, Deprovision, Deleting][..],
            &[Ready, Suspending, Suspended, Resuming, Ready],
            &[Provisioning, Failed, Ready],
            &[Provisioning, Accepted, Preparing],
            &[Ready, Accepted],
        ] {
            assert!(path.windows(2).all(|step| step[0].may_become(step[1])), "{path:?}");
        }
    }

    #[test]
    fn deletion_is_always_possible_and_irreversible() {
        for &status in Status::ALL {
            for &next in Status::ALL {
                if status.is_deleting() && !next.is_deleting() {
                    assert!(!status.may_become(next), "{status} to {next}");
                }
            }
            assert!(!status.may_become(status), "{status} to itself");
            assert_eq!(status.may_become(Status::Deprovision), !status.is_deleting(), "{status}");
        }
    }

    #[test]
    fn transitional_statuses_have_a_deadline() {
        use Status::*;
        for &status in Status::ALL {
            let is_stable = matches!(status, Ready | Failed | Suspended);
            assert_eq!(status.timeout().is_none(), is_stable, "{status}");
        }
    }
}
