//! Has a Kubernetes be able to host: applies what is needed, and waits for the agent to run.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Error};
use model::operation::Subject;
use port::{Access, Fault, Outcome, Progress};
use serde_json::Value;

use super::Reached;
use super::fault::{Doing, is_missing};
use super::names::{self, CLUSTER, MADE, MANAGER, PULL, QUOTA};
use super::parts::{self, Part};
use super::rules::is_custom;

impl Reached<'_> {
    pub(super) async fn prepare(&self, agent: &Access) -> Result<Progress<Outcome>, Fault> {
        if let Some(wait) = self.namespace().await? {
            return Ok(Progress::running(wait));
        }
        let groups = self.client.list_api_groups().await;
        let groups = groups.doing(self, "say which kinds it knows")?.groups;
        let mut custom: Vec<String> =
            groups.into_iter().map(|group| group.name).filter(|name| is_custom(name)).collect();
        custom.sort();
        let parts = self.parts(agent, &custom);
        for part in &parts {
            self.apply(part).await?;
        }
        self.tidy(&parts).await?;
        self.agent_runs().await
    }

    /// Makes the namespace ours; what has to be waited for first, if something has.
    async fn namespace(&self) -> Result<Option<String>, Fault> {
        let (id, name) = (self.task.id, &self.settings.namespace);
        if name.starts_with("kube-") {
            return Err(Fault::Refused(format!(
                "the namespace {name} belongs to Kubernetes itself: name another one"
            )));
        }
        let api: Api<Namespace> = Api::all(self.client.clone());
        let found = api.get_opt(name).await.doing(self, "read its namespace")?;
        let Some(found) = found else {
            let made = typed(parts::namespace(id, name, true));
            let params = PostParams { field_manager: Some(MANAGER.into()), ..Default::default() };
            api.create(&params, &made).await.doing(self, "create its namespace")?;
            return Ok(None);
        };
        if found.metadata.deletion_timestamp.is_some() {
            return Ok(Some(format!("The namespace {name} is still being removed.")));
        }
        let owner = found.metadata.labels.as_ref().and_then(|labels| labels.get(CLUSTER));
        if let Some(other) = owner.filter(|owner| **owner != id.to_string()) {
            return Err(Fault::Refused(format!(
                "the namespace {name} belongs to another cluster of Paddock ({other}): name another \
                 one"
            )));
        }
        let is_made = found.metadata.annotations.is_some_and(|all| all.contains_key(MADE));
        let wanted = parts::namespace(id, name, is_made);
        let applied = api.patch(name, &params(), &Patch::Apply(&wanted)).await;
        applied.doing(self, "label its namespace")?;
        Ok(None)
    }

    async fn apply(&self, part: &Part) -> Result<(), Fault> {
        let api = self.api(part.at, part.is_inside);
        let name = part.object["metadata"]["name"].as_str().unwrap_or_default();
        let applied = api.patch(name, &params(), &Patch::Apply(&part.object)).await;
        match applied {
            // What a binding binds can't be changed: it is made anew.
            Err(Error::Api(status)) if status.code == 422 && part.at.2.ends_with("bindings") => {
                let removed = api.delete(name, &DeleteParams::default()).await;
                removed.doing(self, &format!("remove the {}", part.words()))?;
                let again = api.patch(name, &params(), &Patch::Apply(&part.object)).await;
                again.doing(self, &format!("apply the {}", part.words())).map(drop)
            }
            other => other.doing(self, &format!("apply the {}", part.words())).map(drop),
        }
    }

    /// Removes what is not wanted any more.
    async fn tidy(&self, parts: &[Part]) -> Result<(), Fault> {
        for (at, name) in [
            (("", "v1", "resourcequotas"), QUOTA),
            (("", "v1", "limitranges"), QUOTA),
            (("", "v1", "secrets"), PULL),
        ] {
            let is_wanted = |part: &Part| part.at == at && part.object["metadata"]["name"] == name;
            if !parts.iter().any(is_wanted) {
                self.remove_ours(at, true, name).await?;
            }
        }
        Ok(())
    }

    /// Removes an object if it is ours; whether it was there.
    pub(super) async fn remove_ours(
        &self,
        at: (&str, &str, &str),
        is_inside: bool,
        name: &str,
    ) -> Result<bool, Fault> {
        let api = self.api(at, is_inside);
        let what = format!("remove {name} of {}", at.2);
        let Some(found) = api.get_opt(name).await.doing(self, &what)? else { return Ok(false) };
        let labels = found.metadata.labels.unwrap_or_default();
        if labels.get(CLUSTER) != Some(&self.task.id.to_string()) {
            return Ok(false);
        }
        // What owns pods goes after them; the rest goes at once.
        let params = match at.0 {
            "apps" => DeleteParams::foreground(),
            _ => DeleteParams::default(),
        };
        match api.delete(name, &params).await {
            Err(error) if is_missing(&error) => Ok(false),
            other => other.doing(self, &what).map(|_| true),
        }
    }

    /// The objects of a kind, in our namespace or of the whole cluster.
    pub(super) fn api(&self, at: (&str, &str, &str), is_inside: bool) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(at.0, at.1, "");
        let resource = ApiResource::from_gvk_with_plural(&kind, at.2);
        if is_inside {
            return Api::namespaced_with(self.client.clone(), &self.settings.namespace, &resource);
        }
        Api::all_with(self.client.clone(), &resource)
    }

    async fn agent_runs(&self) -> Result<Progress<Outcome>, Fault> {
        match self.agent_trouble().await? {
            Some(why) => Ok(Progress::running(why)),
            None => Ok(Progress::Done(self.look().await?)),
        }
    }
}

/// How everything is applied: what others have changed of ours is changed back.
fn params() -> PatchParams {
    PatchParams::apply(MANAGER).force()
}

fn typed(object: Value) -> Namespace {
    serde_json::from_value(object).unwrap_or_default()
}

/// All cluster-wide things of a cluster.
pub(super) fn of_the_cluster(id: Subject) -> [(&'static str, String); 3] {
    let (all, instances) = (names::everywhere(id), names::instances(id));
    [("clusterrolebindings", all.clone()), ("clusterroles", all), ("clusterroles", instances)]
}
