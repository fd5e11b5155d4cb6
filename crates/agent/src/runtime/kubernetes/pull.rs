//! How the pods of a replica get their image.
//!
//! An organization's own registry credentials are a Secret of the replica, which only its pods
//! reference and which is deleted with them. They replace the cluster's pull secret, as they do on
//! the other runtimes.

use kube::core::DynamicObject;
use model::agent::ReplicaId;
use model::credential::PullCredentials;
use model::deployment::Spec;
use serde_json::{Value, json};

use super::Kubernetes;
use super::fault::Refusal;
use super::names;
use super::object::ObjectRef;

/// Docker Hub, as images name it and as kubelets look up its credentials.
const DOCKER_HUB: (&str, &str) = ("docker.io", "https://index.docker.io/v1/");

/// Where a pod's image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PullSource {
    /// The Secret with credentials, if any.
    pub(super) secret: Option<String>,
    /// The pull policy.
    pub(super) policy: String,
}

impl PullSource {
    /// Source of a new workload, or of the one that exists: a change would restart its pods.
    pub(super) fn new(
        id: ReplicaId,
        spec: &Spec,
        cluster_secret: Option<&str>,
        existing: Option<&DynamicObject>,
    ) -> Self {
        let own = names::of_pull_secret(id);
        let pod = existing.map(|found| &found.data["spec"]["template"]["spec"]);
        let has_own = match pod {
            Some(pod) => pod["imagePullSecrets"][0]["name"] == own,
            None => spec.pull_credentials().is_some(),
        };
        let secret = if has_own { Some(own) } else { cluster_secret.map(str::to_owned) };
        // The images on a node are shared by all pods. What was pulled with these credentials is not
        // started without asking the registry again.
        let policy = pod.and_then(|pod| pod["containers"][0]["imagePullPolicy"].as_str());
        let policy = match pod {
            Some(_) => policy.unwrap_or("IfNotPresent"),
            None if has_own => "Always",
            None => "IfNotPresent",
        };
        Self { secret, policy: policy.to_owned() }
    }
}

/// The Secret with an organization's credentials of one registry. Never logged.
fn manifest(id: ReplicaId, own: &PullCredentials) -> Value {
    let (hub, key) = DOCKER_HUB;
    let registry = if own.registry == hub { key } else { &own.registry };
    let PullCredentials { username, password, .. } = own;
    let auth = data_encoding::BASE64.encode(format!("{username}:{password}").as_bytes());
    let entry = json!({"username": username, "password": password, "auth": auth});
    let config = json!({"auths": {registry: entry}}).to_string();
    json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": names::of_pull_secret(id), "labels": names::labels(id)},
        "data": {".dockerconfigjson": data_encoding::BASE64.encode(config.as_bytes())}})
}

impl Kubernetes {
    pub(super) fn pull_secret_ref(&self, id: ReplicaId) -> ObjectRef {
        let (namespace, name) = (&self.agent_namespace, names::of_pull_secret(id));
        ObjectRef::new("", "v1", "Secret", "secrets", namespace, &name)
    }

    /// Creates a replica's pull secret, or replaces the credentials in it. Its record names it.
    pub(super) async fn apply_pull_secret(
        &self,
        id: ReplicaId,
        own: &PullCredentials,
    ) -> Result<(), Refusal> {
        let secret = self.pull_secret_ref(id);
        self.check_ours(id, &secret).await?;
        self.apply(&secret, &manifest(id, own)).await.map(drop)
    }

    /// Deletes a replica's pull secret: its organization removed the credentials.
    pub(super) async fn remove_pull_secret(&self, id: ReplicaId) -> Result<(), Refusal> {
        let secret = self.pull_secret_ref(id);
        let Some(found) = self.get(&secret).await? else { return Ok(()) };
        let labels = found.metadata.labels.unwrap_or_default();
        if labels.get(names::REPLICA) == Some(&names::label(id)) {
            self.delete(&secret).await?;
        }
        Ok(())
    }
}
