//! Environments: what was made from templates, as a whole.

#[cfg(test)]
pub(crate) mod examples;
mod reason;
mod turn;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::reason::Coded;
use crate::text_enum::text_enum;
use crate::{EnvironmentId, OrganizationId, Time, UserId};

pub use reason::Reason;
pub use turn::{Turn, turn};

/// Where an environment is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Its resources are made or changed.
    Deploying,
    /// All is made; whether it works is looked at.
    Validating,
    /// It works.
    Deployed,
    /// Something could not be done, or does not work; the reason says what.
    Failed,
    /// Its resources are taken away.
    Destroying,
    /// It is gone.
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
    /// May an environment go from here to `next`?
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

    /// As people say it.
    pub fn words(self) -> &'static str {
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

/// What is done when a resource is not as it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDrift {
    /// It is said.
    #[default]
    Report,
    /// It is mended.
    Repair,
}

text_enum!(OnDrift {
    Report => "report",
    Repair => "repair",
});

/// What shall become of an environment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Environment {
    /// Its id.
    pub id: EnvironmentId,
    /// Whose it is.
    pub organization_id: OrganizationId,
    /// Its name, a DNS label, unique in its organization.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What users wrote on it.
    pub tags: BTreeMap<String, String>,
    /// The templates that it is made from, `name@version`.
    pub templates: Vec<String>,
    /// What was set.
    pub parameters: Map<String, Value>,
    /// What is done when a resource is not as it was made.
    pub on_drift: OnDrift,
    /// Where it is on its way.
    pub status: Status,
    /// Why it has that status.
    #[serde(flatten, serialize_with = "Coded::tell")]
    pub reason: Reason,
    /// Since when.
    pub status_since: Time,
    /// How much of what is to be done is done, in percent.
    pub progress: i64,
    /// Where its users begin.
    pub entry_points: Vec<String>,
    /// Was it asked to stop what goes on?
    pub is_cancelled: bool,
    /// When it shall be destroyed.
    pub destroy_at: Option<Time>,
    /// Of how many reminders of that its users were told.
    pub reminders: i64,
    /// Who asked for it, by id: what it makes is made in that user's name.
    pub created_by: UserId,
    /// Counts the changes of what users set.
    pub generation: i64,
    /// When it was asked for.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// When it was gone.
    pub destroyed_at: Option<Time>,
}

#[cfg(test)]
mod tests {
    use super::Status::{Deployed, Deploying, Destroyed, Destroying, Failed, Validating};
    use super::*;

    /// All steps that there are.
    const STEPS: &[(Status, &[Status])] = &[
        (Deploying, &[Validating, Failed, Destroying]),
        (Validating, &[Deploying, Deployed, Failed, Destroying]),
        (Deployed, &[Deploying, Failed, Destroying]),
        (Failed, &[Deploying, Validating, Deployed, Destroying]),
        (Destroying, &[Failed, Destroyed]),
        (Destroyed, &[]),
    ];

    #[test]
    fn there_are_these_steps_and_no_others() {
        assert_eq!(STEPS.len(), Status::ALL.len());
        for (from, to) in STEPS {
            for next in Status::ALL {
                assert_eq!(from.may_become(*next), to.contains(next), "{from} to {next}");
            }
        }
    }

    #[test]
    fn people_read_the_six_statuses() {
        let words: Vec<&str> = Status::ALL.iter().map(|status| status.words()).collect();
        let expect = [
            "Deploying",
            "Deployed - Waiting / validating",
            "Deployed - OK",
            "Deployed - Fail",
            "Destroying",
            "Destroyed",
        ];
        assert_eq!(words, expect);
    }
}
