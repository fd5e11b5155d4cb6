//! The objects that Paddock applies to a Kubernetes cluster.

use model::cluster::{Kubernetes, PULL_SECRET};
use model::operation::Subject;
use model::{Quantity, Resources, Secret};
use port::Access;
use serde_json::{Value, json};

use super::Target;
use super::names::{self, AGENT, CLUSTER, HOME, MADE, MANAGED_BY, NAME, PULL, QUOTA};
use super::rbac;

/// The resource requests of the agent.
const AGENT_CPU: Quantity = Quantity::from_milli(50);
const AGENT_RAM: Quantity = Quantity::whole(64 << 20);
const RBAC: &str = "rbac.authorization.k8s.io";
/// An unprivileged user and group.
const NOBODY: u32 = 65532;

/// An object, and its API resource: group, version, plural.
pub(super) struct Part {
    pub(super) at: (&'static str, &'static str, &'static str),
    pub(super) is_inside: bool,
    pub(super) object: Value,
}

impl Part {
    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Its kind and name, for messages.
    pub(super) fn display_name(&self) -> String {
        format!("{} {}", self.object["kind"].as_str().unwrap_or_default(), self.name())
    }
}

/// The labels of all objects.
pub(super) fn labels(id: Subject) -> Value {
    json!({MANAGED_BY.0: MANAGED_BY.1, CLUSTER: id.to_string()})
}

/// The namespace. One that Paddock creates enforces the pod security standard `baseline`.
pub(super) fn namespace(id: Subject, name: &str, is_created: bool) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": labels(id)}});
    if is_created {
        object["metadata"]["annotations"] = json!({MADE: "true"});
        object["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = json!("baseline");
    }
    object
}

impl Target<'_> {
    /// All objects except the namespace, in the order of application.
    pub(super) fn parts(&self, agent: &Access, custom: &[String]) -> Vec<Part> {
        let mut parts = self.quota();
        parts.extend(self.roles(custom));
        parts.push(self.token(agent));
        parts.extend(self.pull_secret());
        parts.push(self.agent(agent));
        parts
    }

    fn part(
        &self,
        api_version: &'static str,
        kind: &str,
        plural: &'static str,
        name: &str,
        rest: Value,
    ) -> Part {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_inside = !kind.starts_with("Cluster");
        let mut object = rest;
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": name, "labels": labels(self.task.id)});
        if is_inside {
            object["metadata"]["namespace"] = json!(self.settings.namespace);
        }
        Part { at: (group, version, plural), is_inside, object }
    }

    /// The quota, increased by the agent's requests, with minimal default requests.
    fn quota(&self) -> Vec<Part> {
        let hard = hard(&self.settings);
        if hard.as_object().is_none_or(serde_json::Map::is_empty) {
            return Vec::new();
        }
        let least = json!({"type": "Container", "defaultRequest": {"cpu": "1m", "memory": "1Mi"}});
        let spec = json!({"spec": {"limits": [least]}});
        vec![
            self.part("v1", "LimitRange", "limitranges", QUOTA, spec),
            self.part(
                "v1",
                "ResourceQuota",
                "resourcequotas",
                QUOTA,
                json!({"spec": {"hard": hard}}),
            ),
        ]
    }

    fn roles(&self, custom: &[String]) -> Vec<Part> {
        let (id, version) = (self.task.id, "rbac.authorization.k8s.io/v1");
        let (all, instances) = (names::everywhere(id), names::instances(id));
        let subjects = json!([{"kind": "ServiceAccount", "name": AGENT, "namespace": self.settings.namespace}]);
        let bound = |kind: &str, name: &str| json!({"subjects": subjects, "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name}});
        let role = |rules: Value| json!({ "rules": rules });
        vec![
            self.part("v1", "ServiceAccount", "serviceaccounts", AGENT, json!({})),
            self.part(
                version,
                "ClusterRole",
                "clusterroles",
                &instances,
                role(rbac::instance(custom)),
            ),
            self.part(version, "ClusterRole", "clusterroles", &all, role(rbac::everywhere(custom))),
            self.part(
                version,
                "ClusterRoleBinding",
                "clusterrolebindings",
                &all,
                bound("ClusterRole", &all),
            ),
            self.part(version, "Role", "roles", AGENT, role(rbac::inside(custom))),
            self.part(version, "RoleBinding", "rolebindings", AGENT, bound("Role", AGENT)),
        ]
    }

    fn token(&self, agent: &Access) -> Part {
        let data = json!({"token": encoded(&agent.token), "server": encoded(&Secret::new(&*agent.server))});
        self.part("v1", "Secret", "secrets", AGENT, json!({"type": "Opaque", "data": data}))
    }

    fn pull_secret(&self) -> Option<Part> {
        let data = json!({".dockerconfigjson": encoded(self.task.persisted.get(PULL_SECRET)?)});
        let rest = json!({"type": "kubernetes.io/dockerconfigjson", "data": data});
        Some(self.part("v1", "Secret", "secrets", PULL, rest))
    }

    /// The agent's Deployment. Only one agent may run at a time, hence `Recreate`.
    fn agent(&self, agent: &Access) -> Part {
        let labels =
            json!({NAME: AGENT, MANAGED_BY.0: MANAGED_BY.1, CLUSTER: self.task.id.to_string()});
        let mut spec = json!({
            "serviceAccountName": AGENT,
            "enableServiceLinks": false,
            "securityContext": {"runAsNonRoot": true, "runAsUser": NOBODY, "runAsGroup": NOBODY,
                "fsGroup": NOBODY, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [self.container(agent)],
            "volumes": [
                {"name": "token", "secret": {"secretName": AGENT}},
                {"name": "data", "emptyDir": {}},
            ],
        });
        if self.task.persisted.contains_key(PULL_SECRET) {
            spec["imagePullSecrets"] = json!([{ "name": PULL }]);
        }
        self.part(
            "apps/v1",
            "Deployment",
            "deployments",
            AGENT,
            json!({"spec": {
                "replicas": 1, "minReadySeconds": 2, "revisionHistoryLimit": 1,
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": {NAME: AGENT, CLUSTER: self.task.id.to_string()}},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            }}),
        )
    }

    fn container(&self, agent: &Access) -> Value {
        let mut env = vec![
            json!({"name": "PADDOCK_KUBERNETES_NAMESPACE", "value": self.settings.namespace}),
            json!({"name": "PADDOCK_KUBERNETES_INSTANCE_ROLE", "value": names::instances(self.task.id)}),
        ];
        if self.task.persisted.contains_key(PULL_SECRET) {
            env.push(json!({"name": "PADDOCK_KUBERNETES_PULL_SECRET", "value": PULL}));
        }
        json!({
            "name": "agent", "image": agent.image,
            "args": ["agent", "--runtime", "kubernetes", "--server", agent.server,
                "--token-file", "/etc/paddock/token", "--data-dir", "/data"],
            "env": env,
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
            "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [
                {"name": "token", "mountPath": "/etc/paddock", "readOnly": true},
                {"name": "data", "mountPath": "/data"},
            ],
        })
    }
}

/// The label selector of instance namespaces.
pub(super) fn instance_selector(settings: &Kubernetes) -> String {
    format!("{HOME}={}", settings.namespace)
}

fn encoded(secret: &Secret) -> String {
    data_encoding::BASE64.encode(secret.reveal().as_bytes())
}

/// The quota as a ResourceQuota's `hard`. Resources unknown to Kubernetes are omitted.
fn hard(settings: &Kubernetes) -> Value {
    let mut hard = serde_json::Map::new();
    for (kind, amount) in with_agent(&settings.quota).iter() {
        let (name, amount) = match kind {
            "cpu" => ("requests.cpu".to_owned(), format!("{}m", amount.milli())),
            "ram" => ("requests.memory".to_owned(), whole(amount)),
            "gpu" => ("requests.nvidia.com/gpu".to_owned(), whole(amount)),
            "pods" => ("pods".to_owned(), whole(amount)),
            other if other.contains('/') => (format!("requests.{other}"), whole(amount)),
            _ => continue,
        };
        hard.insert(name, json!(amount));
    }
    Value::Object(hard)
}

/// Users count their own workloads; the agent comes on top.
fn with_agent(quota: &Resources) -> Resources {
    let more = |kind: &str, amount: Quantity| match kind {
        "cpu" => amount.plus(AGENT_CPU),
        "ram" => amount.plus(AGENT_RAM),
        "pods" => amount.plus(Quantity::whole(1)),
        _ => amount,
    };
    quota.iter().map(|(kind, amount)| (kind.to_owned(), more(kind, amount))).collect()
}

fn whole(amount: Quantity) -> String {
    ((amount.milli() + 999) / 1000).to_string()
}
