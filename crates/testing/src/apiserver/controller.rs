//! What controllers, kubelets and other people do: tests play them.

use serde_json::{Value, json};

use super::objects::Key;
use super::{Shared, apply, verbs};

/// Changes what the server keeps, past its rules.
pub struct Controller<'a>(pub(super) &'a Shared);

fn key(group: &str, plural: &str, namespace: &str, name: &str) -> Key {
    let [group, plural, namespace, name] = [group, plural, namespace, name].map(str::to_owned);
    Key { group, plural, namespace, name }
}

impl Controller<'_> {
    /// Makes an object, or replaces it.
    pub fn put(&self, group: &str, plural: &str, object: Value) -> Value {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let of = key(group, plural, &text("namespace"), &text("name"));
        self.0.change(|state| state.objects.put(&of, object))
    }

    /// An object, if it is there.
    pub fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        self.0.state().objects.get(&key(group, plural, namespace, name)).cloned()
    }

    /// All objects of a kind.
    pub fn list(&self, group: &str, plural: &str) -> Vec<Value> {
        self.0.state().objects.list(group, plural, None).into_iter().cloned().collect()
    }

    /// Changes an object as a merge patch would. Who is not there is not changed.
    pub fn patch(&self, group: &str, plural: &str, namespace: &str, name: &str, patch: &Value) {
        let of = key(group, plural, namespace, name);
        self.0.change(|state| {
            let Some(mut object) = state.objects.get(&of).cloned() else { return };
            apply::merge(&mut object, patch);
            state.objects.put(&of, object);
        });
    }

    /// Removes an object and what it owns.
    pub fn remove(&self, group: &str, plural: &str, namespace: &str, name: &str) {
        let of = key(group, plural, namespace, name);
        self.0.change(|state| verbs::remove(state, &of, true));
    }

    /// Makes a namespace.
    pub fn namespace(&self, name: &str) {
        let meta = json!({"name": name});
        let status = json!({"phase": "Active"});
        self.put(
            "",
            "namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": meta, "status": status}),
        );
    }

    /// Ends what is terminating.
    pub fn finish(&self, namespace: &str) {
        self.remove("", "namespaces", "", namespace);
    }

    /// A node that is ready and has so much to give.
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

    /// A pod of somebody else on a node that asks for so much.
    pub fn foreign_pod(&self, name: &str, node: &str, requests: &Value) {
        self.put("", "pods", json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": requests}}]},
            "status": {"phase": "Running"}}));
    }

    /// The pod of a Deployment or Job, made as its controller would, with that status of its one
    /// container and that phase. Its labels and spec come from the template.
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

    /// A pod that runs and answers.
    pub fn running_pod(&self, of: &Value) -> String {
        self.pod(
            of,
            "Running",
            &json!({"name": "main", "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": "2025-01-01T00:00:00Z"}}}),
        )
    }

    /// Says that a Deployment is available.
    pub fn available(&self, namespace: &str, name: &str) {
        let Some(found) = self.get("apps", "deployments", namespace, name) else { return };
        let generation = found["metadata"]["generation"].clone();
        let status = json!({"observedGeneration": generation, "replicas": 1, "readyReplicas": 1,
            "updatedReplicas": 1, "availableReplicas": 1,
            "conditions": [{"type": "Available", "status": "True"}]});
        self.patch("apps", "deployments", namespace, name, &json!({ "status": status }));
    }

    /// Has a pod say a line, with the time before it.
    pub fn say(&self, namespace: &str, pod: &str, line: &str) {
        let of = (namespace.to_owned(), pod.to_owned());
        self.0.change(|state| {
            state.logs.entry(of).or_default().push(line.to_owned());
        });
    }
}
