//! Why a resource has its status.

use crate::reason::{and_some, at, count, quoted, reason, sentence};
use crate::template::Executor;
use crate::{Time, deployment, instance};

reason! {
    /// Why a resource has its status.
    enum {
        /// As many steps of its environment run as may at once.
        #[error("Waiting for one of {} to finish.", count(*limit, "running step"))]
        ConcurrencyLimit {
            /// How many may run.
            limit: u64,
        },
        /// A resource that it depends on is not applied yet.
        #[error("Waiting for {resource}.")]
        DependencyPending {
            /// Which.
            resource: String,
        },
        /// A resource that it depends on failed.
        #[error("Waiting for {resource}, which failed.")]
        DependencyFailed {
            /// Which.
            resource: String,
        },
        /// A resource that depends on it must be destroyed first.
        #[error("Waiting for {resource} to be destroyed, which depends on it{}.", if *failed { " and failed" } else { "" })]
        DependentExists {
            /// Which.
            resource: String,
            /// Did its destruction fail?
            failed: bool,
        },
        /// It is destroyed when all others are applied.
        #[error("Waiting until all other resources are applied.")]
        AwaitingOthers,
        /// A change of it is planned.
        #[error("Planned: {}.", quoted(why))]
        Planned {
            /// Why, as the plan says.
            why: String,
        },
        /// Its executor is at work.
        #[error("{}", sentence(message))]
        Progressing {
            /// What the executor said.
            message: String,
        },
        /// The deployment that was created for it is not there yet.
        #[error("Deployment is {status}.{}", crate::reason::and(reason))]
        DeploymentPending {
            /// The deployment's status.
            status: deployment::Status,
            /// Why.
            reason: deployment::Reason,
        },
        /// The deployment that was created for it failed.
        #[error("Deployment failed: {}.", quoted(&reason.to_string()))]
        DeploymentFailed {
            /// Why.
            reason: deployment::Reason,
        },
        /// The instance that was created for it is not there yet.
        #[error("Instance is {status}.{}", crate::reason::and(reason))]
        InstancePending {
            /// The instance's status.
            status: instance::Status,
            /// Why.
            reason: instance::Reason,
        },
        /// The instance that was created for it failed.
        #[error("Instance failed: {}.", quoted(&reason.to_string()))]
        InstanceFailed {
            /// Why.
            reason: instance::Reason,
        },
        /// The old object is destroyed before its replacement is created.
        #[error("Destroying the old resource before creating its replacement.")]
        Replacing,
        /// The old object is destroyed; its replacement is being created.
        #[error("Old resource destroyed: creating its replacement.")]
        Recreating,
        /// Nothing had to change.
        #[error("Nothing had to change.")]
        Unchanged,
        /// What its executor is given is wrong.
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
        /// Its executor, or what that needs, does not answer for now.
        #[error("Backend is unavailable: {}. Attempt {attempts}, next at {}.", quoted(message), at(*retry_at))]
        BackendUnavailable {
            /// What it said.
            message: String,
            /// How often it was tried.
            attempts: u64,
            /// When it is tried again.
            retry_at: Time,
        },
        /// Its executor can't do it like this.
        #[error("{}", sentence(message))]
        BackendRefused {
            /// What it said.
            message: String,
        },
        /// Its organization's quota is used up.
        #[error("Quota exceeded: {}. Retrying.", quoted(message))]
        QuotaExceeded {
            /// Which limit, and how much of it is used.
            message: String,
        },
        /// A step took longer than it may.
        #[error("Timed out: {}.", quoted(message))]
        DeadlineExceeded {
            /// What was waited for, or how long.
            message: String,
        },
        /// Its step is being stopped.
        #[error("Stopping the running step.")]
        Cancelling,
        /// Its step can't be stopped yet.
        #[error("Stopping the running step failed: {}. Retrying.", quoted(message))]
        CancelFailed {
            /// What its executor said.
            message: String,
        },
        /// Its step was cancelled.
        #[error("Cancelled.")]
        Cancelled,
        /// It is destroyed when its turn comes.
        #[error("Queued for destruction.{}", and_some(after.as_deref()))]
        DestructionQueued {
            /// How its last step failed, if it did.
            after: Option<Box<Reason>>,
        },
        /// A retry was requested.
        #[error("Retry requested.")]
        RetryRequested,
        /// It differs from what was applied and is being repaired.
        #[error("Repairing drift.")]
        RepairingDrift,
        /// It differs from what was applied.
        #[error("{} from what was applied. Repair it or change its template.", differ(fields))]
        DriftDetected {
            /// Which fields differ.
            fields: Vec<String>,
        },
        /// Objects beside it were not created by Paddock.
        #[error("{} beside it not created by Paddock.", count(*objects, "object"))]
        UnexpectedObjects {
            /// How many.
            objects: u64,
        },
        /// It can't be observed for now.
        #[error("Drift detection failed: {}. Retrying.", quoted(message))]
        ObservationFailed {
            /// What its executor said.
            message: String,
        },
    }
    passes on
        Self::DeploymentPending { reason, .. } | Self::DeploymentFailed { reason } => reason,
        Self::InstancePending { reason, .. } | Self::InstanceFailed { reason } => reason,
        Self::DestructionQueued { after: Some(inner) } => inner
}

fn differ(fields: &[String]) -> String {
    match fields {
        [] => "It differs".to_owned(),
        [one] => format!("{one} differs"),
        [first, rest @ ..] => format!("{first} and {} more differ", rest.len()),
    }
}
