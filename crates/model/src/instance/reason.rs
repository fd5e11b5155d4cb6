//! Why an instance has its status.

use serde::{Deserialize, Serialize};

use crate::reason::{Requester, and, at, quoted, reason, requested, span, without_retry};
use crate::{Time, deployment};

reason! {
    /// Why an instance has its status.
    enum {
        /// Not examined by the scheduler yet.
        #[error("Waiting for placement.")]
        AwaitingPlacement,
        /// The deployment is pending.
        #[error("{reason}")]
        DeploymentPending {
            /// The deployment's reason.
            reason: deployment::Reason,
        },
        /// The deployment failed, ended or was deleted.
        #[error("Deployment failed.{}", and(reason))]
        DeploymentFailed {
            /// The deployment's reason.
            reason: deployment::Reason,
        },
        /// The agent of its cluster reports insufficient capacity.
        #[error(
            "Rejected by the agent of cluster {cluster}: insufficient capacity. Waiting for another cluster."
        )]
        InsufficientCapacity {
            /// The cluster.
            cluster: String,
        },
        /// The agent of its cluster has not reported its versions.
        #[error("Waiting for the agent of cluster {cluster} to report the versions that it can run.")]
        VersionsUnknown {
            /// The cluster.
            cluster: String,
        },
        /// Placed on a cluster.
        #[error("Placed on {cluster}.")]
        Placed {
            /// The cluster.
            cluster: String,
        },
        /// It lost its capacity and is recreated on another cluster.
        #[error("Capacity was lost: recreating the instance on another cluster.{}", deployment.as_ref().map(|reason| and(reason)).unwrap_or_default())]
        PlacementLost {
            /// The deployment's reason, if known.
            deployment: Option<deployment::Reason>,
        },
        /// A step exceeded its deadline.
        #[error("Timed out after {}.{} Delete it and create it again, or choose another region or size.", span(*after_seconds), and(&without_retry(last)))]
        DeadlineExceeded {
            /// The time limit.
            after_seconds: u64,
            /// The last reason before the timeout.
            last: Box<Reason>,
        },
        /// The agent of its cluster is working.
        #[error("Waiting for the agent of cluster {cluster}.")]
        AwaitingAgent {
            /// The cluster.
            cluster: String,
        },
        /// The agent of its cluster did not answer in time.
        #[error("Agent{} has not answered by {}. Still waiting for it; an administrator can check the cluster.", of_cluster(cluster.as_ref()), at(*due))]
        AgentNotResponding {
            /// The cluster, if known.
            cluster: Option<String>,
            /// The deadline for its answer.
            due: Time,
        },
        /// The agent of its cluster reports an error.
        #[error("Agent reports an error: {}.", quoted(message))]
        AgentError {
            /// The agent's message.
            message: String,
        },
        /// A required external system is temporarily unavailable.
        #[error("Waiting for {system}: {}. Retrying.", quoted(message))]
        BackendUnavailable {
            /// The external system.
            system: External,
            /// Its message.
            message: String,
        },
        /// A required external system refused the operation.
        #[error("Setup of {system} failed: {}. Fix the cause, then delete the instance and create it again.", quoted(message))]
        BackendRefused {
            /// The external system.
            system: External,
            /// Its message.
            message: String,
        },
        /// The catalog no longer has its kind.
        #[error("Kind {kind} is no longer in the catalog. An administrator must restore it.")]
        KindNotFound {
            /// The kind.
            kind: String,
        },
        /// External objects had drifted and were repaired.
        #[error("Repaired after an external change: {}.", objects.join(", "))]
        Repaired {
            /// DNS records and SSO clients.
            objects: Vec<String>,
        },
        /// Suspension was requested.
        #[error("{}", requested("Suspension", by.as_ref()))]
        SuspensionRequested {
            /// The requester, if known.
            by: Option<Requester>,
        },
        /// Resumption was requested.
        #[error("{}", requested("Resume", by.as_ref()))]
        ResumeRequested {
            /// The requester, if known.
            by: Option<Requester>,
        },
        /// The holder's entitlement expired.
        #[error("Entitlement expired: {}. {}", quoted(message), deletion(*delete_at))]
        EntitlementExpired {
            /// The cause.
            message: String,
            /// Time of deletion; none if the grace period is over.
            delete_at: Option<Time>,
        },
        /// The holder is entitled to it again.
        #[error("Entitlement restored.")]
        EntitlementRestored,
        /// The trial expired.
        #[error("Trial expired: deleting the instance.")]
        TrialExpired,
        /// The owner is on the deny list.
        #[error("Owner {owner} is on the deny list: deleting the instance.")]
        OwnerDenied {
            /// The owner.
            owner: String,
        },
        /// The agent has removed it; external objects are being removed.
        #[error("Removing DNS records and the SSO client.")]
        CleaningUp,
        /// Deletion was requested.
        #[error("{}", requested("Deletion", by.as_ref()))]
        DeletionRequested {
            /// The requester, if known.
            by: Option<Requester>,
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
    /// The secret encryption backend.
    Secrets,
    /// Any of these, including systems of newer versions.
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

fn of_cluster(cluster: Option<&String>) -> String {
    cluster.map(|name| format!(" of cluster {name}")).unwrap_or_default()
}

fn deletion(at_time: Option<Time>) -> String {
    match at_time {
        Some(time) => format!("Deletion at {} unless it is granted again.", at(time)),
        None => "The grace period is over.".to_owned(),
    }
}
