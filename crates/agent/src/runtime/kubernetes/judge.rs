//! How a replica is doing, by what its pods and objects say. Pure.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus};
use model::deployment::Restart;
use runtime::{Condition, message};

use super::fault::one_line;
use super::pod::Seen;

/// How long a kubelet waits before it starts a program again: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_secs(10);
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// How it looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// Not there yet; what it waits for, as a sentence, if that is worth saying.
    Waiting(Option<String>),
    /// So.
    Is(Condition),
}

/// What is known of a replica beside its pods.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) image: String,
    pub(super) restart: Restart,
    pub(super) is_job: bool,
    /// Must it answer before it counts as running?
    pub(super) must_answer: bool,
    pub(super) ram_bytes: Option<i64>,
    pub(super) endpoints: Vec<String>,
}

impl Facts {
    /// How its newest pod is doing.
    pub(super) fn judge(&self, pods: &[&Seen]) -> Look {
        let Some(pod) = pods.iter().find(|pod| !pod.is_going) else { return Look::Waiting(None) };
        let containers = pod.status.container_statuses.as_deref().unwrap_or_default();
        let Some(container) = containers.iter().find(|container| container.name == "main") else {
            return self.without_container(pod);
        };
        let state = container.state.clone().unwrap_or_default();
        if self.has_ended_well(container) {
            return Look::Is(Condition::Completed);
        }
        match state {
            ContainerState { running: Some(_), .. } if self.must_answer && !container.ready => {
                Look::Waiting(None)
            }
            ContainerState { running: Some(_), .. } => {
                Look::Is(Condition::Running { endpoints: self.endpoints.clone() })
            }
            ContainerState { terminated: Some(end), .. } => {
                self.ended(&end, container, pod.phase())
            }
            ContainerState { waiting: Some(waiting), .. } => {
                let said = waiting.message.as_deref().map(one_line);
                self.waiting(waiting.reason.as_deref().unwrap_or_default(), said, container)
            }
            _ => Look::Waiting(None),
        }
    }

    /// A Deployment's program is started again at once; that it has come to its end is still told.
    fn has_ended_well(&self, container: &ContainerStatus) -> bool {
        let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
        self.restart == Restart::OnFailure && last.is_some_and(|end| end.exit_code == 0)
    }

    /// Its pod has no container yet, or never will.
    fn without_container(&self, pod: &Seen) -> Look {
        if pod.phase() == "Failed" {
            let reason = pod.status.reason.as_deref().unwrap_or("its pod failed");
            let said = pod.status.message.as_deref().map(one_line).unwrap_or_default();
            let why = format!("Kubernetes has ended it ({reason}): {said}.");
            if self.is_job {
                return Look::Is(Condition::Failed(why));
            }
            return Look::Waiting(Some(why));
        }
        let conditions = pod.status.conditions.as_deref().unwrap_or_default();
        let unplaced = conditions
            .iter()
            .find(|c| c.status == "False" && c.reason.as_deref() == Some("Unschedulable"));
        Look::Waiting(unplaced.map(|condition| {
            let said = condition.message.as_deref().map(one_line).unwrap_or_default();
            format!("No node of the Kubernetes takes it: {said}. It is tried again.")
        }))
    }

    fn waiting(&self, reason: &str, said: Option<String>, container: &ContainerStatus) -> Look {
        let image = &self.image;
        let said = said.unwrap_or_else(|| "it is not said why".to_owned());
        match reason {
            "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                Look::Is(Condition::Failed(format!("The image {image} can't be pulled: {said}.")))
            }
            "ErrImagePull" => {
                Look::Waiting(Some(format!("The image {image} could not be pulled: {said}.")))
            }
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                Look::Is(Condition::Failed(format!("It can't be started: {said}.")))
            }
            _ => {
                let last = container.last_state.clone().and_then(|last| last.terminated);
                last.map_or(Look::Waiting(None), |end| self.ended(&end, container, "Running"))
            }
        }
    }

    fn ended(
        &self,
        end: &ContainerStateTerminated,
        container: &ContainerStatus,
        phase: &str,
    ) -> Look {
        let is_oom = end.reason.as_deref() == Some("OOMKilled");
        let how = match (end.reason.as_deref(), end.message.as_deref()) {
            // A command that is not there ends as a container that could not run.
            (Some("StartError" | "ContainerCannotRun"), Some(said)) => {
                format!("It can't be started: {}.", one_line(said))
            }
            _ => message::ended(end.exit_code, is_oom, self.ram_bytes),
        };
        if end.exit_code == 0 && self.restart != Restart::Always {
            return Look::Is(Condition::Completed);
        }
        if self.restart == Restart::Never || (self.is_job && phase == "Failed") {
            return Look::Is(Condition::Failed(how));
        }
        let count = u32::try_from(container.restart_count).unwrap_or(0).saturating_add(1);
        let wait = FIRST_WAIT.saturating_mul(1 << (count - 1).min(10)).min(LONGEST_WAIT);
        Look::Is(Condition::Restarting { reason: message::restarting(&how, wait, count) })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;

    fn facts(restart: Restart, is_job: bool) -> Facts {
        let (image, ram_bytes) = ("web:1".to_owned(), Some(32 << 20));
        let endpoints = vec!["10.0.0.1:80".to_owned()];
        Facts { image, restart, is_job, must_answer: false, ram_bytes, endpoints }
    }

    fn pod(status: &Value) -> Seen {
        let pod = json!({"metadata": {"name": "p", "labels": {"paddock.dev/replica": "x.0"}}, "status": status});
        Seen::of(&serde_json::from_value::<Pod>(pod).unwrap())
    }

    fn main(state: &Value, last: &Value) -> Value {
        json!({"phase": "Running", "containerStatuses": [{"name": "main", "image": "i", "imageID": "",
            "ready": false, "restartCount": 1, "state": state, "lastState": last}]})
    }

    fn said(look: Look) -> String {
        match look {
            Look::Waiting(why) => format!("waiting {}", why.unwrap_or_default()),
            Look::Is(Condition::Failed(why)) => format!("failed {why}"),
            Look::Is(Condition::Restarting { reason }) => format!("restarting {reason}"),
            Look::Is(Condition::Running { endpoints }) => {
                format!("running {}", endpoints.join(","))
            }
            Look::Is(Condition::Completed) => "completed".to_owned(),
        }
    }

    #[test]
    fn what_pods_say() {
        let waiting =
            |reason: &str| json!({"waiting": {"reason": reason, "message": "no such image."}});
        let ended =
            |code: i32, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason}});
        let none = json!({});
        let unplaced = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/3 nodes are available."}]});
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory."});
        for (status, always, job) in [
            (main(&json!({"running": {}}), &none), "running 10.0.0.1:80", "running 10.0.0.1:80"),
            (main(&waiting("ContainerCreating"), &none), "waiting ", "waiting "),
            (
                main(&waiting("ImagePullBackOff"), &none),
                "failed The image web:1 can't be pulled: no such image.",
                "failed The image web:1 can't",
            ),
            (
                main(&waiting("ErrImagePull"), &none),
                "waiting The image web:1 could not",
                "waiting The image",
            ),
            (
                main(&waiting("CrashLoopBackOff"), &ended(3, "Error")),
                "restarting It ended with code 3. It is started again after 20 s (restart 2).",
                "restarting It ended",
            ),
            (
                main(&waiting("CrashLoopBackOff"), &ended(137, "OOMKilled")),
                "restarting It was killed: it used more than its 32 MiB of ram.",
                "restarting It was killed",
            ),
            (main(&ended(0, "Completed"), &none), "restarting It ended with code 0.", "completed"),
            (
                main(&ended(128, "StartError"), &none),
                "restarting It ended with code 128",
                "restarting",
            ),
            (
                unplaced,
                "waiting No node of the Kubernetes takes it: 0/3 nodes are available. It is",
                "waiting No",
            ),
            (
                evicted,
                "waiting Kubernetes has ended it (Evicted): low on memory.",
                "failed Kubernetes has ended",
            ),
            (json!({"phase": "Pending"}), "waiting ", "waiting "),
        ] {
            let pod = pod(&status);
            let one = said(facts(Restart::Always, false).judge(&[&pod]));
            assert!(one.starts_with(always), "{one}\n{status}");
            let other = said(facts(Restart::OnFailure, true).judge(&[&pod]));
            assert!(other.starts_with(job), "{other}\n{status}");
        }
        let over = pod(&main(&ended(3, "Error"), &none));
        assert_eq!(
            said(facts(Restart::Never, true).judge(&[&over])),
            "failed It ended with code 3."
        );
        assert_eq!(said(facts(Restart::Always, false).judge(&[])), "waiting ");
    }

    #[test]
    fn who_must_answer_runs_when_it_does() {
        let mut facts = facts(Restart::Always, false);
        facts.must_answer = true;
        let mut status = main(&json!({"running": {}}), &json!({}));
        assert_eq!(said(facts.judge(&[&pod(&status)])), "waiting ");
        status["containerStatuses"][0]["ready"] = json!(true);
        assert_eq!(said(facts.judge(&[&pod(&status)])), "running 10.0.0.1:80");
    }
}
