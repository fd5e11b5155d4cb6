//! Where a round trip takes place: what is there, and who plays the controllers.

use std::future::Future;

use serde_json::json;
use testing::apiserver::Apiserver;

use super::LINE;

/// A Kubernetes, of whatever sort.
pub(super) trait Field {
    /// How it is reached.
    fn kubeconfig(&self) -> String;
    /// An image that it can run.
    fn image(&self) -> String;
    /// Can logs be read there?
    fn has_logs(&self) -> bool;
    /// Is there such an object?
    fn has(
        &self,
        namespace: &str,
        group: &str,
        plural: &str,
        name: &str,
    ) -> impl Future<Output = bool>;
    /// Looks who else is there, once something was applied.
    fn begin(&self, namespace: &str) -> impl Future<Output = ()>;
    /// Does what nobody else does there.
    fn play(&self, namespace: &str) -> impl Future<Output = ()>;
}

/// The server that answers like an apiserver.
pub(super) struct Fake(Apiserver);

impl Fake {
    pub(super) async fn new() -> Self {
        let server = Apiserver::start().await;
        server.controller().node("n1.rack.local", &json!({"cpu": "4", "memory": "8Gi"}));
        server.controller().foreign_pod("dns", "n1.rack.local", &json!({"cpu": "1"}));
        Self(server)
    }

    /// In which namespace an object of that name is.
    pub(super) fn namespace_of(&self, plural: &str, name: &str) -> Option<String> {
        let group = if plural == "deployments" { "apps" } else { "" };
        let all = self.0.controller().list(group, plural);
        let found = all.iter().find(|object| object["metadata"]["name"] == name)?;
        Some(found["metadata"]["namespace"].as_str()?.to_owned())
    }
}

impl Field for Fake {
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

    async fn begin(&self, _namespace: &str) {}

    async fn play(&self, namespace: &str) {
        let controller = self.0.controller();
        for deployment in controller.list("apps", "deployments") {
            let name = deployment["metadata"]["name"].as_str().unwrap().to_owned();
            let pod = format!("{name}-abcde");
            if controller.get("", "pods", namespace, &pod).is_none() && name != "paddock-agent" {
                controller.running_pod(&deployment);
                controller.available(namespace, &name);
                let line = format!("2025-01-01T00:00:01.5Z {LINE}");
                controller.say(namespace, &pod, &line);
            }
        }
    }
}
