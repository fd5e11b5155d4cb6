//! Why an instance has its status.

use serde::{Deserialize, Serialize};

use crate::reason::{By, and, at, quoted, reason, requested, span};
use crate::{Time, deployment};

reason! {
    /// Why an instance has its status.
    enum {
        /// Placement has not looked at it yet.
        #[error("Waiting for placement.")]
        AwaitingPlacement,
        /// Its deployment is pending.
        #[error("{reason}")]
        DeploymentPending {
            /// Why.
            reason: deployment::Reason,
        },
        /// Its deployment failed, ended or was deleted.
        #[error("Deployment failed.{}", and(reason))]
        DeploymentFailed {
            /// Why.
            reason: deployment::Reason,
        },
        /// Its cluster has no capacity for it after all.
        #[error(
            "Rejected by the agent of cluster {cluster}: insufficient capacity. Waiting for another cluster."
        )]
        InsufficientCapacity {
            /// The cluster.
            cluster: String,
        },
        /// Its cluster's agent has not reported its versions.
        #[error("Waiting for the agent of cluster {cluster} to report the versions that it can run.")]
        VersionsUnknown {
            /// The cluster.
            cluster: String,
        },
        /// It has its cluster.
        #[error("Placed on {cluster}.")]
        Placed {
            /// The cluster.
            cluster: String,
        },
        /// It lost its capacity and is created again elsewhere.
        #[error("Capacity was lost: recreating it on another cluster.{}", deployment.as_ref().map(|reason| and(reason)).unwrap_or_default())]
        PlacementLost {
            /// Why its deployment lost it, if that is known.
            deployment: Option<deployment::Reason>,
        },
        /// A step took longer than it may.
        #[error("Timed out after {}.{} Delete it and create it again, or choose another region or size.", span(*after_seconds), and(last))]
        DeadlineExceeded {
            /// How long it had.
            after_seconds: u64,
            /// The last reason before that.
            last: Box<Reason>,
        },
        /// The agent of its cluster is at work.
        #[error("Waiting for the agent of cluster {cluster}.")]
        AwaitingAgent {
            /// The cluster.
            cluster: String,
        },
        /// The agent of its cluster did not answer in time.
        #[error("Agent{} has not answered by {}. Still waiting for it; an administrator can check the cluster.", of(cluster.as_ref()), at(*due))]
        AgentNotResponding {
            /// The cluster, if it is known.
            cluster: Option<String>,
            /// When it should have answered.
            due: Time,
        },
        /// The agent of its cluster reports an error.
        #[error("Agent reports an error: {}.", quoted(message))]
        AgentError {
            /// What it said.
            message: String,
        },
        /// An external system that it needs does not answer for now.
        #[error("Waiting for {system}: {}. Retrying.", quoted(message))]
        BackendUnavailable {
            /// Which.
            system: External,
            /// What it said.
            message: String,
        },
        /// An external system that it needs can't do it like this.
        #[error("{system} failed: {}.", quoted(message))]
        BackendRefused {
            /// Which.
            system: External,
            /// What it said.
            message: String,
        },
        /// The catalog does not have its kind any more.
        #[error("Catalog has no kind {kind} any more. An administrator must restore it.")]
        KindNotFound {
            /// The kind.
            kind: String,
        },
        /// External objects differed and were repaired.
        #[error("Repaired after an external change: {}.", objects.join(", "))]
        Repaired {
            /// DNS records and SSO clients.
            objects: Vec<String>,
        },
        /// Its suspension was requested.
        #[error("{}", requested("Suspension", by.as_ref()))]
        SuspensionRequested {
            /// Who, if that is known.
            by: Option<By>,
        },
        /// Its resumption was requested.
        #[error("{}", requested("Resume", by.as_ref()))]
        ResumeRequested {
            /// Who, if that is known.
            by: Option<By>,
        },
        /// Its holder is not entitled to it any more.
        #[error("Entitlement expired: {}. {}", quoted(message), deletion(*delete_at))]
        EntitlementExpired {
            /// Why.
            message: String,
            /// When it is deleted; none if its grace period is over.
            delete_at: Option<Time>,
        },
        /// Its holder is entitled to it again.
        #[error("Entitlement restored.")]
        EntitlementRestored,
        /// Its trial is over.
        #[error("Trial expired.")]
        TrialExpired,
        /// Its owner may not have instances.
        #[error("Owner {owner} is denied.")]
        OwnerDenied {
            /// The owner.
            owner: String,
        },
        /// Its agent is done; external objects are being removed.
        #[error("Removing DNS records and the SSO client.")]
        CleaningUp,
        /// Its deletion was requested.
        #[error("{}", requested("Deletion", by.as_ref()))]
        DeletionRequested {
            /// Who, if that is known.
            by: Option<By>,
        },
    }
    passes on
        Self::DeploymentPending { reason } | Self::DeploymentFailed { reason } => reason
}

/// An external system that an instance needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum External {
    /// The DNS server.
    Dns,
    /// The OpenID provider.
    Sso,
    /// What encrypts secrets.
    Secrets,
    /// DNS, OpenID provider or secret encryption, also systems of newer versions.
    #[serde(other)]
    Any,
}

impl std::fmt::Display for External {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Dns => "DNS",
            Self::Sso => "OpenID provider",
            Self::Secrets => "secret encryption",
            Self::Any => "external systems (DNS, OpenID provider, secret encryption)",
        })
    }
}

fn of(cluster: Option<&String>) -> String {
    cluster.map(|name| format!(" of cluster {name}")).unwrap_or_default()
}

fn deletion(at_time: Option<Time>) -> String {
    match at_time {
        Some(time) => format!("Deletion at {} unless it is granted again.", at(time)),
        None => "The grace period is over.".to_owned(),
    }
}
