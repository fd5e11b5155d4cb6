//! Why a cluster has its status.

use super::Provider;
use crate::Time;
use crate::reason::{By, at, count, quoted, reason, requested, sentence};

reason! {
    /// Why a cluster has its status.
    enum {
        /// Its provider is at work.
        #[error("{}", sentence(message))]
        Progressing {
            /// What the provider said.
            message: String,
        },
        /// The agent and what it needs are being installed.
        #[error("Installing the agent.")]
        InstallingAgent,
        /// Its agent has not sent its first heartbeat.
        #[error("{}", first_heartbeat(*provider))]
        AwaitingAgent {
            /// The cluster's provider.
            provider: Provider,
        },
        /// Its third-party agent says that it is not ready.
        #[error("Agent reports that it is not ready.")]
        AgentNotReady,
        /// Its agent sends no heartbeats any more.
        #[error(
            "No heartbeat from the agent since {}. Check that the agent runs, reaches this server and has a valid token.",
            at(*since)
        )]
        AgentUnreachable {
            /// When the last heartbeat came.
            since: Time,
        },
        /// This server is not configured for its provider.
        #[error(
            "Provider {provider} is not configured on this server. Waiting for an administrator to configure it."
        )]
        BackendNotConfigured {
            /// The provider.
            provider: Provider,
        },
        /// Its provider does not answer for now.
        #[error("Provider is unavailable: {}. Retrying.", quoted(message))]
        BackendUnavailable {
            /// What it said.
            message: String,
        },
        /// Its provider can't do it like this.
        #[error(
            "Provisioning failed: {}. Fix the cause and retry, or delete the cluster.",
            quoted(message)
        )]
        BackendRefused {
            /// What it said.
            message: String,
        },
        /// A step took longer than it may.
        #[error("Provisioning timed out: {}. Fix the cause and retry, or delete the cluster.", quoted(&last.to_string()))]
        DeadlineExceeded {
            /// The last reason before that.
            last: Box<Reason>,
        },
        /// A user requested that the provider's operation stops.
        #[error("Cancelling the provider's operation.")]
        Cancelling,
        /// The provider's operation can't be cancelled yet.
        #[error("Cancelling failed: {}. Retrying.", quoted(message))]
        CancelFailed {
            /// What the provider said.
            message: String,
        },
        /// A user cancelled the provider's operation.
        #[error("Provisioning was cancelled. Retry, or delete the cluster.")]
        Cancelled,
        /// What was installed on it differs and can't be repaired.
        #[error(
            "Repairing the installed agent failed: {}. The cluster still accepts workloads.",
            quoted(message)
        )]
        RepairFailed {
            /// What its provider said.
            message: String,
        },
        /// Its provider can't destroy it.
        #[error(
            "Destroying failed: {}. Fix the cause, or force the deletion and remove what is left by hand.",
            quoted(message)
        )]
        DestroyFailed {
            /// What it said.
            message: String,
        },
        /// Its deletion was forced: what its provider created may remain.
        #[error("Deletion forced: remove what is left by hand ({}).", quoted(message))]
        LeftBehind {
            /// Why its provider can't remove it.
            message: String,
        },
        /// Its third-party agent reports less capacity than is in use.
        #[error("Agent reports less capacity than is in use: {}.", quoted(message))]
        CapacityInUse {
            /// Which type of instance, and how much.
            message: String,
        },
        /// It accepts no new workloads, and those on it move elsewhere.
        #[error("{}", draining([*moving, *without_capacity, *pinned, *third_party]))]
        Draining {
            /// How many deployments move.
            moving: u64,
            /// How many find no capacity elsewhere.
            without_capacity: u64,
            /// How many are pinned to it.
            pinned: u64,
            /// How many its third-party agent runs.
            third_party: u64,
        },
        /// No workload is left on it.
        #[error("Drained: no workload is left. Delete the cluster or end the drain.")]
        Drained,
        /// Its pool has one cluster too many: it was empty.
        #[error("Pool {pool} scales down: the cluster was empty.")]
        ScaledDown {
            /// The pool.
            pool: String,
        },
        /// A retry was requested.
        #[error("Retry requested.")]
        RetryRequested,
        /// Its deletion was requested.
        #[error("{}", requested("Deletion", by.as_ref()))]
        DeletionRequested {
            /// Who, if that is known.
            by: Option<By>,
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
    let words =
        ["moving", "without capacity elsewhere", "pinned here", "run by its third-party agent"];
    let parts: Vec<String> = numbers
        .into_iter()
        .zip(words)
        .filter(|(number, _)| *number > 0)
        .map(|(number, words)| format!("{} {words}", count(number, "deployment")))
        .collect();
    if parts.is_empty() {
        return "Draining: accepts no new workloads.".to_owned();
    }
    format!("Draining: {}.", parts.join(", "))
}
