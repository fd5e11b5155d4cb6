//! Prepares a Kubernetes cluster to host workloads: applies objects, and waits for the agent.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Error};
use model::operation::Subject;
use port::{Access, Fault, Outcome, Progress};
use serde_json::Value;

use super::Target;
use super::fault::{Doing, is_missing};
use super::names::{self, CLUSTER, MADE, MANAGER, PULL, QUOTA};
use super::parts::{self, Part};
use super::rbac::is_custom;

impl Target<'_> {
    pub(super) async fn prepare(&self, agent: &Access) -> Result<Progress<Outcome>, Fault> {
        if let Some(wait) = self.namespace().await? {
            return Ok(Progress::running(wait));
        }
        let groups = self.client.list_api_groups().await;
        let groups = groups.doing(self, "list its API groups")?.groups;
        let mut custom: Vec<String> =
            groups.into_iter().map(|group| group.name).filter(|name| is_custom(name)).collect();
        custom.sort();
        let parts = self.parts(agent, &custom);
        for part in &parts {
            self.apply(part).await?;
        }
        self.delete_stale(&parts).await?;
        self.wait_for_agent().await
    }

    /// Creates or claims the namespace; returns what it waits for, if anything.
    async fn namespace(&self) -> Result<Option<String>, Fault> {
        let (id, name) = (self.task.id, &self.settings.namespace);
        if name.starts_with("kube-") {
            return Err(Fault::Refused(format!(
                "namespace {name} belongs to Kubernetes itself. Choose another one"
            )));
        }
        let api: Api<Namespace> = Api::all(self.client.clone());
        let found = api.get_opt(name).await.doing(self, "read its namespace")?;
        let Some(found) = found else {
            let new = typed(self.fenced(parts::namespace(id, name, true), None)?);
            let params = PostParams { field_manager: Some(MANAGER.into()), ..Default::default() };
            api.create(&params, &new).await.doing(self, "create its namespace")?;
            return Ok(None);
        };
        if found.metadata.deletion_timestamp.is_some() {
            return Ok(Some(format!("Waiting for the deletion of namespace {name}.")));
        }
        let owner = found.metadata.labels.as_ref().and_then(|labels| labels.get(CLUSTER));
        if let Some(other) = owner.filter(|owner| **owner != id.to_string()) {
            return Err(Fault::Refused(format!(
                "namespace {name} belongs to another Paddock cluster ({other}). Choose another one"
            )));
        }
        let annotations = found.metadata.annotations.as_ref();
        let is_created = annotations.is_some_and(|all| all.contains_key(MADE));
        let desired = self.fenced(parts::namespace(id, name, is_created), Some(&found.metadata))?;
        let applied = api.patch(name, &params(), &Patch::Apply(&desired)).await;
        applied.doing(self, "label its namespace")?;
        Ok(None)
    }

    async fn apply(&self, part: &Part) -> Result<(), Fault> {
        let api = self.api(part.at, part.is_inside);
        let name = part.object["metadata"]["name"].as_str().unwrap_or_default();
        let what = format!("apply the {}", part.display_name());
        let found = api.get_metadata_opt(name).await.doing(self, &what)?;
        let object =
            self.fenced(part.object.clone(), found.as_ref().map(|found| &found.metadata))?;
        match api.patch(name, &params(), &Patch::Apply(&object)).await {
            // The role of a binding is immutable: the binding is recreated.
            Err(Error::Api(status)) if status.code == 422 && part.at.2.ends_with("bindings") => {
                let removed = api.delete(name, &DeleteParams::default()).await;
                removed.doing(self, &format!("delete the {}", part.display_name()))?;
                let object = self.fenced(part.object.clone(), None)?;
                let again = api.patch(name, &params(), &Patch::Apply(&object)).await;
                again.doing(self, &what).map(drop)
            }
            other => other.doing(self, &what).map(drop),
        }
    }

    /// Deletes optional objects that are no longer desired.
    async fn delete_stale(&self, parts: &[Part]) -> Result<(), Fault> {
        for (at, name) in [
            (("", "v1", "resourcequotas"), QUOTA),
            (("", "v1", "limitranges"), QUOTA),
            (("", "v1", "secrets"), PULL),
        ] {
            let is_desired = |part: &Part| part.at == at && part.object["metadata"]["name"] == name;
            if !parts.iter().any(is_desired) {
                self.delete_ours(at, true, name).await?;
            }
        }
        Ok(())
    }

    /// Deletes an object if it is ours; returns whether it existed.
    pub(super) async fn delete_ours(
        &self,
        at: (&str, &str, &str),
        is_inside: bool,
        name: &str,
    ) -> Result<bool, Fault> {
        let api = self.api(at, is_inside);
        let what = format!("delete {name} of {}", at.2);
        let Some(found) = api.get_opt(name).await.doing(self, &what)? else { return Ok(false) };
        let owner = found.metadata.labels.as_ref().and_then(|labels| labels.get(CLUSTER));
        if owner != Some(&self.task.id.to_string()) {
            return Ok(false);
        }
        // Owners of pods are deleted after their pods; the others at once.
        let params = match at.0 {
            "apps" => DeleteParams::foreground(),
            _ => DeleteParams::default(),
        };
        let params = self.fenced_delete(params, &found.metadata)?;
        match api.delete(name, &params).await {
            Err(error) if is_missing(&error) => Ok(false),
            other => other.doing(self, &what).map(|_| true),
        }
    }

    /// The objects of a kind, in our namespace or cluster-wide.
    pub(super) fn api(&self, at: (&str, &str, &str), is_inside: bool) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(at.0, at.1, "");
        let resource = ApiResource::from_gvk_with_plural(&kind, at.2);
        if is_inside {
            return Api::namespaced_with(self.client.clone(), &self.settings.namespace, &resource);
        }
        Api::all_with(self.client.clone(), &resource)
    }

    async fn wait_for_agent(&self) -> Result<Progress<Outcome>, Fault> {
        match self.agent_problem().await? {
            Some(why) => Ok(Progress::running(why)),
            None => Ok(Progress::Done(self.identify().await?)),
        }
    }
}

/// Server-side apply that takes over fields which others changed.
pub(super) fn params() -> PatchParams {
    PatchParams::apply(MANAGER).force()
}

fn typed(object: Value) -> Namespace {
    serde_json::from_value(object).unwrap_or_default()
}

/// The cluster-wide objects of a cluster.
pub(super) fn cluster_wide(id: Subject) -> [(&'static str, String); 3] {
    let (all, instances) = (names::everywhere(id), names::instances(id));
    [("clusterrolebindings", all.clone()), ("clusterroles", all), ("clusterroles", instances)]
}
