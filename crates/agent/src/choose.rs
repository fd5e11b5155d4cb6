//! Selects the container runtime of this machine.

use std::sync::Arc;

use runtime::Embedded;

use crate::{Absent, Docker, Kubernetes, Runtime, Simulated, docker, kubernetes, simulated};

/// The requested runtime.
#[derive(Debug, Clone)]
pub enum RuntimeChoice {
    /// The first that works: embedded, then Docker or Podman.
    Auto,
    /// The embedded runtime.
    Embedded,
    /// Docker or Podman.
    Docker,
    /// A Kubernetes cluster.
    Kubernetes(kubernetes::Options),
    /// No containers: replicas are simulated.
    Simulated(simulated::Options),
}

/// Sets up the requested runtime. If it does not work, returns [`Absent`], which reports the cause
/// for every replica; the rest of the server stays usable.
pub async fn choose(
    choice: RuntimeChoice,
    embedded: runtime::Options,
    docker: docker::Options,
) -> Arc<dyn Runtime> {
    let (try_embedded, try_docker) = match choice {
        RuntimeChoice::Simulated(options) => {
            tracing::info!("runtime selected: simulated, no containers will run");
            return Arc::new(Simulated::new(options));
        }
        RuntimeChoice::Kubernetes(options) => return on_kubernetes(options).await,
        RuntimeChoice::Auto => (true, true),
        RuntimeChoice::Embedded => (true, false),
        RuntimeChoice::Docker => (false, true),
    };
    let mut reasons = Vec::new();
    if try_embedded {
        match Embedded::probe(embedded).await {
            Ok(runtime) => {
                tracing::info!("runtime selected: embedded");
                return Arc::new(runtime);
            }
            Err(error) => {
                tracing::info!(%error, "embedded runtime is not available");
                reasons.push(format!("embedded: {error}"));
            }
        }
    }
    if try_docker {
        match Docker::probe(docker).await {
            Ok(runtime) => {
                tracing::info!(engine = runtime.describe(), "runtime selected: docker");
                return Arc::new(runtime);
            }
            Err(error) => {
                tracing::info!(%error, "docker runtime is not available");
                reasons.push(format!("docker: {error}"));
            }
        }
    }
    let reason = absent(&reasons);
    tracing::warn!(reason, "no container runtime available");
    Arc::new(Absent { reason })
}

async fn on_kubernetes(options: kubernetes::Options) -> Arc<dyn Runtime> {
    match Kubernetes::probe(options).await {
        Ok(runtime) => {
            tracing::info!(at = runtime.describe(), "runtime selected: kubernetes");
            Arc::new(runtime)
        }
        Err(error) => {
            let reason = error.to_string();
            tracing::warn!(reason, "no container runtime available");
            Arc::new(Absent { reason })
        }
    }
}

/// Why no runtime is available, and what to do.
fn absent(reasons: &[String]) -> String {
    format!(
        "No container runtime is available. {} Fix one of these or install docker.io or podman, then \
         restart paddock; --runtime embedded or --runtime docker tries only that one.",
        reasons.join(" ")
    )
}
