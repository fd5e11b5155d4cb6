//! The Kubernetes under test, and simulation of its controllers.

use std::future::Future;

use serde_json::json;
use testing::apiserver::Apiserver;

use super::LINE;

/// A fake or real Kubernetes.
pub(super) trait Backend {
    /// Kubeconfig of the Kubernetes.
    fn kubeconfig(&self) -> String;
    /// An image that can be run.
    fn image(&self) -> String;
    /// Whether logs are available.
    fn has_logs(&self) -> bool;
    /// Whether an object exists.
    fn has(
        &self,
        namespace: &str,
        group: &str,
        plural: &str,
        name: &str,
    ) -> impl Future<Output = bool>;
    /// Detects whether controllers are running; called after a Deployment exists.
    fn detect_controllers(&self, namespace: &str) -> impl Future<Output = ()>;
    /// Simulates missing controllers.
    fn run_controllers(&self, namespace: &str) -> impl Future<Output = ()>;
}

/// The fake apiserver.
pub(super) struct Fake(Apiserver);

impl Fake {
    pub(super) async fn new() -> Self {
        let server = Apiserver::start().await;
        server.controller().node("n1.rack.local", &json!({"cpu": "4", "memory": "8Gi"}));
        server.controller().unmanaged_pod("dns", "n1.rack.local", &json!({"cpu": "1"}));
        Self(server)
    }

    /// Namespace of an object.
    pub(super) fn namespace_of(&self, plural: &str, name: &str) -> Option<String> {
        let group = if plural == "deployments" { "apps" } else { "" };
        let all = self.0.controller().list(group, plural);
        let found = all.iter().find(|object| object["metadata"]["name"] == name)?;
        Some(found["metadata"]["namespace"].as_str()?.to_owned())
    }
}

impl Backend for Fake {
    fn kubeconfig(&self) -> String {
        self.0.kubeconfig("t0ken")
    }

    fn image(&self) -> String {
        "web:1".into()
    }

    fn has_logs(&self) -> bool {
        true
    }

    async fn has(&self, namespace: &str, group: &str, plural: &str, name: &str) -> bool {
        self.0.controller().get(group, plural, namespace, name).is_some()
    }

    async fn detect_controllers(&self, _namespace: &str) {}

    async fn run_controllers(&self, namespace: &str) {
        let controller = self.0.controller();
        for deployment in controller.list("apps", "deployments") {
            let name = deployment["metadata"]["name"].as_str().unwrap().to_owned();
            let pod = format!("{name}-abcde");
            if controller.get("", "pods", namespace, &pod).is_none() && name != "paddock-agent" {
                controller.running_pod(&deployment);
                controller.available(namespace, &name);
                let line = format!("2025-01-01T00:00:01.5Z {LINE}");
                controller.log(namespace, &pod, &line);
            }
        }
    }
}
