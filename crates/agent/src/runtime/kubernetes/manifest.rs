//! Instances: what their kind's manifests say, in namespaces of their own.

use model::agent::ReplicaId;
use serde_json::{Value, json};

use super::fault::Refusal;
use super::names::{self, AGENT, HOME};
use super::object::Place;
use super::{Kubernetes, start};
use crate::Error;

/// Where controllers find the labels of pods that they shall make.
const TEMPLATES: [&str; 2] =
    ["/spec/template/metadata", "/spec/jobTemplate/spec/template/metadata"];

impl Kubernetes {
    /// What is applied for an instance, in that order: namespaces, the right to use them, its objects.
    pub(super) async fn of_manifests(
        &self,
        id: ReplicaId,
        manifests: &[Value],
    ) -> Result<Vec<(Place, Value)>, Error> {
        let mut objects = Vec::new();
        for manifest in manifests {
            let place = self.place(manifest, &self.home).await?;
            let mut object = manifest.clone();
            object["metadata"]["namespace"] = json!(place.namespace);
            if place.namespace.is_none() {
                return Err(Error::InvalidSpec(format!(
                    "{} belongs to no namespace: what an instance is made of must.",
                    place.words()
                )));
            }
            mark(&mut object, id);
            objects.push((place, object));
        }
        let mut spaces: Vec<String> =
            objects.iter().filter_map(|(place, _)| place.namespace.clone()).collect();
        spaces.sort();
        spaces.dedup();
        let spaces = spaces.into_iter().filter(|space| *space != self.home);
        let all: Vec<_> = spaces.flat_map(|space| self.space(id, &space)).chain(objects).collect();
        Ok(all)
    }

    /// A namespace, and the agent's rights there if it is told to take some.
    fn space(&self, id: ReplicaId, name: &str) -> Vec<(Place, Value)> {
        let mut labels = names::labels(id);
        labels[HOME] = json!(self.home);
        labels["pod-security.kubernetes.io/enforce"] = json!("baseline");
        let place = Place {
            namespace: None,
            ..Place::known("", "v1", "Namespace", "namespaces", "", name)
        };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        let mut all = vec![(place, object)];
        if let Some(role) = &self.options.instance_role {
            let rbac = "rbac.authorization.k8s.io";
            let place = Place::known(rbac, "v1", "RoleBinding", "rolebindings", name, AGENT);
            all.push((
                place,
                json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
                "metadata": {"name": AGENT, "namespace": name, "labels": names::labels(id)},
                "subjects": [{"kind": "ServiceAccount", "name": AGENT, "namespace": self.home}],
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role}}),
            ));
        }
        all
    }

    /// Refuses to touch what somebody else has made. What is on its way out is waited for.
    pub(super) async fn check_ours(&self, id: ReplicaId, place: &Place) -> Result<(), Refusal> {
        let Some(found) = self.get(place).await? else { return Ok(()) };
        let labels = found.metadata.labels.unwrap_or_default();
        if labels.get(names::REPLICA) == Some(&names::label(id)) {
            if found.metadata.deletion_timestamp.is_some() {
                self.until_gone(id, place).await?;
            }
            return Ok(());
        }
        let text = format!(
            "There is a {} already that belongs to something else: remove it, or choose another name.",
            place.words()
        );
        Err(Refusal { code: 409, text })
    }
}

/// Writes whose it is on an object and on the pods that it makes.
fn mark(object: &mut Value, id: ReplicaId) {
    start::add_labels(&mut object["metadata"], id);
    for template in TEMPLATES {
        if let Some(meta) = object.pointer_mut(template) {
            start::add_labels(meta, id);
        }
    }
}
