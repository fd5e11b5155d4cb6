//! Namespaces of instances, and the agent's role in them.
//!
//! The server creates both. The agent has no right to bind roles: an attacker who takes over its pod
//! gets no access to other namespaces.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::Patch;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use model::ReplicaId;
use port::Fault;
use serde_json::{Value, json};

use super::Target;
use super::fault::Doing;
use super::names::{self, AGENT, HOME, MANAGED_BY, REPLICA};
use super::prepare::params;

const RBAC: &str = "rbac.authorization.k8s.io";

impl Target<'_> {
    /// Prepares namespaces. One that exists and belongs to something else is left alone: the agent
    /// reports it.
    pub(super) async fn admit(&self, wanted: &BTreeMap<String, ReplicaId>) -> Result<(), Fault> {
        for (name, replica) in wanted {
            if self.admit_namespace(name, *replica).await? {
                self.bind_role(name, *replica).await?;
            }
        }
        Ok(())
    }

    /// Creates a namespace; returns whether it is the instance's.
    async fn admit_namespace(&self, name: &str, replica: ReplicaId) -> Result<bool, Fault> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let what = format!("create the namespace {name}");
        let found = api.get_opt(name).await.doing(self, &what)?;
        if let Some(found) = &found {
            let labels = found.metadata.labels.as_ref();
            let owner = labels.and_then(|labels| labels.get(REPLICA));
            let is_leaving = found.metadata.deletion_timestamp.is_some();
            return if is_leaving && owner == Some(&label(replica)) {
                Err(Fault::Unavailable(format!("namespace {name} is being deleted")))
            } else {
                Ok(owner == Some(&label(replica)))
            };
        }
        let mut labels = instance_labels(replica);
        labels[HOME] = json!(self.settings.namespace);
        labels["pod-security.kubernetes.io/enforce"] = json!("baseline");
        let object = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": labels}});
        let object = self.fenced(object, None)?;
        api.patch(name, &params(), &Patch::Apply(&object)).await.doing(self, &what)?;
        Ok(true)
    }

    /// Binds the agent's role in the namespace of an instance.
    async fn bind_role(&self, namespace: &str, replica: ReplicaId) -> Result<(), Fault> {
        let kind = GroupVersionKind::gvk(RBAC, "v1", "RoleBinding");
        let resource = ApiResource::from_gvk_with_plural(&kind, "rolebindings");
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource);
        let what = format!("bind the agent's role in namespace {namespace}");
        let found = api.get_metadata_opt(AGENT).await.doing(self, &what)?;
        let object = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
            "metadata": {"name": AGENT, "namespace": namespace,
                "labels": instance_labels(replica)},
            "subjects": [{"kind": "ServiceAccount", "name": AGENT,
                "namespace": self.settings.namespace}],
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole",
                "name": names::instances(self.task.id)}});
        let object = self.fenced(object, found.as_ref().map(|found| &found.metadata))?;
        api.patch(AGENT, &params(), &Patch::Apply(&object)).await.doing(self, &what).map(drop)
    }
}

fn instance_labels(replica: ReplicaId) -> Value {
    json!({MANAGED_BY.0: MANAGED_BY.1, REPLICA: label(replica)})
}

/// The label of a replica's objects, as agents write it.
fn label(id: ReplicaId) -> String {
    format!("{}.{}", id.deployment, id.number)
}
