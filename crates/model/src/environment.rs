//! Environments: sets of resources deployed from templates.

#[cfg(test)]
pub(crate) mod examples;
mod reason;
mod schedule;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::reason::StatusReason;
use crate::text_enum::text_enum;
use crate::{EnvironmentId, OrganizationId, Time, UserId};

pub use reason::Reason;
pub use schedule::{Schedule, schedule};

/// The status of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Resources are being created or updated.
    Deploying,
    /// All resources are applied; health checks are running.
    Validating,
    /// All resources are applied and healthy.
    Deployed,
    /// A step or a health check failed; the reason has details.
    Failed,
    /// Resources are being destroyed.
    Destroying,
    /// All resources are destroyed.
    Destroyed,
}

text_enum!(Status {
    Deploying => "deploying",
    Validating => "validating",
    Deployed => "deployed",
    Failed => "failed",
    Destroying => "destroying",
    Destroyed => "destroyed",
});

impl Status {
    /// Is the transition to `next` allowed?
    pub fn may_become(self, next: Status) -> bool {
        use Status::{Deployed, Deploying, Destroyed, Destroying, Failed, Validating};
        match self {
            Deploying => matches!(next, Validating | Failed | Destroying),
            Validating => matches!(next, Deployed | Failed | Deploying | Destroying),
            Deployed => matches!(next, Deploying | Failed | Destroying),
            Failed => matches!(next, Deploying | Validating | Deployed | Destroying),
            Destroying => matches!(next, Destroyed | Failed),
            Destroyed => false,
        }
    }

    /// The label for people.
    pub fn label(self) -> &'static str {
        match self {
            Status::Deploying => "Deploying",
            Status::Validating => "Deployed - Waiting / validating",
            Status::Deployed => "Deployed - OK",
            Status::Failed => "Deployed - Fail",
            Status::Destroying => "Destroying",
            Status::Destroyed => "Destroyed",
        }
    }
}

/// The reaction to drift.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDrift {
    /// Report it.
    #[default]
    Report,
    /// Repair it.
    Repair,
}

text_enum!(OnDrift {
    Report => "report",
    Repair => "repair",
});

/// An environment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Environment {
    /// The id.
    pub id: EnvironmentId,
    /// The owning organization.
    pub organization_id: OrganizationId,
    /// The name, a DNS label, unique in the organization.
    pub name: String,
    /// A description for people.
    pub description: String,
    /// User-defined tags.
    pub tags: BTreeMap<String, String>,
    /// The templates, `name@version`.
    pub templates: Vec<String>,
    /// The given parameters.
    pub parameters: Map<String, Value>,
    /// The reaction to drift.
    pub on_drift: OnDrift,
    /// The status.
    pub status: Status,
    /// Why it has this status.
    #[serde(flatten, serialize_with = "StatusReason::serialize_status")]
    pub reason: Reason,
    /// When the status last changed.
    pub status_since: Time,
    /// The progress of the running operation, in percent.
    pub progress: i64,
    /// Entry points for users.
    pub entry_points: Vec<String>,
    /// Was cancellation of the running operation requested?
    pub is_cancelled: bool,
    /// When it is to be destroyed, if it has a time to live.
    pub destroy_at: Option<Time>,
    /// The number of reminders of that sent so far.
    pub reminders: i64,
    /// The creator; its resources are created on behalf of this user.
    pub created_by: UserId,
    /// Incremented with every change of the desired state.
    pub generation: i64,
    /// The time of creation.
    pub created_at: Time,
    /// The time of the last change.
    pub updated_at: Time,
    /// The time of destruction.
    pub destroyed_at: Option<Time>,
}

#[cfg(test)]
mod tests {
    use super::Status::{Deployed, Deploying, Destroyed, Destroying, Failed, Validating};
    use super::*;

    /// All allowed transitions.
    const TRANSITIONS: &[(Status, &[Status])] = &[
        (Deploying, &[Validating, Failed, Destroying]),
        (Validating, &[Deploying, Deployed, Failed, Destroying]),
        (Deployed, &[Deploying, Failed, Destroying]),
        (Failed, &[Deploying, Validating, Deployed, Destroying]),
        (Destroying, &[Failed, Destroyed]),
        (Destroyed, &[]),
    ];

    #[test]
    fn only_listed_transitions_are_allowed() {
        assert_eq!(TRANSITIONS.len(), Status::ALL.len());
        for (from, to) in TRANSITIONS {
            for next in Status::ALL {
                assert_eq!(from.may_become(*next), to.contains(next), "{from} to {next}");
            }
        }
    }

    #[test]
    fn statuses_have_labels() {
        let labels: Vec<&str> = Status::ALL.iter().map(|status| status.label()).collect();
        let expect = [
            "Deploying",
            "Deployed - Waiting / validating",
            "Deployed - OK",
            "Deployed - Fail",
            "Destroying",
            "Destroyed",
        ];
        assert_eq!(labels, expect);
    }
}
