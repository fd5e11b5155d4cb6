//! A real apiserver. One that stands alone has no controllers and no kubelets: their part is played.

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

use super::field::Field;

const NODE: &str = "paddock-test-node";
/// How long a controller may take to look at its first Deployment.
const SEEN_WITHIN: Duration = Duration::from_secs(20);

pub(super) struct Real {
    client: Client,
    kubeconfig: String,
    seen_within: Duration,
    is_alone: AtomicBool,
}

impl Real {
    /// The one that the environment names.
    pub(super) async fn find() -> Option<Self> {
        let path = std::env::var_os("PADDOCK_TEST_KUBECONFIG").filter(|path| !path.is_empty())?;
        Some(Self::of(&flattened(Path::new(&path)), SEEN_WITHIN).await)
    }

    /// The one of that kubeconfig; its controllers have looked at a Deployment within that time.
    pub(super) async fn of(kubeconfig: &str, seen_within: Duration) -> Self {
        let read = Kubeconfig::from_yaml(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        Self {
            client,
            kubeconfig: kubeconfig.into(),
            seen_within,
            is_alone: AtomicBool::new(false),
        }
    }

    /// A namespace of its own.
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
        // What has gone meanwhile need not be changed.
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
        // Who watches over nodes elsewhere would take these for new ones.
        self.merge(&nodes, NODE, "", &json!({"spec": {"taints": null}})).await;
    }

    /// A pod of a Deployment that runs.
    async fn pod(&self, namespace: &str, of: &DynamicObject) {
        let (pods, name) = (self.api(namespace, "", "pods"), format!("{}-abcde", of.name_any()));
        if pods.get_opt(&name).await.unwrap().is_some() {
            return;
        }
        let template = &of.data["spec"]["template"];
        let mut spec = template["spec"].clone();
        spec["nodeName"] = json!(NODE);
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": of.name_any(),
            "uid": of.uid(), "controller": true});
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

    /// What a garbage collector does: who is on its way out goes, and its pods with it.
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
        for gone in all.iter().filter(|one| one.metadata.deletion_timestamp.is_some()) {
            let patch = json!({"metadata": {"finalizers": null}});
            self.merge(&deployments, &gone.name_any(), "", &patch).await;
        }
    }

    /// What a namespace's controller does at its end.
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
fn a_kubeconfig_that_names_files_is_flattened() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("config");
    for (name, text) in [("ca.crt", "a"), ("client.key", "k"), ("token", "t\n")] {
        std::fs::write(place.path().join(name), text).unwrap();
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

/// A kubeconfig with what its files hold in it, as `kubectl config view --flatten --raw` shows it: the
/// server takes no other.
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

impl Field for Real {
    fn kubeconfig(&self) -> String {
        self.kubeconfig.clone()
    }

    fn image(&self) -> String {
        std::env::var("PADDOCK_TEST_IMAGE").unwrap_or_else(|_| "busybox:1.36".into())
    }

    fn has_logs(&self) -> bool {
        !self.is_alone.load(Ordering::Relaxed)
    }

    async fn has(&self, namespace: &str, group: &str, plural: &str, name: &str) -> bool {
        self.api(namespace, group, plural).get_opt(name).await.unwrap().is_some()
    }

    /// Does somebody look at Deployments?
    async fn begin(&self, namespace: &str) {
        let (deployments, started) =
            (self.api(namespace, "apps", "deployments"), base::monotonic());
        while started.elapsed() < self.seen_within {
            let agent = deployments.get("paddock-agent").await.unwrap();
            if agent.data["status"]["observedGeneration"].is_i64() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        eprintln!("the apiserver stands alone: controllers and kubelets are played");
        self.is_alone.store(true, Ordering::Relaxed);
        self.node().await;
    }

    async fn play(&self, namespace: &str) {
        if !self.is_alone.load(Ordering::Relaxed) {
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
