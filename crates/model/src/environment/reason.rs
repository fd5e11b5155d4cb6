//! Why an environment has its status.

use crate::Time;
use crate::reason::{By, at, count, quoted, reason, requested};
use crate::resource;

reason! {
    /// Why an environment has its status.
    enum {
        /// Its resources are created, changed or destroyed.
        #[error("{done} of {} done, {running} running.", count(*resources, "resource"))]
        Progressing {
            /// How many resources are done.
            done: u64,
            /// How many there are.
            resources: u64,
            /// How many steps run.
            running: u64,
        },
        /// All resources are applied.
        #[error("Running health checks.")]
        HealthChecksRunning,
        /// A health check or an entry point does not answer as it should.
        #[error("Health check of {of} failed: {}.", quoted(message))]
        HealthCheckFailed {
            /// A resource, or the entry point.
            of: String,
            /// The last answer.
            message: String,
        },
        /// A resource failed.
        #[error("Resource {resource} failed: {}{}. Fix the cause and retry, or destroy the environment.", quoted(&reason.to_string()), more(*others))]
        ResourceFailed {
            /// The first that failed.
            resource: String,
            /// Why.
            reason: Box<resource::Reason>,
            /// How many others failed.
            others: u64,
        },
        /// Its resources wait for each other.
        #[error("{left} of {} wait for each other. Change the template's dependencies, or destroy the environment.", count(*resources, "resource"))]
        DependencyCycle {
            /// How many wait.
            left: u64,
            /// How many there are.
            resources: u64,
        },
        /// The running operation was cancelled.
        #[error("{}", cancelled(*left))]
        Cancelled {
            /// How many resources were not done; none if only validation was cancelled.
            left: Option<u64>,
        },
        /// A retry was requested.
        #[error("Retry requested.")]
        RetryRequested,
        /// Resources that differ from what was applied are being repaired.
        #[error("Repairing drift: {}.", resources.join(", "))]
        RepairingDrift {
            /// Which resources.
            resources: Vec<String>,
        },
        /// Its planned end has come.
        #[error("Time to live expired at {}.", at(*expired_at))]
        TtlExpired {
            /// When that was.
            expired_at: Time,
        },
        /// Its deletion was requested.
        #[error("{}", requested("Destruction", by.as_ref()))]
        DeletionRequested {
            /// Who, if that is known.
            by: Option<By>,
        },
    }
    passes on
        Self::ResourceFailed { reason, .. } => reason
}

fn more(others: u64) -> String {
    match others {
        0 => String::new(),
        others => format!("; {others} more failed"),
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
