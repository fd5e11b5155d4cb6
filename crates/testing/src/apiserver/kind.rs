//! Kinds of objects: built-in ones and those that a test defines.

/// A kind of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Its API group; empty for the core group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its name in manifests.
    pub kind: String,
    /// Its plural name in paths.
    pub plural: String,
    /// Whether its objects are namespaced.
    pub is_namespaced: bool,
}

impl Kind {
    /// A namespaced kind.
    pub fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
        Self { group, version, kind, plural, is_namespaced: true }
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

const NAMESPACED: [(&str, &str, &str, &str); 18] = [
    ("", "v1", "Pod", "pods"),
    ("", "v1", "Service", "services"),
    ("", "v1", "Secret", "secrets"),
    ("", "v1", "ConfigMap", "configmaps"),
    ("", "v1", "ServiceAccount", "serviceaccounts"),
    ("", "v1", "ResourceQuota", "resourcequotas"),
    ("", "v1", "LimitRange", "limitranges"),
    ("", "v1", "Event", "events"),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "ReplicaSet", "replicasets"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("apps", "v1", "DaemonSet", "daemonsets"),
    ("batch", "v1", "Job", "jobs"),
    ("batch", "v1", "CronJob", "cronjobs"),
    ("networking.k8s.io", "v1", "Ingress", "ingresses"),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
];

const CLUSTER_SCOPED: [(&str, &str, &str, &str); 5] = [
    ("", "v1", "Namespace", "namespaces"),
    ("", "v1", "Node", "nodes"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"),
    ("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
];

/// The built-in kinds.
pub(super) fn built_in() -> Vec<Kind> {
    let namespaced =
        NAMESPACED.map(|(group, version, kind, plural)| Kind::new(group, version, kind, plural));
    let others = CLUSTER_SCOPED.map(|(group, version, kind, plural)| Kind {
        is_namespaced: false,
        ..Kind::new(group, version, kind, plural)
    });
    namespaced.into_iter().chain(others).collect()
}
