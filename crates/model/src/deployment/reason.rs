//! Why a deployment or a replica has its status.

use serde::{Deserialize, Serialize};

use crate::reason::{
    Requester, Workload, and_some, at, bytes, count, on, quoted, reason, requested, span,
};
use crate::{Resources, Time, cluster};

reason! {
    /// Why a deployment or a replica has its status.
    enum {
        /// Not examined by the scheduler yet.
        #[error("Waiting for placement.")]
        AwaitingPlacement,
        /// Free capacity is insufficient.
        #[error(
            "Waiting for capacity{}: needs {needs}{}.{}",
            on(cluster.as_ref()),
            short(node.as_ref(), missing),
            start(*estimated_start)
        )]
        InsufficientCapacity {
            /// Requested resources of one replica.
            needs: Resources,
            /// The cluster it is pinned to.
            cluster: Option<String>,
            /// The nearest node.
            node: Option<String>,
            /// The shortage on the nearest node; empty if unknown.
            missing: Resources,
            /// Estimated start if all workloads end as planned.
            estimated_start: Option<Time>,
        },
        /// Capacity is free, but reserved for workloads ahead in the queue.
        #[error(
            "Waiting for capacity{}: {needs} is free, but reserved for workloads ahead in the queue.",
            on(cluster.as_ref())
        )]
        CapacityReserved {
            /// Requested resources of one replica.
            needs: Resources,
            /// The cluster it is pinned to.
            cluster: Option<String>,
        },
        /// No usable node is large enough, even when empty.
        #[error(
            "Cannot be placed{}: needs {needs}; {}. Request less or add a larger node.",
            on(cluster.as_ref()),
            too_large(missing)
        )]
        ExceedsCapacity {
            /// Requested resources of one replica.
            needs: Resources,
            /// The cluster it is pinned to.
            cluster: Option<String>,
            /// By how much the request exceeds the cluster; empty if unknown.
            missing: Resources,
        },
        /// The cluster has capacity, but the machine that runs its containers does not.
        #[error(
            "Waiting for capacity{}: needs {needs}; the machine that runs its containers is short of {missing}.",
            on(cluster.as_ref())
        )]
        InsufficientMachineCapacity {
            /// Requested resources of one replica.
            needs: Resources,
            /// The cluster it is pinned to.
            cluster: Option<String>,
            /// The shortage on the machine.
            missing: Resources,
        },
        /// The machine that runs the cluster's containers is too small, even when empty.
        #[error(
            "Cannot be placed{}: needs {needs}; exceeds the machine that runs its containers by {missing}. Request less or use a cluster on another machine.",
            on(cluster.as_ref())
        )]
        ExceedsMachineCapacity {
            /// Requested resources of one replica.
            needs: Resources,
            /// The cluster it is pinned to.
            cluster: Option<String>,
            /// By how much the request exceeds the machine.
            missing: Resources,
        },
        /// Only organizations within their fair share could be preempted.
        #[error(
            "Waiting for capacity{}: needs {needs}; organizations within their fair share are not preempted.",
            on(cluster.as_ref())
        )]
        FairShareProtected {
            /// Requested resources of one replica.
            needs: Resources,
            /// The cluster it is pinned to.
            cluster: Option<String>,
        },
        /// No node matches the node selector.
        #[error("Cannot be placed{}: no node matches its node selector. Change `node_selector` or label a node.", on(cluster.as_ref()))]
        NoMatchingNode {
            /// The cluster it is pinned to.
            cluster: Option<String>,
        },
        /// The cluster it is pinned to is not ready.
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
            /// The cluster it is pinned to.
            cluster: Option<String>,
        },
        /// The preemption budget of its organization is used up.
        #[error(
            "Waiting for capacity{}: its organization has reached its limit of {limit} preemptions per hour. Starts when capacity is free or the limit allows another preemption.",
            on(cluster.as_ref())
        )]
        PreemptionBudgetExceeded {
            /// Preemptions allowed per hour.
            limit: u64,
            /// The cluster it is pinned to.
            cluster: Option<String>,
        },
        /// Preempted by a workload of higher priority.
        #[error("Preempted by {by}. Restarts when {needs} is free{}.", on(cluster.as_ref()))]
        Preempted {
            /// The preempting workload.
            by: Workload,
            /// Requested resources of one replica.
            needs: Resources,
            /// The cluster it is pinned to.
            cluster: Option<String>,
        },
        /// Its cluster is being drained.
        #[error("Moving: cluster {cluster} is being drained.")]
        ClusterDraining {
            /// The cluster.
            cluster: String,
        },
        /// Evicted from an unreachable cluster.
        #[error("Evicted: cluster {cluster} is unreachable. Waiting for capacity elsewhere.")]
        Evicted {
            /// The cluster.
            cluster: String,
        },
        /// Its cluster is unreachable, so its status may be outdated.
        #[error("{}", outdated(*since, last))]
        ClusterUnreachable {
            /// Time of the agent's last heartbeat.
            since: Option<Time>,
            /// The last known reason.
            last: Box<Reason>,
        },
        /// Placed, but not started by the agent yet.
        #[error("Placed on {}.", clusters.join(" and "))]
        Placed {
            /// The clusters.
            clusters: Vec<String>,
        },
        /// Without an image: only reserves capacity.
        #[error("Reserves capacity{}; runs no container.", on(cluster.as_ref()))]
        ReservesCapacity {
            /// The cluster.
            cluster: Option<String>,
        },
        /// The agent has not reported yet.
        #[error("Waiting for the agent to start the container.")]
        AwaitingAgent,
        /// Its instance is being suspended.
        #[error("Stopping: its instance is being suspended.")]
        Suspending,
        /// The container ended and is being restarted.
        #[error("{}", restarting(last, *retry_in_ms, *restarts))]
        CrashLoopBackOff {
            /// How the container ended.
            last: Box<Reason>,
            /// Delay before the restart.
            retry_in_ms: Option<u64>,
            /// Number of restarts.
            restarts: Option<u32>,
        },
        /// The container exited.
        #[error("{}", exited(*exit_code, signal.as_ref(), *oom_limit_bytes))]
        Exited {
            /// The exit code, if known.
            exit_code: Option<i32>,
            /// The signal that ended it, such as `9 (SIGKILL)`.
            signal: Option<String>,
            /// The memory limit, if one of its processes was OOM-killed before.
            oom_limit_bytes: Option<i64>,
        },
        /// The container was killed for lack of memory.
        #[error("{}", oom_killed(*limit_bytes))]
        OOMKilled {
            /// The memory limit; none if the node ran out of memory.
            limit_bytes: Option<i64>,
        },
        /// The image could not be pulled.
        #[error("Image pull failed: {image}: {}.{}", quoted(message), pull_advice(*cause, *is_retried))]
        ImagePullFailed {
            /// The image.
            image: String,
            /// The cause.
            cause: Pull,
            /// Message of the registry or the runtime.
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
        /// A port could not be published.
        #[error("Publishing a port failed: {}. Free the port or change `ports`.", quoted(message))]
        PortUnavailable {
            /// Message of the runtime.
            message: String,
        },
        /// The container could not be started for another cause.
        #[error("Container start failed: {}.", quoted(message))]
        StartFailed {
            /// Message of the runtime.
            message: String,
        },
        /// The container did not become ready in time.
        #[error("{}", unready(*port, *within_seconds, message))]
        ReadinessCheckFailed {
            /// The port that is checked.
            port: Option<u16>,
            /// The time limit.
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
            /// Message of Kubernetes.
            message: String,
        },
        /// Kubernetes ended the pod or could not create it.
        #[error("Pod failed ({reason}): {}.", quoted(message))]
        PodFailed {
            /// Reason given by Kubernetes.
            reason: String,
            /// Message of Kubernetes.
            message: String,
        },
        /// The `run_for` time has elapsed.
        #[error("Ended after its `run_for` of {}.", span(*seconds))]
        RunForElapsed {
            /// The `run_for` time.
            seconds: u64,
        },
        /// One replica failed.
        #[error("Replica {replica}: {}.", quoted(&reason.to_string()))]
        ReplicaFailed {
            /// The replica.
            replica: u32,
            /// The replica's reason.
            reason: Box<Reason>,
        },
        /// Stopped because another replica failed.
        #[error("Stopped: replica {replica} failed.")]
        SiblingFailed {
            /// The failed replica.
            replica: u32,
        },
        /// Not all replicas are running.
        #[error("{running} of {} running.{}", count(u64::from(*replicas), "replica"), and_some(pending.as_deref()))]
        ReplicasUnavailable {
            /// Number of running replicas.
            running: u32,
            /// Number of replicas.
            replicas: u32,
            /// Reason of the first pending replica.
            pending: Option<Box<Reason>>,
        },
        /// The deployment has fewer replicas now.
        #[error("Removed by scale-down.")]
        ScaledDown,
        /// Deletion was requested.
        #[error("{}", requested("Deletion", by.as_ref()))]
        DeletionRequested {
            /// The requester, if known.
            by: Option<Requester>,
        },
    }
    passes on
        Self::CrashLoopBackOff { last: inner, .. }
        | Self::ReplicaFailed { reason: inner, .. }
        | Self::ReplicasUnavailable { pending: Some(inner), .. } => inner
}

/// Why an image pull failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pull {
    /// The image name is invalid.
    InvalidName,
    /// The registry does not have the image.
    NotFound,
    /// A local image is not in the machine's image store.
    NotLoaded,
    /// The registry rejected the credentials.
    Unauthorized,
    /// The registry is unreachable, or its TLS is not trusted.
    Unreachable,
    /// The registry did not answer in time.
    TimedOut,
    /// The image has no variant for the platform.
    NoMatchingPlatform,
    /// The image is larger than allowed.
    TooLarge,
    /// The content does not match its digest.
    Corrupt,
    /// Any other cause, including those of newer versions.
    #[serde(other)]
    Other,
}

fn pull_advice(cause: Pull, is_retried: bool) -> String {
    let advice = match cause {
        Pull::InvalidName => " Write registry/name:tag.",
        Pull::NotFound => " Check the name and the tag.",
        Pull::NotLoaded => " Load its archive into the machine's image store.",
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
        last => format!(" Last known reason: {last}"),
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
        None => {
            "OOM-killed: the node ran out of memory. Free or add memory on the node.".to_owned()
        }
    }
}

fn unready(port: Option<u16>, within: Option<u64>, message: &str) -> String {
    let port = port.map(|port| format!(" on port {port}")).unwrap_or_default();
    let within = within.map(|s| format!(" within {}", span(s))).unwrap_or_default();
    format!("Readiness check{port} did not pass{within}: {}.", quoted(message))
}
