//! Which runtime this machine gets.

use std::sync::Arc;

use runtime::Embedded;

use crate::{Absent, Docker, Kubernetes, Runtime, Simulated, docker, kubernetes, simulated};

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

/// Finds the runtime that was asked for. When it does not work there is none, which says why to
/// everyone who wants to run something: the rest of this machine's control plane can still be used.
pub async fn choose(
    choice: Choice,
    embedded: runtime::Options,
    docker: docker::Options,
) -> Arc<dyn Runtime> {
    let (try_embedded, try_docker) = match choice {
        Choice::Simulated(options) => {
            tracing::info!("runtime: simulated, as asked for; nothing really runs");
            return Arc::new(Simulated::new(options));
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
                return Arc::new(runtime);
            }
            Err(why) => {
                tracing::info!(%why, "the embedded runtime does not work here");
                reasons.push(format!("embedded: {why}"));
            }
        }
    }
    if try_docker {
        match Docker::probe(docker).await {
            Ok(runtime) => {
                tracing::info!(engine = runtime.describe(), "runtime: docker");
                return Arc::new(runtime);
            }
            Err(why) => {
                tracing::info!(%why, "no engine works here");
                reasons.push(format!("docker: {why}"));
            }
        }
    }
    let reason = absent(&reasons);
    tracing::warn!(reason, "runtime: none");
    Arc::new(Absent { reason })
}

async fn on_kubernetes(options: kubernetes::Options) -> Arc<dyn Runtime> {
    match Kubernetes::probe(options).await {
        Ok(runtime) => {
            tracing::info!(at = runtime.describe(), "runtime: kubernetes");
            Arc::new(runtime)
        }
        Err(error) => {
            let reason = error.to_string();
            tracing::warn!(reason, "runtime: none");
            Arc::new(Absent { reason })
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
