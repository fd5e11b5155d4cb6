//! Why a cluster has its status.

use super::Provider;
use crate::Time;
use crate::reason::{Requester, at, count, quoted, reason, requested, with_period, without_retry};

reason! {
    /// Why a cluster has its status.
    enum {
        /// The provider is working.
        #[error("{}", with_period(message))]
        Progressing {
            /// The provider's message.
            message: String,
        },
        /// The agent and its prerequisites are being installed.
        #[error("Installing the agent.")]
        InstallingAgent,
        /// The agent has not sent its first heartbeat.
        #[error("{}", first_heartbeat(*provider))]
        AwaitingAgent {
            /// The provider.
            provider: Provider,
        },
        /// The third-party agent reports that it is not ready.
        #[error("Agent reports that it is not ready. Check the agent's log.")]
        AgentNotReady,
        /// The agent stopped sending heartbeats.
        #[error(
            "No heartbeat from the agent since {}. Check that the agent runs, reaches this server and has a valid token.",
            at(*since)
        )]
        AgentUnreachable {
            /// Time of the last heartbeat.
            since: Time,
        },
        /// The provider is not configured on this server.
        #[error(
            "Provider {provider} is not configured on this server. Waiting for an administrator to configure it."
        )]
        BackendNotConfigured {
            /// The provider.
            provider: Provider,
        },
        /// The provider is temporarily unavailable.
        #[error("Provider is unavailable: {}. Retrying.", quoted(message))]
        BackendUnavailable {
            /// The provider's message.
            message: String,
        },
        /// The provider refused the operation.
        #[error(
            "Provisioning failed: {}. Fix the cause and retry, or delete the cluster.",
            quoted(message)
        )]
        BackendRefused {
            /// The provider's message.
            message: String,
        },
        /// A step exceeded its deadline.
        #[error("Provisioning timed out: {}. Fix the cause and retry, or delete the cluster.", quoted(&without_retry(last)))]
        DeadlineExceeded {
            /// The last reason before the timeout.
            last: Box<Reason>,
        },
        /// Cancellation of the provider's operation was requested.
        #[error("Cancelling the provider's operation.")]
        Cancelling,
        /// Cancelling the provider's operation failed.
        #[error("Cancelling failed: {}. Retrying.", quoted(message))]
        CancelFailed {
            /// The provider's message.
            message: String,
        },
        /// A user cancelled the provider's operation.
        #[error("Provisioning was cancelled. Retry, or delete the cluster.")]
        Cancelled,
        /// The installed agent has drifted and could not be repaired.
        #[error(
            "Repairing the installed agent failed: {}. The cluster still accepts workloads.",
            quoted(message)
        )]
        RepairFailed {
            /// The provider's message.
            message: String,
        },
        /// The provider could not destroy the cluster.
        #[error(
            "Destroying failed: {}. Fix the cause, or force the deletion and remove the remaining objects manually.",
            quoted(message)
        )]
        DestroyFailed {
            /// The provider's message.
            message: String,
        },
        /// Deletion was forced: objects of the provider may remain.
        #[error("Deletion forced: the provider's objects may remain ({}). Remove them manually.", quoted(message))]
        LeftBehind {
            /// Why the provider could not remove them.
            message: String,
        },
        /// The third-party agent reports less capacity than is in use.
        #[error("Agent reports less capacity than is in use: {}.", quoted(message))]
        CapacityInUse {
            /// The instance type and the amounts.
            message: String,
        },
        /// The cluster accepts no new workloads and its workloads are moved.
        #[error("{}", draining([*moving, *without_capacity, *pinned, *third_party]))]
        Draining {
            /// Number of deployments that are moving.
            moving: u64,
            /// Number of deployments without capacity elsewhere.
            without_capacity: u64,
            /// Number of deployments pinned to the cluster.
            pinned: u64,
            /// Number of deployments that the third-party agent runs.
            third_party: u64,
        },
        /// No workload is left on the cluster.
        #[error("Drained: no workload is left. Delete the cluster or end the drain.")]
        Drained,
        /// Its pool scaled down, because the cluster was empty.
        #[error("Pool {pool} scales down: the cluster was empty.")]
        ScaledDown {
            /// The pool.
            pool: String,
        },
        /// A retry was requested.
        #[error("Retry requested.")]
        RetryRequested,
        /// Deletion was requested.
        #[error("{}", requested("Deletion", by.as_ref()))]
        DeletionRequested {
            /// The requester, if known.
            by: Option<Requester>,
        },
    }
}

fn first_heartbeat(provider: Provider) -> &'static str {
    match provider {
        Provider::Local => "Waiting for the local agent's first heartbeat.",
        Provider::Agent => {
            "Waiting for the agent's first heartbeat. Create an agent token and start an agent with it."
        }
        Provider::Kubernetes | Provider::Terraform => "Waiting for the agent's first heartbeat.",
    }
}

fn draining(numbers: [u64; 4]) -> String {
    let labels =
        ["moving", "without capacity elsewhere", "pinned here", "run by its third-party agent"];
    let parts: Vec<String> = numbers
        .into_iter()
        .zip(labels)
        .filter(|(number, _)| *number > 0)
        .map(|(number, label)| format!("{} {label}", count(number, "deployment")))
        .collect();
    if parts.is_empty() {
        return "Draining: accepts no new workloads.".to_owned();
    }
    format!("Draining: {}.", parts.join(", "))
}
