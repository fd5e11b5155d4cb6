//! Plays controllers, kubelets and other clients.

use serde_json::{Value, json};

use super::objects::Key;
use super::{Shared, apply, verbs};

/// Changes objects directly, without the server's checks.
pub struct Controller<'a>(pub(super) &'a Shared);

fn key(group: &str, plural: &str, namespace: &str, name: &str) -> Key {
    let [group, plural, namespace, name] = [group, plural, namespace, name].map(str::to_owned);
    Key { group, plural, namespace, name }
}

impl Controller<'_> {
    /// Creates or replaces an object.
    pub fn put(&self, group: &str, plural: &str, object: Value) -> Value {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let of = key(group, plural, &text("namespace"), &text("name"));
        self.0.change(|state| state.objects.put(&of, object))
    }

    /// An object, if it exists.
    pub fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        self.0.state().objects.get(&key(group, plural, namespace, name)).cloned()
    }

    /// All objects of a kind.
    pub fn list(&self, group: &str, plural: &str) -> Vec<Value> {
        self.0.state().objects.list(group, plural, None).into_iter().cloned().collect()
    }

    /// Applies a merge patch to an object, if it exists.
    pub fn patch(&self, group: &str, plural: &str, namespace: &str, name: &str, patch: &Value) {
        let of = key(group, plural, namespace, name);
        self.0.change(|state| {
            let Some(mut object) = state.objects.get(&of).cloned() else { return };
            apply::merge(&mut object, patch);
            state.objects.put(&of, object);
        });
    }

    /// Deletes an object and its dependents.
    pub fn remove(&self, group: &str, plural: &str, namespace: &str, name: &str) {
        let of = key(group, plural, namespace, name);
        self.0.change(|state| verbs::remove(state, &of, true));
    }

    /// Creates an active namespace.
    pub fn namespace(&self, name: &str) {
        let meta = json!({"name": name});
        let status = json!({"phase": "Active"});
        self.put(
            "",
            "namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": meta, "status": status}),
        );
    }

    /// Completes the deletion of a namespace.
    pub fn finish(&self, namespace: &str) {
        self.remove("", "namespaces", "", namespace);
    }

    /// Creates a ready node with this allocatable capacity.
    pub fn node(&self, name: &str, allocatable: &Value) {
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let labels = json!({"kubernetes.io/hostname": name});
        self.put(
            "",
            "nodes",
            json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels}, "spec": {},
            "status": {"allocatable": allocatable, "conditions": ready}}),
        );
    }

    /// Creates a pod that Paddock does not manage, with these requests.
    pub fn unmanaged_pod(&self, name: &str, node: &str, requests: &Value) {
        self.put("", "pods", json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": requests}}]},
            "status": {"phase": "Running"}}));
    }

    /// Creates the pod of a Deployment or Job with this phase and this status of its container.
    /// Labels and spec come from the template.
    pub fn pod(&self, of: &Value, phase: &str, container: &Value) -> String {
        let owner = of["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = of["metadata"]["namespace"].as_str().unwrap_or_default();
        let name = format!("{owner}-abcde");
        let template = &of["spec"]["template"];
        let mut spec = template["spec"].clone();
        if let Some(node) = spec.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0") {
            spec["nodeName"] = node.clone();
        }
        let is_ready = container["ready"] == true;
        let conditions =
            json!([{"type": "Ready", "status": if is_ready { "True" } else { "False" }}]);
        let owners = json!([{"apiVersion": of["apiVersion"], "kind": of["kind"], "name": owner,
            "uid": of["metadata"]["uid"], "controller": true}]);
        self.put("", "pods", json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": template["metadata"]["labels"],
                "ownerReferences": owners},
            "spec": spec,
            "status": {"phase": phase, "conditions": conditions, "podIP": "10.1.0.7", "containerStatuses": [container]}}));
        name
    }

    /// Creates a running, ready pod.
    pub fn running_pod(&self, of: &Value) -> String {
        self.pod(
            of,
            "Running",
            &json!({"name": "main", "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": "2025-01-01T00:00:00Z"}}}),
        )
    }

    /// Makes a Deployment available.
    pub fn available(&self, namespace: &str, name: &str) {
        let Some(found) = self.get("apps", "deployments", namespace, name) else { return };
        let generation = found["metadata"]["generation"].clone();
        let status = json!({"observedGeneration": generation, "replicas": 1, "readyReplicas": 1,
            "updatedReplicas": 1, "availableReplicas": 1,
            "conditions": [{"type": "Available", "status": "True"}]});
        self.patch("apps", "deployments", namespace, name, &json!({ "status": status }));
    }

    /// Appends a line to a pod's log, beginning with its time.
    pub fn log(&self, namespace: &str, pod: &str, line: &str) {
        let of = (namespace.to_owned(), pod.to_owned());
        self.0.change(|state| {
            state.logs.entry(of).or_default().push(line.to_owned());
        });
    }
}
