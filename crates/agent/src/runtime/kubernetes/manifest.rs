//! Objects of instances: their kind's manifests, in separate namespaces.

use model::agent::ReplicaId;
use serde_json::{Value, json};

use super::fault::Refusal;
use super::names::{self, HOME_NAMESPACE};
use super::object::ObjectRef;
use super::{Kubernetes, start};
use crate::Error;

/// Pod templates in controllers.
const TEMPLATES: [&str; 2] =
    ["/spec/template/metadata", "/spec/jobTemplate/spec/template/metadata"];

impl Kubernetes {
    /// The objects of an instance, in order: namespaces, manifests.
    pub(super) async fn instance_objects(
        &self,
        id: ReplicaId,
        manifests: &[Value],
    ) -> Result<Vec<(ObjectRef, Value)>, Error> {
        let mut objects = Vec::new();
        for manifest in manifests {
            let object_ref = self.resolve(manifest, &self.agent_namespace).await?;
            let mut object = manifest.clone();
            object["metadata"]["namespace"] = json!(object_ref.namespace);
            if object_ref.namespace.is_none() {
                return Err(Error::InvalidSpec(format!(
                    "{object_ref} has no namespace: objects of an instance must be namespaced."
                )));
            }
            label(&mut object, id);
            objects.push((object_ref, object));
        }
        let mut namespaces: Vec<String> =
            objects.iter().filter_map(|(object_ref, _)| object_ref.namespace.clone()).collect();
        namespaces.sort();
        namespaces.dedup();
        let namespaces = namespaces.into_iter().filter(|name| *name != self.agent_namespace);
        Ok(namespaces.map(|name| self.namespace_object(id, &name)).chain(objects).collect())
    }

    /// A namespace. With an instance role, the server creates it and binds that role in it; the
    /// agent must not bind roles.
    fn namespace_object(&self, id: ReplicaId, name: &str) -> (ObjectRef, Value) {
        let mut labels = names::labels(id);
        labels[HOME_NAMESPACE] = json!(self.agent_namespace);
        labels["pod-security.kubernetes.io/enforce"] = json!("baseline");
        let object_ref = ObjectRef {
            namespace: None,
            ..ObjectRef::new("", "v1", "Namespace", "namespaces", "", name)
        };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        (object_ref, object)
    }

    /// Rejects objects of other owners. Waits for an object that is terminating.
    pub(super) async fn check_ours(
        &self,
        id: ReplicaId,
        object: &ObjectRef,
    ) -> Result<(), Refusal> {
        let Some(found) = self.get(object).await? else { return Ok(()) };
        let labels = found.metadata.labels.unwrap_or_default();
        if labels.get(names::REPLICA) == Some(&names::label(id)) {
            if found.metadata.deletion_timestamp.is_some() {
                self.until_deleted(id, object).await?;
            }
            return Ok(());
        }
        let message =
            format!("{object} exists and has another owner: remove it, or choose another name.");
        Err(Refusal { code: 409, message })
    }
}

/// Labels an object and the pods that it creates.
fn label(object: &mut Value, id: ReplicaId) {
    start::add_labels(&mut object["metadata"], id);
    for template in TEMPLATES {
        if let Some(meta) = object.pointer_mut(template) {
            start::add_labels(meta, id);
        }
    }
}
