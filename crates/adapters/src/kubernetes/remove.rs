//! Deletes all objects of a cluster: the agent first, so that it creates no more.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use port::{Fault, Progress};
use serde_json::json;

use super::Target;
use super::fault::{Doing, is_missing};
use super::names::{AGENT, CLUSTER, FENCE, MADE, MANAGED_BY, PULL, QUOTA, REPLICA};
use super::parts::instance_selector;
use super::prepare::cluster_wide;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Our objects in a namespace, in the order of deletion.
const INSIDE: [((&str, &str, &str), &str); 7] = [
    (("", "v1", "secrets"), AGENT),
    (("", "v1", "secrets"), PULL),
    ((RBAC, "v1", "rolebindings"), AGENT),
    ((RBAC, "v1", "roles"), AGENT),
    (("", "v1", "serviceaccounts"), AGENT),
    (("", "v1", "resourcequotas"), QUOTA),
    (("", "v1", "limitranges"), QUOTA),
];

/// The kinds of objects that agents create for deployments.
const WORKLOADS: [(&str, &str, &str); 4] = [
    ("apps", "v1", "deployments"),
    ("batch", "v1", "jobs"),
    ("", "v1", "services"),
    ("", "v1", "secrets"),
];

impl Target<'_> {
    pub(super) async fn remove(&self) -> Result<Progress<()>, Fault> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let name = &self.settings.namespace;
        let found = namespaces.get_opt(name).await.doing(self, "read its namespace")?;
        let found = found.filter(|found| self.is_ours(found));
        if found.is_some() && self.delete_ours(("apps", "v1", "deployments"), true, AGENT).await? {
            return Ok(Progress::running("Stopping the agent."));
        }
        if let Some(wait) = self.delete_instances(&namespaces).await? {
            return Ok(Progress::running(wait));
        }
        for (plural, name) in cluster_wide(self.task.id) {
            self.delete_ours((RBAC, "v1", plural), false, &name).await?;
        }
        let Some(found) = found else { return Ok(Progress::Done(())) };
        let annotations = found.metadata.annotations.as_ref();
        if annotations.is_some_and(|all| all.contains_key(MADE)) {
            return self.delete_namespace(&namespaces, &found).await;
        }
        self.release_namespace(&namespaces).await
    }

    fn is_ours(&self, found: &Namespace) -> bool {
        let labels = found.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(CLUSTER)) == Some(&self.task.id.to_string())
    }

    async fn delete_namespace(
        &self,
        namespaces: &Api<Namespace>,
        found: &Namespace,
    ) -> Result<Progress<()>, Fault> {
        let name = &self.settings.namespace;
        if found.metadata.deletion_timestamp.is_none() {
            let params = self.fenced_delete(DeleteParams::default(), &found.metadata)?;
            delete(self, namespaces, name, &params).await?;
        }
        let left = namespaces.get_opt(name).await.doing(self, "read its namespace")?;
        Ok(match left {
            None => Progress::Done(()),
            Some(_) => Progress::running(format!("Deleting namespace {name}.")),
        })
    }

    /// Deletes the namespaces that the agent created for instances.
    async fn delete_instances(&self, namespaces: &Api<Namespace>) -> Result<Option<String>, Fault> {
        let ours = ListParams::default().labels(&instance_selector(&self.settings));
        let found = namespaces.list(&ours).await.doing(self, "list instance namespaces")?.items;
        for namespace in &found {
            if let (Some(name), None) =
                (&namespace.metadata.name, &namespace.metadata.deletion_timestamp)
            {
                delete(self, namespaces, name, &DeleteParams::default()).await?;
            }
        }
        let left = namespaces.list(&ours).await.doing(self, "list instance namespaces")?.items;
        Ok((!left.is_empty()).then(|| format!("Deleting {} instance namespaces.", left.len())))
    }

    /// Deletes the agent's objects of one kind; returns how many there were.
    async fn delete_workloads(&self, at: (&str, &str, &str)) -> Result<usize, Fault> {
        let (all, what) = (self.api(at, true), format!("delete {} of deployments", at.2));
        let found =
            all.list(&ListParams::default().labels(REPLICA)).await.doing(self, &what)?.items;
        for name in found.iter().filter_map(|object| object.metadata.name.as_deref()) {
            match all.delete(name, &DeleteParams::background()).await {
                Err(error) if is_missing(&error) => {}
                other => drop(other.doing(self, &what)?),
            }
        }
        Ok(found.len())
    }

    /// Deletes our objects in a namespace that Paddock did not create, and removes our labels from
    /// it.
    async fn release_namespace(&self, namespaces: &Api<Namespace>) -> Result<Progress<()>, Fault> {
        let mut left = 0;
        for at in WORKLOADS {
            left += self.delete_workloads(at).await?;
        }
        if left > 0 {
            return Ok(Progress::running(format!("Deleting {left} objects of deployments.")));
        }
        for (at, name) in INSIDE {
            self.delete_ours(at, true, name).await?;
        }
        let labels = json!({"metadata": {"annotations": {FENCE: null},
            "labels": {CLUSTER: null, MANAGED_BY.0: null}}});
        let name = &self.settings.namespace;
        let patched = namespaces.patch(name, &PatchParams::default(), &Patch::Merge(&labels)).await;
        patched.doing(self, "remove its label from the namespace")?;
        Ok(Progress::Done(()))
    }
}

async fn delete(
    target: &Target<'_>,
    namespaces: &Api<Namespace>,
    name: &str,
    params: &DeleteParams,
) -> Result<(), Fault> {
    match namespaces.delete(name, params).await {
        Err(error) if is_missing(&error) => Ok(()),
        other => other.doing(target, &format!("delete the namespace {name}")).map(drop),
    }
}
