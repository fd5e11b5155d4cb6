//! Takes away all that was made: the agent first, so that nobody makes more meanwhile.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use port::{Fault, Progress};
use serde_json::json;

use super::Reached;
use super::fault::{Doing, is_missing};
use super::names::{AGENT, CLUSTER, MADE, MANAGED_BY, PULL, QUOTA, REPLICA};
use super::parts::of_instances;
use super::prepare::of_the_cluster;

const RBAC: &str = "rbac.authorization.k8s.io";

/// What is ours in a namespace, in the order in which it goes.
const INSIDE: [((&str, &str, &str), &str); 7] = [
    (("", "v1", "secrets"), AGENT),
    (("", "v1", "secrets"), PULL),
    ((RBAC, "v1", "rolebindings"), AGENT),
    ((RBAC, "v1", "roles"), AGENT),
    (("", "v1", "serviceaccounts"), AGENT),
    (("", "v1", "resourcequotas"), QUOTA),
    (("", "v1", "limitranges"), QUOTA),
];

/// What agents make of deployments.
const RUNS: [(&str, &str, &str); 4] = [
    ("apps", "v1", "deployments"),
    ("batch", "v1", "jobs"),
    ("", "v1", "services"),
    ("", "v1", "secrets"),
];

impl Reached<'_> {
    pub(super) async fn remove(&self) -> Result<Progress<()>, Fault> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let name = &self.settings.namespace;
        let found = namespaces.get_opt(name).await.doing(self, "read its namespace")?;
        let found = found.filter(|found| self.is_ours(found));
        if found.is_some() && self.remove_ours(("apps", "v1", "deployments"), true, AGENT).await? {
            return Ok(Progress::running("The agent is being stopped."));
        }
        if let Some(wait) = self.remove_instances(&namespaces).await? {
            return Ok(Progress::running(wait));
        }
        for (plural, name) in of_the_cluster(self.task.id) {
            self.remove_ours((RBAC, "v1", plural), false, &name).await?;
        }
        let Some(found) = found else { return Ok(Progress::Done(())) };
        let is_made = found.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(MADE));
        if is_made {
            return self.remove_namespace(&namespaces, &found).await;
        }
        self.leave(&namespaces).await
    }

    fn is_ours(&self, found: &Namespace) -> bool {
        let labels = found.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(CLUSTER)) == Some(&self.task.id.to_string())
    }

    async fn remove_namespace(
        &self,
        namespaces: &Api<Namespace>,
        found: &Namespace,
    ) -> Result<Progress<()>, Fault> {
        let name = &self.settings.namespace;
        if found.metadata.deletion_timestamp.is_none() {
            delete(self, namespaces, name).await?;
        }
        let left = namespaces.get_opt(name).await.doing(self, "read its namespace")?;
        Ok(match left {
            None => Progress::Done(()),
            Some(_) => Progress::running(format!("The namespace {name} is being removed.")),
        })
    }

    /// Namespaces that the agent has made for instances.
    async fn remove_instances(&self, namespaces: &Api<Namespace>) -> Result<Option<String>, Fault> {
        let ours = ListParams::default().labels(&of_instances(&self.settings));
        let found = namespaces.list(&ours).await.doing(self, "list namespaces of instances")?.items;
        for namespace in &found {
            if let (Some(name), None) =
                (&namespace.metadata.name, &namespace.metadata.deletion_timestamp)
            {
                delete(self, namespaces, name).await?;
            }
        }
        let left = namespaces.list(&ours).await.doing(self, "list namespaces of instances")?.items;
        Ok((!left.is_empty())
            .then(|| format!("{} namespaces of instances are being removed.", left.len())))
    }

    /// What the agent has left behind of one kind; how many there were.
    async fn remove_runs(&self, at: (&str, &str, &str)) -> Result<usize, Fault> {
        let (all, what) = (self.api(at, true), format!("remove {} of deployments", at.2));
        let runs = all.list(&ListParams::default().labels(REPLICA)).await.doing(self, &what)?.items;
        for name in runs.iter().filter_map(|run| run.metadata.name.as_deref()) {
            match all.delete(name, &DeleteParams::background()).await {
                Err(error) if is_missing(&error) => {}
                other => drop(other.doing(self, &what)?),
            }
        }
        Ok(runs.len())
    }

    /// Leaves a namespace that was there before: what is ours goes, the rest stays.
    async fn leave(&self, namespaces: &Api<Namespace>) -> Result<Progress<()>, Fault> {
        let mut left = 0;
        for at in RUNS {
            left += self.remove_runs(at).await?;
        }
        if left > 0 {
            return Ok(Progress::running(format!(
                "{left} objects of deployments are being removed."
            )));
        }
        for (at, name) in INSIDE {
            self.remove_ours(at, true, name).await?;
        }
        let labels = json!({"metadata": {"labels": {CLUSTER: null, MANAGED_BY.0: null}}});
        let name = &self.settings.namespace;
        let patched = namespaces.patch(name, &PatchParams::default(), &Patch::Merge(&labels)).await;
        patched.doing(self, "take its label off the namespace")?;
        Ok(Progress::Done(()))
    }
}

async fn delete(
    reached: &Reached<'_>,
    namespaces: &Api<Namespace>,
    name: &str,
) -> Result<(), Fault> {
    match namespaces.delete(name, &DeleteParams::default()).await {
        Err(error) if is_missing(&error) => Ok(()),
        other => other.doing(reached, &format!("remove the namespace {name}")).map(drop),
    }
}
