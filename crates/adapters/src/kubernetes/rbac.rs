//! The agent's permissions as RBAC rules: no more than it needs.
//!
//! The agent reads what it watches in all namespaces. It writes in its own namespace and in instance
//! namespaces, which the server creates and binds the agent's role in. The agent itself binds no
//! roles, so it can't extend its rights. Secrets are not read anywhere else.

use serde_json::{Value, json};

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

/// Read access in all namespaces: nodes and pods for free capacity, the others for instance health.
pub(super) fn everywhere(custom: &[String]) -> Value {
    let mut rules = vec![
        json!({"apiGroups": [""], "resources": ["nodes", "pods", "services"], "verbs": READ}),
        json!({"apiGroups": ["apps"], "resources": ["*"], "verbs": READ}),
        json!({"apiGroups": ["batch"], "resources": ["*"], "verbs": READ}),
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": READ}),
    ];
    if !custom.is_empty() {
        rules.push(json!({"apiGroups": custom, "resources": ["*"], "verbs": READ}));
    }
    json!(rules)
}

/// Write access for deployments and instances, including the kinds of operators.
pub(super) fn inside(custom: &[String]) -> Value {
    let core = [
        "configmaps",
        "endpoints",
        "persistentvolumeclaims",
        "pods",
        "secrets",
        "serviceaccounts",
        "services",
    ];
    let mut rules = vec![
        json!({"apiGroups": [""], "resources": core, "verbs": WRITE}),
        json!({"apiGroups": [""], "resources": ["events", "pods/log"], "verbs": READ}),
        json!({"apiGroups": ["apps"],
            "resources": ["daemonsets", "deployments", "replicasets", "statefulsets"], "verbs": WRITE}),
        json!({"apiGroups": ["batch"], "resources": ["cronjobs", "jobs"], "verbs": WRITE}),
        json!({"apiGroups": ["networking.k8s.io"], "resources": ["ingresses", "networkpolicies"],
            "verbs": WRITE}),
        json!({"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": WRITE}),
        json!({"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"],
            "verbs": WRITE}),
    ];
    if !custom.is_empty() {
        rules.push(json!({"apiGroups": custom, "resources": ["*"], "verbs": WRITE}));
    }
    json!(rules)
}

/// Rights in the namespace of an instance: in addition, to label and to delete that namespace. For
/// namespaces, the namespace of a role binding is the one that a request names.
pub(super) fn instance(custom: &[String]) -> Value {
    let mut rules = inside(custom);
    if let Some(rules) = rules.as_array_mut() {
        let verbs = ["delete", "get", "patch", "update"];
        rules.push(json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": verbs}));
    }
    rules
}

/// Whether it is a group of custom resources. Kubernetes' own groups have no dot, or end with
/// `.k8s.io`.
pub(super) fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}
