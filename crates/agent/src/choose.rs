//! Which runtime this machine gets.

use std::time::Duration;

use model::agent::ReplicaId;
use model::deployment::Spec;

use crate::runtime::{docker, embedded, kubernetes, simulated};
use crate::{
    Absent, Condition, Docker, Embedded, Kubernetes, LogStream, LogsFrom, Runtime, Simulated,
};

/// What was asked for.
#[derive(Debug, Clone)]
pub enum Choice {
    /// The first that works: embedded, then Docker or Podman.
    Auto,
    /// The runtime inside this program.
    Embedded,
    /// Docker or Podman.
    Docker,
    /// A Kubernetes.
    Kubernetes(kubernetes::Options),
    /// Nothing runs, it only looks so.
    Simulated(simulated::Options),
}

/// One of the runtimes.
pub enum AnyRuntime {
    /// The runtime inside this program.
    Embedded(Box<Embedded>),
    /// Docker or Podman.
    Docker(Box<Docker>),
    /// A Kubernetes.
    Kubernetes(Box<Kubernetes>),
    /// Nothing runs, it only looks so.
    Simulated(Simulated),
    /// None works.
    Absent(Absent),
}

/// Finds the runtime that was asked for. When it does not work there is none, which says why to
/// everyone who wants to run something: the rest of this machine's control plane can still be used.
pub async fn choose(
    choice: Choice,
    embedded: embedded::Options,
    docker: docker::Options,
) -> AnyRuntime {
    let (try_embedded, try_docker) = match choice {
        Choice::Simulated(options) => {
            tracing::info!("runtime: simulated, as asked for; nothing really runs");
            return AnyRuntime::Simulated(Simulated::new(options));
        }
        Choice::Kubernetes(options) => return on_kubernetes(options).await,
        Choice::Auto => (true, true),
        Choice::Embedded => (true, false),
        Choice::Docker => (false, true),
    };
    let mut reasons = Vec::new();
    if try_embedded {
        match Embedded::probe(embedded).await {
            Ok(runtime) => {
                tracing::info!("runtime: embedded");
                return AnyRuntime::Embedded(Box::new(runtime));
            }
            Err(why) => {
                tracing::info!(why, "the embedded runtime does not work here");
                reasons.push(format!("embedded: {why}"));
            }
        }
    }
    if try_docker {
        match Docker::probe(docker).await {
            Ok(runtime) => {
                tracing::info!(engine = runtime.describe(), "runtime: docker");
                return AnyRuntime::Docker(Box::new(runtime));
            }
            Err(why) => {
                tracing::info!(why, "no engine works here");
                reasons.push(format!("docker: {why}"));
            }
        }
    }
    let reason = absent(&reasons);
    tracing::warn!(reason, "runtime: none");
    AnyRuntime::Absent(Absent { reason })
}

async fn on_kubernetes(options: kubernetes::Options) -> AnyRuntime {
    match Kubernetes::probe(options).await {
        Ok(runtime) => {
            tracing::info!(at = runtime.describe(), "runtime: kubernetes");
            AnyRuntime::Kubernetes(Box::new(runtime))
        }
        Err(reason) => {
            tracing::warn!(reason, "runtime: none");
            AnyRuntime::Absent(Absent { reason })
        }
    }
}

/// Why nothing can run, and what to do.
fn absent(reasons: &[String]) -> String {
    format!(
        "No container runtime works on this machine. {} Install docker.io or podman or do as it says \
         above, then start paddock again; --runtime embedded or --runtime docker tries only that one.",
        reasons.join(" ")
    )
}

impl AnyRuntime {
    /// Its name, as it is chosen by.
    pub fn name(&self) -> &'static str {
        match self {
            AnyRuntime::Embedded(_) => "embedded",
            AnyRuntime::Docker(_) => "docker",
            AnyRuntime::Kubernetes(_) => "kubernetes",
            AnyRuntime::Simulated(_) => "simulated",
            AnyRuntime::Absent(_) => "absent",
        }
    }

    /// The nodes of its cluster and what they have, if it has nodes; nothing while that is not known.
    pub fn nodes(&self) -> Option<Vec<model::cluster::NewNode>> {
        match self {
            AnyRuntime::Kubernetes(runtime) => runtime.nodes(),
            _ => None,
        }
    }

    /// Removes images regularly that nothing has used for a while, as long as it is polled. Only the
    /// embedded runtime's are ours to remove.
    pub async fn gc_forever(&self, every: Duration, unused_for: Duration) {
        match self {
            AnyRuntime::Embedded(runtime) => runtime.gc_forever(every, unused_for).await,
            _ => std::future::pending().await,
        }
    }
}

impl Runtime for AnyRuntime {
    async fn start(&self, id: ReplicaId, spec: &Spec) -> Result<Vec<String>, String> {
        match self {
            AnyRuntime::Embedded(runtime) => Runtime::start(&**runtime, id, spec).await,
            AnyRuntime::Docker(runtime) => runtime.start(id, spec).await,
            AnyRuntime::Kubernetes(runtime) => runtime.start(id, spec).await,
            AnyRuntime::Simulated(runtime) => runtime.start(id, spec).await,
            AnyRuntime::Absent(runtime) => runtime.start(id, spec).await,
        }
    }

    async fn start_on(&self, id: ReplicaId, node: &str, spec: &Spec) -> Condition {
        match self {
            AnyRuntime::Embedded(runtime) => Runtime::start_on(&**runtime, id, node, spec).await,
            AnyRuntime::Docker(runtime) => runtime.start_on(id, node, spec).await,
            AnyRuntime::Kubernetes(runtime) => runtime.start_on(id, node, spec).await,
            AnyRuntime::Simulated(runtime) => runtime.start_on(id, node, spec).await,
            AnyRuntime::Absent(runtime) => runtime.start_on(id, node, spec).await,
        }
    }

    async fn changed(&self, id: ReplicaId, seen: &Condition) -> Condition {
        match self {
            AnyRuntime::Embedded(runtime) => Runtime::changed(&**runtime, id, seen).await,
            AnyRuntime::Docker(runtime) => runtime.changed(id, seen).await,
            AnyRuntime::Kubernetes(runtime) => runtime.changed(id, seen).await,
            AnyRuntime::Simulated(runtime) => runtime.changed(id, seen).await,
            AnyRuntime::Absent(runtime) => runtime.changed(id, seen).await,
        }
    }

    async fn stop(&self, id: ReplicaId) -> Result<(), String> {
        match self {
            AnyRuntime::Embedded(runtime) => Runtime::stop(&**runtime, id).await,
            AnyRuntime::Docker(runtime) => runtime.stop(id).await,
            AnyRuntime::Kubernetes(runtime) => runtime.stop(id).await,
            AnyRuntime::Simulated(runtime) => runtime.stop(id).await,
            AnyRuntime::Absent(runtime) => runtime.stop(id).await,
        }
    }

    fn asks_itself(&self) -> bool {
        matches!(self, AnyRuntime::Kubernetes(_))
    }

    fn is_real(&self) -> bool {
        !matches!(self, AnyRuntime::Simulated(_))
    }

    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> LogStream {
        match self {
            AnyRuntime::Embedded(runtime) => Runtime::logs(&**runtime, id, from, follow),
            AnyRuntime::Docker(runtime) => runtime.logs(id, from, follow),
            AnyRuntime::Kubernetes(runtime) => runtime.logs(id, from, follow),
            AnyRuntime::Simulated(runtime) => runtime.logs(id, from, follow),
            AnyRuntime::Absent(runtime) => runtime.logs(id, from, follow),
        }
    }
}
