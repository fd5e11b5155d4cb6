//! How a replica is doing, by what its pods and objects say. Pure.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus};
use model::agent::Observed;
use model::deployment::{Pull, Reason, Restart};

use super::fault::one_line;
use super::pod::Seen;
use crate::reason;

/// How long a kubelet waits before it starts a program again: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_secs(10);
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// How it looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// Not there yet; what it waits for, if that is worth saying.
    Waiting(Option<Reason>),
    /// So.
    Is(Observed),
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
            return Look::Is(Observed::Completed);
        }
        match state {
            ContainerState { running: Some(_), .. } if self.must_answer && !container.ready => {
                Look::Waiting(None)
            }
            ContainerState { running: Some(_), .. } => {
                Look::Is(Observed::Running { endpoints: self.endpoints.clone() })
            }
            ContainerState { terminated: Some(end), .. } => {
                self.ended(&end, container, pod.phase())
            }
            ContainerState { waiting: Some(waiting), .. } => {
                let said = waiting.message.as_deref().map(one_line).unwrap_or_default();
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
            let reason = pod.status.reason.clone().unwrap_or_else(|| "Unknown".to_owned());
            let message = pod.status.message.as_deref().map(one_line).unwrap_or_default();
            let reason = Reason::PodFailed { reason, message };
            if self.is_job {
                return Look::Is(Observed::Failed { reason });
            }
            return Look::Waiting(Some(reason));
        }
        let conditions = pod.status.conditions.as_deref().unwrap_or_default();
        let unplaced = conditions
            .iter()
            .find(|c| c.status == "False" && c.reason.as_deref() == Some("Unschedulable"));
        Look::Waiting(unplaced.map(|condition| {
            let message = condition.message.as_deref().map(one_line).unwrap_or_default();
            Reason::Unschedulable { message }
        }))
    }

    fn waiting(&self, reason: &str, message: String, container: &ContainerStatus) -> Look {
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
                    return Look::Waiting(Some(reason));
                }
                Look::Is(Observed::Failed { reason })
            }
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                Look::Is(Observed::Failed { reason: Reason::StartFailed { message } })
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
                Reason::StartFailed { message: one_line(said) }
            }
            _ => reason::ended(Some(end.exit_code), is_oom, self.ram_bytes),
        };
        if end.exit_code == 0 && self.restart != Restart::Always {
            return Look::Is(Observed::Completed);
        }
        if self.restart == Restart::Never || (self.is_job && phase == "Failed") {
            return Look::Is(Observed::Failed { reason: how });
        }
        let count = u32::try_from(container.restart_count).unwrap_or(0).saturating_add(1);
        let wait = FIRST_WAIT.saturating_mul(1 << (count - 1).min(10)).min(LONGEST_WAIT);
        Look::Is(Observed::Restarting { reason: reason::restarting(how, wait, count) })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use model::reason::Coded as _;
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

    /// What it is, with the code of why.
    fn told(look: &Look) -> (&'static str, &str) {
        match look {
            Look::Waiting(why) => ("waiting", why.as_ref().map_or("", Reason::code)),
            Look::Is(Observed::Failed { reason }) => ("failed", reason.code()),
            Look::Is(Observed::Restarting { reason }) => ("restarting", reason.code()),
            Look::Is(Observed::Running { endpoints }) => ("running", &endpoints[0]),
            Look::Is(_) => ("completed", ""),
        }
    }

    fn exited(code: i32) -> Reason {
        Reason::Exited { exit_code: Some(code), signal: None, oom_limit_bytes: None }
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
            (unplaced, ("waiting", "Unschedulable"), "waiting"),
            (evicted, ("waiting", "PodFailed"), "failed"),
            (json!({"phase": "Pending"}), ("waiting", ""), "waiting"),
        ] {
            let pod = pod(&status);
            let one = facts(Restart::Always, false).judge(&[&pod]);
            assert_eq!(told(&one), always, "{status}");
            let other = facts(Restart::OnFailure, true).judge(&[&pod]);
            assert_eq!(told(&other).0, job, "{status}");
        }
        let over = pod(&main(&ended(3, "Error"), &none));
        assert_eq!(
            facts(Restart::Never, true).judge(&[&over]),
            Look::Is(Observed::Failed { reason: exited(3) })
        );
        assert_eq!(facts(Restart::Always, false).judge(&[]), Look::Waiting(None));
    }

    #[test]
    fn what_pods_say_is_in_the_reasons() {
        let always = facts(Restart::Always, false);
        let none = json!({});
        let said =
            json!({"terminated": {"exitCode": 128, "reason": "StartError", "message": "No."}});
        for (status, expected) in [
            (
                main(
                    &json!({"waiting": {"reason": "ErrImagePull", "message": "not found."}}),
                    &none,
                ),
                Look::Waiting(Some(Reason::ImagePullFailed {
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
                Look::Is(Observed::Restarting {
                    reason: Reason::CrashLoopBackOff {
                        last: Box::new(Reason::OOMKilled { limit_bytes: Some(32 << 20) }),
                        retry_in_ms: Some(20_000),
                        restarts: Some(2),
                    },
                }),
            ),
            (
                main(&said, &none),
                Look::Is(Observed::Restarting {
                    reason: Reason::CrashLoopBackOff {
                        last: Box::new(Reason::StartFailed { message: "No".into() }),
                        retry_in_ms: Some(20_000),
                        restarts: Some(2),
                    },
                }),
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory."}),
                Look::Waiting(Some(Reason::PodFailed {
                    reason: "Evicted".into(),
                    message: "low on memory".into(),
                })),
            ),
        ] {
            assert_eq!(always.judge(&[&pod(&status)]), expected, "{status}");
        }
    }

    #[test]
    fn who_must_answer_runs_when_it_does() {
        let mut facts = facts(Restart::Always, false);
        facts.must_answer = true;
        let mut status = main(&json!({"running": {}}), &json!({}));
        assert_eq!(facts.judge(&[&pod(&status)]), Look::Waiting(None));
        status["containerStatuses"][0]["ready"] = json!(true);
        assert_eq!(told(&facts.judge(&[&pod(&status)])), ("running", "10.0.0.1:80"));
    }
}
