//! Does the agent run, and if not, why?

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Api;
use kube::api::ListParams;
use port::Fault;

use super::Reached;
use super::fault::Doing;
use super::names::{AGENT, CLUSTER, NAME};

impl Reached<'_> {
    /// What keeps the agent from running, as a sentence; nothing if it runs.
    pub(super) async fn agent_trouble(&self) -> Result<Option<String>, Fault> {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let found = api.get(AGENT).await.doing(self, "read the agent's Deployment")?;
        if is_available(&found) {
            return Ok(None);
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let selector = format!("{NAME}={AGENT},{CLUSTER}={}", self.task.id);
        let pods = pods.list(&ListParams::default().labels(&selector)).await;
        let pods = pods.doing(self, "list the agent's pods")?.items;
        let why = pods.iter().find_map(pod_trouble).or_else(|| not_made(&found));
        Ok(Some(why.unwrap_or_else(|| "The agent is being started.".to_owned())))
    }
}

fn is_available(found: &Deployment) -> bool {
    let Some(status) = &found.status else { return false };
    let is_seen = status.observed_generation >= found.metadata.generation;
    let is_new = status.updated_replicas.unwrap_or(0) >= 1;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let is_available = conditions.iter().any(|c| c.type_ == "Available" && c.status == "True");
    is_seen && is_new && is_available
}

/// Why there is not even a pod.
fn not_made(found: &Deployment) -> Option<String> {
    let conditions = found.status.as_ref()?.conditions.as_deref()?;
    let failed = conditions.iter().find(|c| c.type_ == "ReplicaFailure" && c.status == "True")?;
    let why = failed.message.as_deref().unwrap_or("it is not said why");
    Some(format!("The agent's pod can't be made: {why}."))
}

fn pod_trouble(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let unplaced = conditions
        .iter()
        .find(|c| c.reason.as_deref() == Some("Unschedulable") && c.status == "False");
    if let Some(condition) = unplaced {
        let why = condition.message.as_deref().unwrap_or_default().trim_end_matches('.');
        return Some(format!("No node takes the agent: {why}."));
    }
    status.container_statuses.as_ref()?.iter().find_map(container_trouble)
}

fn container_trouble(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().unwrap_or_default();
    let said = waiting.message.as_deref().unwrap_or("it is not said why").trim_end_matches('.');
    match reason {
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
            Some(format!("The agent's image {} can't be pulled: {said}.", container.image))
        }
        "CrashLoopBackOff" => {
            let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
            let code = last.map_or(String::new(), |last| format!(" with code {}", last.exit_code));
            let times = container.restart_count;
            Some(format!(
                "The agent ends{code} again and again ({times} restarts): look at its log."
            ))
        }
        "" | "ContainerCreating" | "PodInitializing" => None,
        other => Some(format!("The agent can't be started: {other}: {said}.")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_agent_runs_when_its_newest_pod_is_available() {
        for (generation, seen, updated, available, expected) in [
            (2, 2, 1, "True", true),
            (2, 1, 1, "True", false),
            (2, 2, 0, "True", false),
            (2, 2, 1, "False", false),
            (2, 2, 1, "Unknown", false),
        ] {
            let found = json!({"metadata": {"generation": generation}, "status": {
                "observedGeneration": seen, "updatedReplicas": updated,
                "conditions": [{"type": "Available", "status": available},
                    {"type": "Progressing", "status": "True"}]}});
            let found: Deployment = serde_json::from_value(found).unwrap();
            assert_eq!(is_available(&found), expected, "{generation} {seen} {updated} {available}");
        }
        assert!(!is_available(&Deployment::default()));
    }
}
