//! Why a deployment or a replica has its status.

use serde::{Deserialize, Serialize};

use crate::reason::{By, Who, and_some, at, bytes, count, on, quoted, reason, requested, span};
use crate::{Resources, Time, cluster};

reason! {
    /// Why a deployment or a replica has its status.
    enum {
        /// Placement has not looked at it yet.
        #[error("Waiting for placement.")]
        AwaitingPlacement,
        /// Capacity is short for now.
        #[error(
            "Waiting for capacity{}: needs {needs}{}.{}",
            on(cluster.as_ref()),
            short(node.as_ref(), missing),
            start(*estimated_start)
        )]
        InsufficientCapacity {
            /// What one replica requests.
            needs: Resources,
            /// The cluster that it is pinned to.
            cluster: Option<String>,
            /// The nearest node.
            node: Option<String>,
            /// What the nearest node lacks; empty if not known.
            missing: Resources,
            /// When it can start if everything ends as planned.
            estimated_start: Option<Time>,
        },
        /// Capacity is free, but reserved for workloads ahead in the queue.
        #[error(
            "Waiting for capacity{}: {needs} is free, but reserved for workloads ahead in the queue.",
            on(cluster.as_ref())
        )]
        CapacityReserved {
            /// What one replica requests.
            needs: Resources,
            /// The cluster that it is pinned to.
            cluster: Option<String>,
        },
        /// No node that it may use is large enough, even when empty.
        #[error(
            "Cannot be placed{}: needs {needs}; {}. Request less or add a larger node.",
            on(cluster.as_ref()),
            too_large(missing)
        )]
        ExceedsCapacity {
            /// What one replica requests.
            needs: Resources,
            /// The cluster that it is pinned to.
            cluster: Option<String>,
            /// How much more that is than the cluster has; empty if not known.
            missing: Resources,
        },
        /// No node has the labels that it requires.
        #[error("Cannot be placed{}: no node matches its node selector. Change `node_selector` or label a node.", on(cluster.as_ref()))]
        NoMatchingNode {
            /// The cluster that it is pinned to.
            cluster: Option<String>,
        },
        /// The cluster that it is pinned to is not ready.
        #[error("Waiting for cluster {cluster} to become ready: it is {status}.")]
        ClusterNotReady {
            /// The cluster.
            cluster: String,
            /// The cluster's status.
            status: cluster::Status,
        },
        /// Preemption victims are stopping.
        #[error("Waiting for lower-priority workloads{} to stop.", on(cluster.as_ref()))]
        AwaitingPreemption {
            /// The cluster that it is pinned to.
            cluster: Option<String>,
        },
        /// Its organization has preempted as often as it may.
        #[error(
            "Waiting for capacity{}: its organization used its {limit} preemptions of the last hour. Starts when capacity is free or the hour has passed.",
            on(cluster.as_ref())
        )]
        PreemptionBudgetExceeded {
            /// How many preemptions an hour may have.
            limit: u64,
            /// The cluster that it is pinned to.
            cluster: Option<String>,
        },
        /// A workload of higher priority has its capacity now.
        #[error("Preempted by {by}. Restarts when {needs} is free{}.", on(cluster.as_ref()))]
        Preempted {
            /// By which workload.
            by: Who,
            /// What one replica requests.
            needs: Resources,
            /// The cluster that it is pinned to.
            cluster: Option<String>,
        },
        /// Its cluster is being drained.
        #[error("Moving: cluster {cluster} is being drained.")]
        ClusterDraining {
            /// The cluster.
            cluster: String,
        },
        /// It was evicted from a cluster that is unreachable.
        #[error("Evicted: cluster {cluster} is unreachable. Waiting for capacity elsewhere.")]
        Evicted {
            /// The cluster.
            cluster: String,
        },
        /// Its cluster is unreachable, so that its status may be outdated.
        #[error("{}", outdated(*since, last))]
        ClusterUnreachable {
            /// When the cluster's agent last sent a heartbeat.
            since: Option<Time>,
            /// The last known reason.
            last: Box<Reason>,
        },
        /// It has capacity; its agent has not started it yet.
        #[error("Placed on {}.", clusters.join(" and "))]
        Placed {
            /// On which clusters.
            clusters: Vec<String>,
        },
        /// It has no image: it only reserves capacity.
        #[error("Reserves capacity{}; runs no container.", on(cluster.as_ref()))]
        ReservesCapacity {
            /// On which cluster.
            cluster: Option<String>,
        },
        /// Its agent has not answered yet.
        #[error("Waiting for the agent to start it.")]
        AwaitingAgent,
        /// Its instance is being suspended.
        #[error("Stopping: its instance is being suspended.")]
        Suspending,
        /// Its container ended and is restarted.
        #[error("{}", restarting(last, *retry_in_ms, *restarts))]
        CrashLoopBackOff {
            /// How it ended.
            last: Box<Reason>,
            /// After which pause it is restarted.
            retry_in_ms: Option<u64>,
            /// How many restarts there were.
            restarts: Option<u32>,
        },
        /// Its container exited.
        #[error("{}", exited(*exit_code, signal.as_ref(), *oom_limit_bytes))]
        Exited {
            /// The exit code, if it is known.
            exit_code: Option<i32>,
            /// The signal that ended it, such as `9 (SIGKILL)`.
            signal: Option<String>,
            /// The memory limit, if one of its processes was OOM-killed before.
            oom_limit_bytes: Option<i64>,
        },
        /// Its container used more memory than there was.
        #[error("{}", oom_killed(*limit_bytes))]
        OOMKilled {
            /// Its memory limit; none if the node ran out of memory.
            limit_bytes: Option<i64>,
        },
        /// Its image can't be had.
        #[error("Image pull failed: {image}: {}.{}", quoted(message), pull_advice(*cause, *is_retried))]
        ImagePullFailed {
            /// The image.
            image: String,
            /// What kept it.
            cause: Pull,
            /// What the registry or the runtime said.
            message: String,
            /// Is the pull retried?
            is_retried: bool,
        },
        /// The image lacks the command.
        #[error("Command not found in the image: {command}. Check `command` and the image.")]
        CommandNotFound {
            /// The command.
            command: String,
        },
        /// The command is not executable.
        #[error("Command is not executable in the image: {command}. Check `command` and the image.")]
        CommandNotExecutable {
            /// The command.
            command: String,
        },
        /// A port can't be published.
        #[error("Publishing a port failed: {}.", quoted(message))]
        PortUnavailable {
            /// What the runtime said.
            message: String,
        },
        /// The container can't be started for another cause.
        #[error("Container start failed: {}.", quoted(message))]
        StartFailed {
            /// What the runtime said.
            message: String,
        },
        /// The container did not become ready in time.
        #[error("{}", unready(*port, *within_seconds, message))]
        ReadinessCheckFailed {
            /// The port that is checked.
            port: Option<u16>,
            /// How long it had.
            within_seconds: Option<u64>,
            /// The last answer.
            message: String,
        },
        /// The container was removed or killed from outside Paddock.
        #[error("Container lost: {}.", quoted(message))]
        ContainerLost {
            /// What the agent found.
            message: String,
        },
        /// No node of its Kubernetes cluster accepts the pod.
        #[error("Pod is unschedulable: {}. Kubernetes retries.", quoted(message))]
        Unschedulable {
            /// What Kubernetes said.
            message: String,
        },
        /// Kubernetes ended the pod or can't create it.
        #[error("Pod failed ({reason}): {}.", quoted(message))]
        PodFailed {
            /// Kubernetes' own reason.
            reason: String,
            /// What Kubernetes said.
            message: String,
        },
        /// It ran as long as `run_for` says.
        #[error("Ended after its `run_for` of {}.", span(*seconds))]
        RunForElapsed {
            /// How long that was.
            seconds: u64,
        },
        /// One replica failed.
        #[error("Replica {replica}: {}.", quoted(&reason.to_string()))]
        ReplicaFailed {
            /// Which replica.
            replica: u32,
            /// Why.
            reason: Box<Reason>,
        },
        /// It was stopped because another replica failed.
        #[error("Stopped: replica {replica} failed.")]
        SiblingFailed {
            /// Which replica failed.
            replica: u32,
        },
        /// Not all replicas run.
        #[error("{running} of {} running.{}", count(u64::from(*replicas), "replica"), and_some(pending.as_deref()))]
        ReplicasUnavailable {
            /// How many run.
            running: u32,
            /// How many there are.
            replicas: u32,
            /// Why the first pending one is pending.
            pending: Option<Box<Reason>>,
        },
        /// The deployment has fewer replicas now.
        #[error("Removed by scale-down.")]
        ScaledDown,
        /// Its deletion was requested.
        #[error("{}", requested("Deletion", by.as_ref()))]
        DeletionRequested {
            /// Who, if that is known.
            by: Option<By>,
        },
    }
    passes on
        Self::CrashLoopBackOff { last: inner, .. }
        | Self::ReplicaFailed { reason: inner, .. }
        | Self::ReplicasUnavailable { pending: Some(inner), .. } => inner
}

/// What keeps an image from being pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pull {
    /// The name is no image's name.
    InvalidName,
    /// The registry does not have it.
    NotFound,
    /// The registry wants other credentials.
    Unauthorized,
    /// The registry can't be reached, or not securely.
    Unreachable,
    /// The registry did not answer in time.
    TimedOut,
    /// It has no variant for the platform.
    NoMatchingPlatform,
    /// It is larger than allowed.
    TooLarge,
    /// Its content is not what it should be.
    Corrupt,
    /// Anything else, also of newer versions.
    #[serde(other)]
    Other,
}

fn pull_advice(cause: Pull, is_retried: bool) -> String {
    let advice = match cause {
        Pull::InvalidName => " Write registry/name:tag.",
        Pull::NotFound => " Check the name and the tag.",
        Pull::Unauthorized => " Check the registry's credentials.",
        Pull::Unreachable | Pull::TimedOut => " Check the registry's name and that it is up.",
        Pull::NoMatchingPlatform => " Use an image for the node's platform.",
        Pull::TooLarge => " Use a smaller image.",
        Pull::Corrupt => " Push the image again.",
        Pull::Other => "",
    };
    format!("{advice}{}", if is_retried { " Retrying." } else { "" })
}

fn short(node: Option<&String>, missing: &Resources) -> String {
    match (node, missing.is_empty()) {
        (_, true) => String::new(),
        (Some(node), false) => format!("; node {node} is short of {missing}"),
        (None, false) => format!("; short of {missing}"),
    }
}

fn start(estimated: Option<Time>) -> String {
    estimated.map(|time| format!(" Estimated start {}.", at(time))).unwrap_or_default()
}

fn too_large(missing: &Resources) -> String {
    if missing.is_empty() {
        return "more than any node has".to_owned();
    }
    format!("exceeds the cluster by {missing}")
}

fn outdated(since: Option<Time>, last: &Reason) -> String {
    let since = since.map(|time| format!(" since {}", at(time))).unwrap_or_default();
    let last = match last.to_string() {
        last if last.is_empty() => last,
        last => format!(" Before: {last}"),
    };
    format!("Cluster is unreachable{since}: this is the last known status.{last}")
}

fn restarting(last: &Reason, retry_in_ms: Option<u64>, restarts: Option<u32>) -> String {
    let pause = match retry_in_ms {
        None => String::new(),
        Some(ms) if ms < 1000 => format!(" in {ms} ms"),
        Some(ms) => format!(" in {}", span(ms / 1000)),
    };
    let restarts = restarts.map(|restarts| format!(" (restart {restarts})")).unwrap_or_default();
    format!("{last} Restarting{pause}{restarts}.").trim_start().to_owned()
}

fn exited(code: Option<i32>, signal: Option<&String>, oom_limit: Option<i64>) -> String {
    let code = code.map_or("an unknown code".to_owned(), |code| format!("code {code}"));
    let signal = signal.map(|signal| format!(": signal {signal}")).unwrap_or_default();
    let oom = oom_limit.map(|limit| {
        format!(" One of its processes exceeded the memory limit of {}. Raise `ram`.", bytes(limit))
    });
    format!("Exited with {code}{signal}.{}", oom.unwrap_or_default())
}

fn oom_killed(limit: Option<i64>) -> String {
    match limit {
        Some(limit) => {
            format!("OOM-killed: exceeded its memory limit of {}. Raise `ram`.", bytes(limit))
        }
        None => "OOM-killed: the node ran out of memory.".to_owned(),
    }
}

fn unready(port: Option<u16>, within: Option<u64>, message: &str) -> String {
    let port = port.map(|port| format!(" on port {port}")).unwrap_or_default();
    let within = within.map(|s| format!(" within {}", span(s))).unwrap_or_default();
    format!("Readiness check failed{port}{within}: {}.", quoted(message))
}
