//! Why a resource has its status.

use crate::reason::{at, count, quoted, reason, with_period};
use crate::template::Executor;
use crate::{Time, deployment, instance};

reason! {
    /// Why a resource has its status.
    enum {
        /// The environment runs as many steps as allowed.
        #[error("Waiting for one of {} to finish.", count(*limit, "running step"))]
        ConcurrencyLimit {
            /// The maximum number of concurrent steps.
            limit: u64,
        },
        /// A dependency is not applied yet.
        #[error("Waiting for {resource}.")]
        DependencyPending {
            /// The dependency.
            resource: String,
        },
        /// A dependency failed.
        #[error("Waiting for {resource}, which failed. Fix the cause and retry.")]
        DependencyFailed {
            /// The dependency.
            resource: String,
        },
        /// A dependent must be destroyed first.
        #[error("{}", dependent(resource, *failed))]
        DependentExists {
            /// The dependent.
            resource: String,
            /// Did its destruction fail?
            failed: bool,
        },
        /// The resource is destroyed after all others are applied.
        #[error("Waiting until all other resources are applied.")]
        AwaitingOthers,
        /// A change is planned.
        #[error("Planned: {}.", quoted(why))]
        Planned {
            /// The reason from the plan.
            why: String,
        },
        /// The executor is working.
        #[error("{}", with_period(message))]
        Progressing {
            /// The executor's message.
            message: String,
        },
        /// The deployment created for it is not running yet.
        #[error("Deployment is {status}.{}", crate::reason::and(reason))]
        DeploymentPending {
            /// The deployment's status.
            status: deployment::Status,
            /// The deployment's reason.
            reason: deployment::Reason,
        },
        /// The deployment created for it failed.
        #[error("Deployment failed: {}.", quoted(&reason.to_string()))]
        DeploymentFailed {
            /// The deployment's reason.
            reason: deployment::Reason,
        },
        /// The instance created for it is not ready yet.
        #[error("Instance is {status}.{}", crate::reason::and(reason))]
        InstancePending {
            /// The instance's status.
            status: instance::Status,
            /// The instance's reason.
            reason: instance::Reason,
        },
        /// The instance created for it failed.
        #[error("Instance failed: {}.", quoted(&reason.to_string()))]
        InstanceFailed {
            /// The instance's reason.
            reason: instance::Reason,
        },
        /// The old object is destroyed before its replacement is created.
        #[error("Destroying the old resource before creating its replacement.")]
        Replacing,
        /// The old object is destroyed; its replacement is being created.
        #[error("Old resource destroyed: creating its replacement.")]
        Recreating,
        /// The resource already has the desired state.
        #[error("No changes.")]
        Unchanged,
        /// The configuration is invalid.
        #[error("Invalid configuration: {}.", quoted(message))]
        InvalidConfiguration {
            /// Which field, and what is wrong with it.
            message: String,
        },
        /// This server is not configured for its executor.
        #[error(
            "Executor {executor} is not configured on this server. Waiting for an administrator to configure it."
        )]
        BackendNotConfigured {
            /// The executor.
            executor: Executor,
        },
        /// The executor or its backend is temporarily unavailable.
        #[error("Backend is unavailable: {}. Attempt {attempts}, next at {}.", quoted(message), at(*retry_at))]
        BackendUnavailable {
            /// The error message.
            message: String,
            /// The number of attempts.
            attempts: u64,
            /// The time of the next attempt.
            retry_at: Time,
        },
        /// The executor rejected the step permanently.
        #[error("{}", with_period(message))]
        BackendRefused {
            /// The error message.
            message: String,
        },
        /// The organization's quota is exhausted.
        #[error("Quota exceeded: {}. Retrying.", quoted(message))]
        QuotaExceeded {
            /// The limit and its usage.
            message: String,
        },
        /// A step exceeded its timeout.
        #[error("Timed out: {}.", quoted(message))]
        DeadlineExceeded {
            /// What the step waited for, or how long.
            message: String,
        },
        /// The step is being stopped.
        #[error("Stopping the running step.")]
        Cancelling,
        /// Stopping the step failed.
        #[error("Stopping the running step failed: {}. Retrying.", quoted(message))]
        CancelFailed {
            /// The executor's message.
            message: String,
        },
        /// The step was cancelled.
        #[error("Cancelled.")]
        Cancelled,
        /// Destruction is queued.
        #[error("Queued for destruction.{}", last_error(after.as_deref()))]
        DestructionQueued {
            /// The failure of the last step, if any.
            after: Option<Box<Reason>>,
        },
        /// A retry was requested.
        #[error("Retry requested.")]
        RetryRequested,
        /// Drift is being repaired.
        #[error("Repairing drift.")]
        RepairingDrift,
        /// Drift was detected.
        #[error("Drift detected: {} from the applied configuration. Repair it, or change the template.", differ(fields))]
        DriftDetected {
            /// The drifted fields.
            fields: Vec<String>,
        },
        /// Observation found objects that Paddock did not create.
        #[error("Found {} not created by Paddock.", count(*objects, "object"))]
        UnexpectedObjects {
            /// The number of objects.
            objects: u64,
        },
        /// Observation failed temporarily.
        #[error("Drift detection failed: {}. Retrying.", quoted(message))]
        ObservationFailed {
            /// The executor's message.
            message: String,
        },
    }
    passes on
        Self::DeploymentPending { reason, .. } | Self::DeploymentFailed { reason } => reason,
        Self::InstancePending { reason, .. } | Self::InstanceFailed { reason } => reason,
        Self::DestructionQueued { after: Some(inner) } => inner
}

fn dependent(resource: &str, failed: bool) -> String {
    if failed {
        return format!(
            "Destruction of {resource}, which depends on it, failed. Fix the cause and retry."
        );
    }
    format!("Waiting for the destruction of {resource}, which depends on it.")
}

fn last_error(reason: Option<&Reason>) -> String {
    reason.map(|reason| format!(" Last error: {reason}")).unwrap_or_default()
}

fn differ(fields: &[String]) -> String {
    match fields {
        [] => "the resource differs".to_owned(),
        [one] => format!("{one} differs"),
        [first, rest @ ..] => format!("{first} and {} more differ", rest.len()),
    }
}
