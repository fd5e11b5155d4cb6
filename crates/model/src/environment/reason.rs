//! Why an environment has its status.

use crate::Time;
use crate::reason::{Requester, at, count, quoted, reason, requested};
use crate::resource;

reason! {
    /// Why an environment has its status.
    enum {
        /// Resources are being created or updated.
        #[error("{done} of {} done, {running} running.", count(*resources, "resource"))]
        Progressing {
            /// The number of finished resources.
            done: u64,
            /// The number of all resources.
            resources: u64,
            /// The number of running steps.
            running: u64,
        },
        /// The environment is being destroyed.
        #[error("{} left, {running} running.", count(*left, "resource"))]
        DestructionProgressing {
            /// The number of resources that still exist.
            left: u64,
            /// The number of running steps.
            running: u64,
        },
        /// All resources are applied; health checks are running.
        #[error("Running health checks.")]
        HealthChecksRunning,
        /// A health check or an entry point fails.
        #[error("Health check of {of} failed: {}. Retrying.", quoted(message))]
        HealthCheckFailed {
            /// The resource or the entry point.
            of: String,
            /// The last response.
            message: String,
        },
        /// A resource failed.
        #[error("Resource {resource}{} failed: {}. Fix the cause and retry, or destroy the environment.", more(*others), quoted(&reason.to_string()))]
        ResourceFailed {
            /// The first failed resource.
            resource: String,
            /// Why it failed.
            reason: Box<resource::Reason>,
            /// The number of other failed resources.
            others: u64,
        },
        /// Resources depend on each other.
        #[error("{left} of {} form a dependency cycle. Change the template's dependencies, or destroy the environment.", count(*resources, "resource"))]
        DependencyCycle {
            /// The number of resources in a cycle.
            left: u64,
            /// The number of all resources.
            resources: u64,
        },
        /// The running operation was cancelled.
        #[error("{}", cancelled(*left))]
        Cancelled {
            /// The number of unfinished resources; none if only validation was cancelled.
            left: Option<u64>,
        },
        /// A retry was requested.
        #[error("Retry requested.")]
        RetryRequested,
        /// Drifted resources are being repaired.
        #[error("Repairing drift: {}.", resources.join(", "))]
        RepairingDrift {
            /// The drifted resources.
            resources: Vec<String>,
        },
        /// The time to live expired.
        #[error("Time to live expired at {}.", at(*expired_at))]
        TtlExpired {
            /// When it expired.
            expired_at: Time,
        },
        /// Destruction was requested.
        #[error("{}", requested("Destruction", by.as_ref()))]
        DeletionRequested {
            /// The requester, if known.
            by: Option<Requester>,
        },
    }
    passes on
        Self::ResourceFailed { reason, .. } => reason
}

fn more(others: u64) -> String {
    match others {
        0 => String::new(),
        others => format!(" (and {others} more)"),
    }
}

fn cancelled(left: Option<u64>) -> String {
    match left {
        None => "Cancelled before validation finished.".to_owned(),
        Some(left) => {
            let left = count(left, "resource");
            format!(
                "Cancelled with {left} not done. Retry, apply a change or destroy the environment."
            )
        }
    }
}
