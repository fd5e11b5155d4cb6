//! Instances: running services of a kind in the catalog, owned by a user and an organization.

pub mod change;
mod reason;
pub mod report;
#[cfg(test)]
mod sample;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::reason::Coded;
use crate::text_enum::text_enum;
use crate::{ClusterId, DeploymentId, InstanceId, OrganizationId, Resources, Time, Xid};

pub use reason::{External, Reason};

/// Where an instance is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Asked for; waits for a cluster with room.
    Accepted,
    /// Has its cluster; its names and its sign-in are made.
    Preparing,
    /// Its agent makes it.
    Provisioning,
    /// It can be used.
    Ready,
    /// It can't be made, or broke; the reason says why.
    Failed,
    /// It shall go; its agent takes it down.
    Deprovision,
    /// Its agent is done; what was made around it goes.
    Deleting,
    /// It shall rest; its agent stops it.
    Suspending,
    /// It rests and keeps its room.
    Suspended,
    /// It shall work again; its agent starts it.
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
    /// May an instance go from here to `next`?
    pub fn may_become(self, next: Status) -> bool {
        use Status::{
            Accepted, Deleting, Deprovision, Failed, Preparing, Provisioning, Ready, Resuming,
            Suspended, Suspending,
        };
        match self {
            Accepted => matches!(next, Preparing | Failed | Deprovision),
            Preparing => matches!(next, Accepted | Provisioning | Failed | Deprovision),
            // Back to the start when its cluster is full after all.
            Provisioning => matches!(next, Accepted | Ready | Failed | Deprovision),
            // Made again when its cluster is lost.
            Ready => matches!(next, Accepted | Suspending | Failed | Deprovision),
            Failed => matches!(next, Accepted | Ready | Deprovision),
            Suspending => matches!(next, Suspended | Deprovision),
            Suspended => matches!(next, Resuming | Deprovision),
            Resuming => matches!(next, Accepted | Ready | Suspending | Failed | Deprovision),
            Deprovision => next == Deleting,
            Deleting => false,
        }
    }

    /// Is it on its way out?
    pub fn is_leaving(self) -> bool {
        matches!(self, Status::Deprovision | Status::Deleting)
    }

    /// Does it rest, or is it about to?
    pub fn is_resting(self) -> bool {
        matches!(self, Status::Suspending | Status::Suspended)
    }

    /// Does the agent of its cluster know of it?
    pub fn is_with_agent(self) -> bool {
        !matches!(self, Status::Accepted | Status::Preparing | Status::Deleting)
    }

    /// How long it may be so, and what is said when that is over. None: it may rest here.
    pub fn patience(self) -> Option<Duration> {
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

/// Why an instance rests: who may wake it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// An administrator said so; an administrator ends it.
    Asked,
    /// Its owner is not entitled to it any more; ends when that changes.
    Entitlement,
}

/// Who is charged for an instance, in units of which account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// Whose account: `organization/ID`, `user/NAME`, `trial/ORGANIZATION/NAME`, `region/CLOUD/REGION`.
    pub holder: String,
    /// Which of its accounts: the instance type, and with it the billing model.
    pub account: String,
    /// How much.
    pub units: i64,
}

/// A name that leads to an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The name.
    pub domain: String,
    /// What it is an alias of.
    pub router: String,
}

/// Which software runs, or shall run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Of the operator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// Of the service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service: String,
    /// Of the protocol between its parts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
}

/// How it is paid for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billing {
    /// Now.
    pub model: String,
    /// From the end of a promotion on; the same when there is none.
    pub desired: String,
    /// Through which marketplace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marketplace: Option<String>,
    /// On which account there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Why a promotion failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What is seldom looked for: kept as one document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Detail {
    /// How it is paid for.
    pub billing: Billing,
    /// Who is charged for it.
    pub charges: Vec<Charge>,
    /// What it needs on a cluster.
    pub resources: Resources,
    /// How many units that is.
    pub units: i64,
    /// Which software shall run.
    pub desired: Versions,
    /// Which software runs, as the agent says.
    pub actual: Versions,
    /// What is being upgraded: `operator`, `service`, `protocol`.
    pub upgrading: Vec<String>,
    /// The names that lead to it.
    pub routes: Vec<Route>,
    /// Do they?
    pub routes_made: bool,
    /// Did a foreign agent say that it is ready?
    pub is_agent_ready: bool,
    /// Names this try to make it: a new one is a new try.
    pub placement: Option<Xid>,
    /// How much of what it is told it keeps, in bytes, if that was changed.
    pub retention_bytes: Option<i64>,
    /// Where it can be reached on its cluster.
    pub endpoints: Vec<String>,
    /// Where it is administered.
    pub admin_url: Option<String>,
    /// Its client at the OpenID provider.
    pub sso_client: Option<String>,
    /// Since when that client has its secret.
    pub sso_since: Option<Time>,
    /// Why it rests, if it does.
    pub rest: Option<Rest>,
    /// What the name of the owner's account is elsewhere.
    pub owner_account: Option<String>,
    /// What the organization is called where its members sign in, if that is elsewhere.
    pub foreign_organization: Option<String>,
}

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// Its id.
    pub id: InstanceId,
    /// Which kind of the catalog.
    pub kind: String,
    /// Whose it is.
    pub organization_id: OrganizationId,
    /// Which user's, by name.
    pub owner: String,
    /// Its name, unique among its kind in its organization.
    pub name: String,
    /// Where it shall be.
    pub cloud_provider: String,
    /// Where there.
    pub region: String,
    /// Is it spread over zones?
    pub multi_az: bool,
    /// Which type of the kind.
    pub instance_type: String,
    /// Which size of the type.
    pub size: String,
    /// Must clients sign in again from time to time?
    pub reauthentication: bool,
    /// Where it is on its way.
    pub status: Status,
    /// Why it has that status.
    #[serde(flatten, serialize_with = "Coded::tell")]
    pub reason: Reason,
    /// Since when.
    pub status_since: Time,
    /// The cluster that was asked for, if one was.
    pub pinned_to: Option<ClusterId>,
    /// The cluster that it is on.
    pub cluster_id: Option<ClusterId>,
    /// What holds its capacity there, and runs it.
    pub deployment_id: Option<DeploymentId>,
    /// Its name in the domain name system.
    pub host: Option<String>,
    /// When it ends, if it has an end.
    pub expires_at: Option<Time>,
    /// Everything else.
    #[serde(flatten)]
    pub detail: Detail,
    /// Counts the changes of what users set.
    pub generation: i64,
    /// When it was asked for.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
}

impl Instance {
    /// When its patience with its status is over, if it has any.
    pub fn deadline(&self) -> Option<Time> {
        Some(self.status_since + self.status.patience()?)
    }

    /// Its place for names in Kubernetes.
    pub fn namespace(&self) -> String {
        format!("{}-{}", self.kind, self.id)
    }

    /// Labels that its cluster must have.
    pub fn selector(&self) -> BTreeMap<String, String> {
        let place = [("cloud_provider", &self.cloud_provider), ("region", &self.region)];
        place.map(|(key, value)| (key.to_owned(), value.clone())).into()
    }
}

/// An instance as someone asks for it, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInstance {
    /// Which kind of the catalog.
    pub kind: String,
    /// Which user's, by name.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// Where it shall be.
    pub cloud_provider: String,
    /// Where there.
    pub region: String,
    /// Is it spread over zones?
    pub multi_az: bool,
    /// Which type of the kind.
    pub instance_type: String,
    /// Which size of the type.
    pub size: String,
    /// Must clients sign in again from time to time?
    pub reauthentication: bool,
    /// The cluster that was asked for.
    pub pinned_to: Option<ClusterId>,
    /// How long it lives, if not for ever.
    pub lifespan: Option<Duration>,
    /// What it is called among the resources of clusters that count instances.
    pub unit: String,
    /// How urgent its place is.
    pub priority: i64,
    /// Billing, resources, units, and who the owner is elsewhere; the rest is not known yet.
    pub detail: Detail,
    /// Who is charged, and how much that account can bear; without limit when there is none.
    pub charges: Vec<(Charge, Option<i64>)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_of_an_instance() {
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
    fn nothing_comes_back_from_the_way_out_and_everything_can_go_there() {
        for &status in Status::ALL {
            for &next in Status::ALL {
                if status.is_leaving() && !next.is_leaving() {
                    assert!(!status.may_become(next), "{status} to {next}");
                }
            }
            assert!(!status.may_become(status), "{status} to itself");
            assert_eq!(status.may_become(Status::Deprovision), !status.is_leaving(), "{status}");
        }
    }

    #[test]
    fn what_is_not_at_rest_has_a_deadline() {
        use Status::*;
        for &status in Status::ALL {
            let rests = matches!(status, Ready | Failed | Suspended);
            assert_eq!(status.patience().is_none(), rests, "{status}");
        }
    }
}
