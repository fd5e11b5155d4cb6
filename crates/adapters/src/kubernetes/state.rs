//! The state of the agent's Deployment.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Api;
use kube::api::ListParams;
use port::Fault;

use super::Target;
use super::fault::Doing;
use super::names::{AGENT, CLUSTER, NAME};

impl Target<'_> {
    /// Why the agent does not run; none if it runs.
    pub(super) async fn agent_problem(&self) -> Result<Option<String>, Fault> {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let found = api.get(AGENT).await.doing(self, "read the agent's Deployment")?;
        if is_available(&found) {
            return Ok(None);
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let selector = format!("{NAME}={AGENT},{CLUSTER}={}", self.task.id);
        let pods = pods.list(&ListParams::default().labels(&selector)).await;
        let pods = pods.doing(self, "list the agent's pods")?.items;
        let why = pods.iter().find_map(pod_problem).or_else(|| replica_failure(&found));
        Ok(Some(why.unwrap_or_else(|| "Starting the agent.".to_owned())))
    }
}

fn is_available(found: &Deployment) -> bool {
    let Some(status) = &found.status else { return false };
    let is_current = status.observed_generation >= found.metadata.generation;
    let is_updated = status.updated_replicas.unwrap_or(0) >= 1;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let is_available = conditions.iter().any(|c| c.type_ == "Available" && c.status == "True");
    is_current && is_updated && is_available
}

/// Why no pod was created.
fn replica_failure(found: &Deployment) -> Option<String> {
    let conditions = found.status.as_ref()?.conditions.as_deref()?;
    let failed = conditions.iter().find(|c| c.type_ == "ReplicaFailure" && c.status == "True")?;
    let why = failed.message.as_deref().unwrap_or("no details given").trim_end_matches('.');
    Some(format!("Creating the agent's pod failed: {why}."))
}

fn pod_problem(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let unscheduled = conditions
        .iter()
        .find(|c| c.reason.as_deref() == Some("Unschedulable") && c.status == "False");
    if let Some(condition) = unscheduled {
        let why = condition.message.as_deref().unwrap_or_default().trim_end_matches('.');
        return Some(format!("The agent's pod is unschedulable: {why}."));
    }
    status.container_statuses.as_ref()?.iter().find_map(container_problem)
}

fn container_problem(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().unwrap_or_default();
    let message = waiting.message.as_deref().unwrap_or("no details given").trim_end_matches('.');
    match reason {
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
            Some(format!("Pulling the agent's image {} failed: {message}.", container.image))
        }
        "CrashLoopBackOff" => {
            let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
            let code = last.map_or(String::new(), |last| format!(" with code {}", last.exit_code));
            let times = container.restart_count;
            Some(format!("The agent exits{code} repeatedly ({times} restarts). Check its log."))
        }
        "" | "ContainerCreating" | "PodInitializing" => None,
        other => Some(format!("Starting the agent failed: {other}: {message}.")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn agent_runs_when_its_newest_pod_is_available() {
        for (generation, observed, updated, available, expected) in [
            (2, 2, 1, "True", true),
            (2, 1, 1, "True", false),
            (2, 2, 0, "True", false),
            (2, 2, 1, "False", false),
            (2, 2, 1, "Unknown", false),
        ] {
            let found = json!({"metadata": {"generation": generation}, "status": {
                "observedGeneration": observed, "updatedReplicas": updated,
                "conditions": [{"type": "Available", "status": available},
                    {"type": "Progressing", "status": "True"}]}});
            let found: Deployment = serde_json::from_value(found).unwrap();
            assert_eq!(
                is_available(&found),
                expected,
                "{generation} {observed} {updated} {available}"
            );
        }
        assert!(!is_available(&Deployment::default()));
    }
}
