//! What the agent may do, as RBAC writes it: no more than it needs.
//!
//! It reads what it has to watch everywhere; it writes in its own namespace, and in namespaces of
//! instances, which it makes and gives itself the role for. A role for those alone can't be written:
//! RBAC knows no namespaces that are yet to come. Secrets are read nowhere else.

use serde_json::{Value, json};

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

/// What is read everywhere: nodes and pods for what is free, the rest for how instances are doing.
pub(super) fn everywhere(custom: &[String], instances: &str) -> Value {
    let mut rules = vec![
        json!({"apiGroups": [""], "resources": ["nodes", "pods", "services"], "verbs": READ}),
        json!({"apiGroups": ["apps"], "resources": ["*"], "verbs": READ}),
        json!({"apiGroups": ["batch"], "resources": ["*"], "verbs": READ}),
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": WRITE}),
        json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings"],
            "verbs": ["create", "get", "patch"]}),
        json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
            "resourceNames": [instances], "verbs": ["bind"]}),
    ];
    if !custom.is_empty() {
        rules.push(json!({"apiGroups": custom, "resources": ["*"], "verbs": READ}));
    }
    json!(rules)
}

/// What is made for deployments and instances, and the kinds that operators have brought.
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

/// Is it a group of kinds that somebody has added? Kubernetes' own have no dot, or its domain.
pub(super) fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}
