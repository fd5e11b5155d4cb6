//! A real apiserver. For a standalone one, controllers and kubelets are simulated.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};

use super::backend::Backend;

const NODE: &str = "paddock-test-node";
/// How long a controller may take to observe its first Deployment.
const CONTROLLER_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) struct Real {
    client: Client,
    kubeconfig: String,
    controller_timeout: Duration,
    is_standalone: AtomicBool,
}

impl Real {
    /// The Kubernetes of `PADDOCK_TEST_KUBECONFIG`.
    pub(super) async fn from_env() -> Option<Self> {
        let path = std::env::var_os("PADDOCK_TEST_KUBECONFIG").filter(|path| !path.is_empty())?;
        Some(Self::from_kubeconfig(&flattened(Path::new(&path)), CONTROLLER_TIMEOUT).await)
    }

    /// The Kubernetes of a kubeconfig, whose controllers observe a Deployment within the timeout.
    pub(super) async fn from_kubeconfig(kubeconfig: &str, controller_timeout: Duration) -> Self {
        let read = Kubeconfig::from_yaml(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        Self {
            client,
            kubeconfig: kubeconfig.into(),
            controller_timeout,
            is_standalone: AtomicBool::new(false),
        }
    }

    /// A unique namespace.
    pub(super) fn namespace() -> String {
        format!("paddock-test-{}", std::process::id())
    }

    fn api(&self, namespace: &str, group: &str, plural: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(group, "v1", "");
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        if namespace.is_empty() {
            return Api::all_with(self.client.clone(), &resource);
        }
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    async fn list(&self, namespace: &str, group: &str, plural: &str) -> Vec<DynamicObject> {
        self.api(namespace, group, plural).list(&ListParams::default()).await.unwrap().items
    }

    async fn merge(&self, api: &Api<DynamicObject>, name: &str, part: &str, patch: &Value) {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let done = match part {
            "" => api.patch(name, &params, &patch).await.map(drop),
            part => api.patch_subresource(part, name, &params, &patch).await.map(drop),
        };
        // Ignores objects deleted in the meantime.
        if let Err(error) = done {
            assert!(matches!(&error, kube::Error::Api(status) if status.code == 404), "{error}");
        }
    }

    async fn create(&self, api: &Api<DynamicObject>, object: Value) {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        if let Err(error) = api.create(&PostParams::default(), &object).await {
            assert!(matches!(&error, kube::Error::Api(status) if status.code == 409), "{error}");
        }
    }

    async fn node(&self) {
        let nodes = self.api("", "", "nodes");
        self.create(
            &nodes,
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}),
        )
        .await;
        let status = json!({"allocatable": {"cpu": "4", "memory": "8Gi"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": "played",
                "lastHeartbeatTime": null, "lastTransitionTime": null}]});
        self.merge(&nodes, NODE, "status", &json!({ "status": status })).await;
        // A node lifecycle controller would taint the new node.
        self.merge(&nodes, NODE, "", &json!({"spec": {"taints": null}})).await;
    }

    /// Creates a running pod of a Deployment.
    async fn pod(&self, namespace: &str, deployment: &DynamicObject) {
        let owner = deployment.name_any();
        let (pods, name) = (self.api(namespace, "", "pods"), format!("{owner}-abcde"));
        if pods.get_opt(&name).await.unwrap().is_some() {
            return;
        }
        let template = &deployment.data["spec"]["template"];
        let mut spec = template["spec"].clone();
        spec["nodeName"] = json!(NODE);
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": owner,
            "uid": deployment.uid(), "controller": true});
        self.create(
            &pods,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name,
            "labels": template["metadata"]["labels"], "ownerReferences": [owner]}, "spec": spec}),
        )
        .await;
        let container = json!({"name": "main", "image": "x", "imageID": "x", "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": "2025-01-01T00:00:00Z"}}});
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [container]});
        self.merge(&pods, &name, "status", &json!({ "status": status })).await;
    }

    /// Simulates the garbage collector: deletes Deployments marked for deletion, and their pods.
    async fn collect(&self, namespace: &str) {
        let deployments = self.api(namespace, "apps", "deployments");
        let all = self.list(namespace, "apps", "deployments").await;
        let stays = |name: &str| {
            all.iter()
                .any(|one| one.name_any() == name && one.metadata.deletion_timestamp.is_none())
        };
        for pod in self.list(namespace, "", "pods").await {
            let owner =
                pod.owner_references().first().map(|owner| owner.name.clone()).unwrap_or_default();
            if !stays(&owner) {
                let now = DeleteParams::default().grace_period(0);
                let _ = self.api(namespace, "", "pods").delete(&pod.name_any(), &now).await;
            }
        }
        for deleted in all.iter().filter(|one| one.metadata.deletion_timestamp.is_some()) {
            let patch = json!({"metadata": {"finalizers": null}});
            self.merge(&deployments, &deleted.name_any(), "", &patch).await;
        }
    }

    /// Simulates the namespace controller: finalizes a namespace marked for deletion.
    async fn finish(&self, namespace: &str) {
        let found = self.api("", "", "namespaces").get_opt(namespace).await.unwrap();
        let Some(found) = found.filter(|found| found.metadata.deletion_timestamp.is_some()) else {
            return;
        };
        self.collect(namespace).await;
        let body = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "resourceVersion": found.resource_version()}, "spec": {"finalizers": []}});
        let body: DynamicObject = serde_json::from_value(body).unwrap();
        let spaces = self.api("", "", "namespaces");
        let _ =
            spaces.replace_subresource("finalize", namespace, &PostParams::default(), &body).await;
    }
}

#[test]
fn kubeconfig_with_file_references_is_flattened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    for (name, text) in [("ca.crt", "a"), ("client.key", "k"), ("token", "t\n")] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let text = "apiVersion: v1\nclusters: [{name: a, cluster: {server: 'https://h', \
        certificate-authority: ca.crt}}]\nusers: [{name: a, user: {client-key: client.key, \
        client-certificate-data: eA==, tokenFile: token}}]\n";
    std::fs::write(&path, text).unwrap();
    let flat: Value = serde_json::from_str(&flattened(&path)).unwrap();
    let (cluster, user) = (&flat["clusters"][0]["cluster"], &flat["users"][0]["user"]);
    assert_eq!(cluster["certificate-authority-data"], "YQ==");
    assert_eq!(cluster.get("certificate-authority"), None);
    assert_eq!((&user["client-key-data"], &user["token"]), (&json!("aw=="), &json!("t")));
    assert_eq!(user["client-certificate-data"], "eA==");
}

/// A kubeconfig with inlined files, like `kubectl config view --flatten --raw`, as the server
/// requires.
fn flattened(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let mut config = serde_json::to_value(Kubeconfig::from_yaml(&text).unwrap()).unwrap();
    let read = |file: &str| std::fs::read(path.parent().unwrap().join(file)).unwrap();
    for (list, part) in [("clusters", "cluster"), ("users", "user")] {
        for one in config[list].as_array_mut().into_iter().flatten() {
            for name in ["certificate-authority", "client-certificate", "client-key"] {
                if let Some(file) = one[part].get(name).and_then(Value::as_str).map(str::to_owned) {
                    let data = BASE64.encode(read(&file));
                    one[part][format!("{name}-data")] = json!(data);
                    one[part].as_object_mut().unwrap().remove(name);
                }
            }
            if let Some(file) =
                one[part].get("tokenFile").and_then(Value::as_str).map(str::to_owned)
            {
                let token = String::from_utf8(read(&file)).unwrap();
                one[part]["token"] = json!(token.trim());
                one[part].as_object_mut().unwrap().remove("tokenFile");
            }
        }
    }
    config.to_string()
}

impl Backend for Real {
    fn kubeconfig(&self) -> String {
        self.kubeconfig.clone()
    }

    fn image(&self) -> String {
        std::env::var("PADDOCK_TEST_IMAGE").unwrap_or_else(|_| "busybox:1.36".into())
    }

    fn has_logs(&self) -> bool {
        !self.is_standalone.load(Ordering::Relaxed)
    }

    async fn has(&self, namespace: &str, group: &str, plural: &str, name: &str) -> bool {
        self.api(namespace, group, plural).get_opt(name).await.unwrap().is_some()
    }

    async fn detect_controllers(&self, namespace: &str) {
        let (deployments, started) =
            (self.api(namespace, "apps", "deployments"), base::monotonic());
        while started.elapsed() < self.controller_timeout {
            let agent = deployments.get("paddock-agent").await.unwrap();
            if agent.data["status"]["observedGeneration"].is_i64() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        eprintln!("standalone apiserver: simulating controllers and kubelets");
        self.is_standalone.store(true, Ordering::Relaxed);
        self.node().await;
    }

    async fn run_controllers(&self, namespace: &str) {
        if !self.is_standalone.load(Ordering::Relaxed) {
            return;
        }
        self.collect(namespace).await;
        let accounts = self.api(namespace, "", "serviceaccounts");
        for deployment in self.list(namespace, "apps", "deployments").await {
            if deployment.metadata.deletion_timestamp.is_none()
                && deployment.name_any() != "paddock-agent"
            {
                self.create(&accounts, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})).await;
                self.pod(namespace, &deployment).await;
            }
        }
        self.finish(namespace).await;
    }
}
