//! Evaluates the state of a replica from its pods. Pure.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus};
use model::agent::Observed;
use model::deployment::{Pull, Reason, Restart};

use super::fault::one_line;
use super::pod::PodSummary;
use crate::reason;

/// Restart backoff of a kubelet: first and maximum.
const FIRST_WAIT: Duration = Duration::from_secs(10);
const MAX_WAIT: Duration = Duration::from_mins(5);

/// Evaluated state of a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Evaluation {
    /// Not started yet; the cause, if it is known.
    Waiting(Option<Reason>),
    /// Settled.
    Settled(Observed),
}

/// Properties of a replica that runs an image.
#[derive(Debug, Clone)]
pub(super) struct Workload {
    pub(super) image: String,
    pub(super) restart: Restart,
    pub(super) is_job: bool,
    /// Whether it must be ready before it counts as running.
    pub(super) needs_readiness: bool,
    pub(super) ram_bytes: Option<i64>,
    pub(super) endpoints: Vec<String>,
}

impl Workload {
    /// Evaluates the newest pod.
    pub(super) fn evaluate(&self, pods: &[&PodSummary]) -> Evaluation {
        let Some(pod) = pods.iter().find(|pod| !pod.is_terminating) else {
            return Evaluation::Waiting(None);
        };
        let containers = pod.status.container_statuses.as_deref().unwrap_or_default();
        let Some(container) = containers.iter().find(|container| container.name == "main") else {
            return self.without_container(pod);
        };
        let state = container.state.clone().unwrap_or_default();
        if self.has_completed(container) {
            return Evaluation::Settled(Observed::Completed);
        }
        match state {
            ContainerState { running: Some(_), .. } if self.needs_readiness && !container.ready => {
                Evaluation::Waiting(None)
            }
            ContainerState { running: Some(_), .. } => {
                Evaluation::Settled(Observed::Running { endpoints: self.endpoints.clone() })
            }
            ContainerState { terminated: Some(end), .. } => {
                self.exited(&end, container, pod.phase())
            }
            ContainerState { waiting: Some(waiting), .. } => {
                let message = waiting.message.as_deref().map(one_line).unwrap_or_default();
                self.waiting(waiting.reason.as_deref().unwrap_or_default(), message, container)
            }
            _ => Evaluation::Waiting(None),
        }
    }

    /// A Deployment restarts its program at once; its completion is still reported.
    fn has_completed(&self, container: &ContainerStatus) -> bool {
        let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
        self.restart == Restart::OnFailure && last.is_some_and(|end| end.exit_code == 0)
    }

    /// The pod has no container yet, or never will.
    fn without_container(&self, pod: &PodSummary) -> Evaluation {
        if pod.phase() == "Failed" {
            let reason = pod.status.reason.clone().unwrap_or_else(|| "Unknown".to_owned());
            let message = pod.status.message.as_deref().map(one_line).unwrap_or_default();
            let reason = Reason::PodFailed { reason, message };
            if self.is_job {
                return Evaluation::Settled(Observed::Failed { reason });
            }
            return Evaluation::Waiting(Some(reason));
        }
        let conditions = pod.status.conditions.as_deref().unwrap_or_default();
        let unschedulable = conditions
            .iter()
            .find(|c| c.status == "False" && c.reason.as_deref() == Some("Unschedulable"));
        Evaluation::Waiting(unschedulable.map(|condition| {
            let message = condition.message.as_deref().map(one_line).unwrap_or_default();
            Reason::Unschedulable { message }
        }))
    }

    fn waiting(&self, reason: &str, message: String, container: &ContainerStatus) -> Evaluation {
        let is_retried = reason == "ErrImagePull";
        match reason {
            "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" | "ErrImagePull" => {
                let image = self.image.clone();
                let cause = match reason {
                    "InvalidImageName" => Pull::InvalidName,
                    _ => reason::pull_cause(&message),
                };
                let reason = Reason::ImagePullFailed { image, cause, message, is_retried };
                if is_retried {
                    return Evaluation::Waiting(Some(reason));
                }
                Evaluation::Settled(Observed::Failed { reason })
            }
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                Evaluation::Settled(Observed::Failed { reason: Reason::StartFailed { message } })
            }
            _ => {
                let last = container.last_state.clone().and_then(|last| last.terminated);
                last.map_or(Evaluation::Waiting(None), |end| {
                    self.exited(&end, container, "Running")
                })
            }
        }
    }

    fn exited(
        &self,
        end: &ContainerStateTerminated,
        container: &ContainerStatus,
        phase: &str,
    ) -> Evaluation {
        let is_oom = end.reason.as_deref() == Some("OOMKilled");
        let reason = match (end.reason.as_deref(), end.message.as_deref()) {
            // A missing command exits as a container that could not run.
            (Some("StartError" | "ContainerCannotRun"), Some(message)) => {
                Reason::StartFailed { message: one_line(message) }
            }
            _ => reason::exited(Some(end.exit_code), is_oom, self.ram_bytes),
        };
        if end.exit_code == 0 && self.restart != Restart::Always {
            return Evaluation::Settled(Observed::Completed);
        }
        if self.restart == Restart::Never || (self.is_job && phase == "Failed") {
            return Evaluation::Settled(Observed::Failed { reason });
        }
        let count = u32::try_from(container.restart_count).unwrap_or(0).saturating_add(1);
        let wait = FIRST_WAIT.saturating_mul(1 << (count - 1).min(10)).min(MAX_WAIT);
        Evaluation::Settled(Observed::Restarting {
            reason: reason::restarting(reason, wait, count),
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use model::reason::StatusReason as _;
    use serde_json::{Value, json};

    use super::*;

    fn workload(restart: Restart, is_job: bool) -> Workload {
        let (image, ram_bytes) = ("web:1".to_owned(), Some(32 << 20));
        let endpoints = vec!["10.0.0.1:80".to_owned()];
        Workload { image, restart, is_job, needs_readiness: false, ram_bytes, endpoints }
    }

    fn pod(status: &Value) -> PodSummary {
        let pod = json!({"metadata": {"name": "p", "labels": {"paddock.dev/replica": "x.0"}}, "status": status});
        PodSummary::new(&serde_json::from_value::<Pod>(pod).unwrap())
    }

    fn main(state: &Value, last: &Value) -> Value {
        json!({"phase": "Running", "containerStatuses": [{"name": "main", "image": "i", "imageID": "",
            "ready": false, "restartCount": 1, "state": state, "lastState": last}]})
    }

    /// Kind of evaluation, with the code of its reason.
    fn summary(evaluation: &Evaluation) -> (&'static str, &str) {
        match evaluation {
            Evaluation::Waiting(why) => ("waiting", why.as_ref().map_or("", Reason::code)),
            Evaluation::Settled(Observed::Failed { reason }) => ("failed", reason.code()),
            Evaluation::Settled(Observed::Restarting { reason }) => ("restarting", reason.code()),
            Evaluation::Settled(Observed::Running { endpoints }) => ("running", &endpoints[0]),
            Evaluation::Settled(_) => ("completed", ""),
        }
    }

    fn exited(code: i32) -> Reason {
        Reason::Exited { exit_code: Some(code), signal: None, oom_limit_bytes: None }
    }

    #[test]
    fn pod_states_are_evaluated() {
        let waiting =
            |reason: &str| json!({"waiting": {"reason": reason, "message": "no such image."}});
        let ended =
            |code: i32, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason}});
        let none = json!({});
        let unschedulable = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/3 nodes are available."}]});
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory."});
        for (status, always, job) in [
            (main(&json!({"running": {}}), &none), ("running", "10.0.0.1:80"), "running"),
            (main(&waiting("ContainerCreating"), &none), ("waiting", ""), "waiting"),
            (main(&waiting("ImagePullBackOff"), &none), ("failed", "ImagePullFailed"), "failed"),
            (main(&waiting("ErrImagePull"), &none), ("waiting", "ImagePullFailed"), "waiting"),
            (
                main(&waiting("CreateContainerConfigError"), &none),
                ("failed", "StartFailed"),
                "failed",
            ),
            (
                main(&waiting("CrashLoopBackOff"), &ended(3, "Error")),
                ("restarting", "Exited"),
                "restarting",
            ),
            (
                main(&waiting("CrashLoopBackOff"), &ended(137, "OOMKilled")),
                ("restarting", "OOMKilled"),
                "restarting",
            ),
            (main(&ended(0, "Completed"), &none), ("restarting", "Exited"), "completed"),
            (main(&ended(128, "StartError"), &none), ("restarting", "Exited"), "restarting"),
            (unschedulable, ("waiting", "Unschedulable"), "waiting"),
            (evicted, ("waiting", "PodFailed"), "failed"),
            (json!({"phase": "Pending"}), ("waiting", ""), "waiting"),
        ] {
            let pod = pod(&status);
            let always_restarted = workload(Restart::Always, false).evaluate(&[&pod]);
            assert_eq!(summary(&always_restarted), always, "{status}");
            let on_failure = workload(Restart::OnFailure, true).evaluate(&[&pod]);
            assert_eq!(summary(&on_failure).0, job, "{status}");
        }
        let exited_pod = pod(&main(&ended(3, "Error"), &none));
        assert_eq!(
            workload(Restart::Never, true).evaluate(&[&exited_pod]),
            Evaluation::Settled(Observed::Failed { reason: exited(3) })
        );
        assert_eq!(workload(Restart::Always, false).evaluate(&[]), Evaluation::Waiting(None));
    }

    #[test]
    fn messages_of_pods_are_in_the_reasons() {
        let always = workload(Restart::Always, false);
        let none = json!({});
        let start_error =
            json!({"terminated": {"exitCode": 128, "reason": "StartError", "message": "No."}});
        for (status, expected) in [
            (
                main(
                    &json!({"waiting": {"reason": "ErrImagePull", "message": "not found."}}),
                    &none,
                ),
                Evaluation::Waiting(Some(Reason::ImagePullFailed {
                    image: "web:1".into(),
                    cause: Pull::NotFound,
                    message: "not found".into(),
                    is_retried: true,
                })),
            ),
            (
                main(
                    &json!({"waiting": {"reason": "CrashLoopBackOff"}}),
                    &json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
                ),
                Evaluation::Settled(Observed::Restarting {
                    reason: Reason::CrashLoopBackOff {
                        last: Box::new(Reason::OOMKilled { limit_bytes: Some(32 << 20) }),
                        retry_in_ms: Some(20_000),
                        restarts: Some(2),
                    },
                }),
            ),
            (
                main(&start_error, &none),
                Evaluation::Settled(Observed::Restarting {
                    reason: Reason::CrashLoopBackOff {
                        last: Box::new(Reason::StartFailed { message: "No".into() }),
                        retry_in_ms: Some(20_000),
                        restarts: Some(2),
                    },
                }),
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory."}),
                Evaluation::Waiting(Some(Reason::PodFailed {
                    reason: "Evicted".into(),
                    message: "low on memory".into(),
                })),
            ),
        ] {
            assert_eq!(always.evaluate(&[&pod(&status)]), expected, "{status}");
        }
    }

    #[test]
    fn replica_with_a_readiness_check_runs_when_it_passes() {
        let mut workload = workload(Restart::Always, false);
        workload.needs_readiness = true;
        let mut status = main(&json!({"running": {}}), &json!({}));
        assert_eq!(workload.evaluate(&[&pod(&status)]), Evaluation::Waiting(None));
        status["containerStatuses"][0]["ready"] = json!(true);
        assert_eq!(summary(&workload.evaluate(&[&pod(&status)])), ("running", "10.0.0.1:80"));
    }
}
