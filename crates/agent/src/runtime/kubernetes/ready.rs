//! Readiness of objects, by their own status. Pure.

use kube::core::DynamicObject;
use model::deployment::Reason;
use serde_json::Value;

use super::fault::one_line;
use super::object::ObjectRef;

/// Readiness of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// Not ready yet; the object's own message, if any.
    Waiting(Option<Message>),
    Failed(Message),
    /// Ran to completion.
    Completed,
}

/// Reason and message of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) reason: String,
    pub(super) message: String,
}

impl Message {
    fn new(condition: &Value) -> Self {
        let text = |field: &str| condition[field].as_str().map(one_line).unwrap_or_default();
        Self { reason: text("reason"), message: text("message") }
    }

    /// The object failed.
    pub(super) fn failed(self) -> Reason {
        let reason = if self.reason.is_empty() { "Unknown".to_owned() } else { self.reason };
        Reason::PodFailed { reason, message: self.message }
    }

    /// The object is not ready.
    pub(super) fn unready(self, object: &ObjectRef) -> Reason {
        let parts = [object.to_string(), self.reason, self.message];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let message = parts.join(": ");
        Reason::ReadinessCheckFailed { port: None, within_seconds: None, message }
    }
}

/// Whether objects of this kind become ready some time after their creation. Others just exist.
pub(super) fn is_watched(group: &str, kind: &str) -> bool {
    let is_builtin = group.is_empty() || !group.contains('.') || group.ends_with(".k8s.io");
    let is_workload = ["Deployment", "StatefulSet", "DaemonSet", "Job"].contains(&kind);
    !is_builtin || (matches!(group, "apps" | "batch") && is_workload)
}

/// Readiness of an object, by its kind.
pub(super) fn state(kind: &str, object: &DynamicObject) -> State {
    let status = &object.data["status"];
    // A status of an older generation does not count.
    if let (Some(observed), Some(now)) =
        (status["observedGeneration"].as_i64(), object.metadata.generation)
        && observed < now
    {
        return State::Waiting(None);
    }
    let desired = object.data["spec"]["replicas"].as_i64().unwrap_or(1);
    let has = |field: &str| status[field].as_i64().unwrap_or(0);
    match kind {
        "Deployment" => deployment(status, has("updatedReplicas") >= desired),
        "StatefulSet" => counted(
            has("readyReplicas") >= desired
                && has("currentReplicas") + has("updatedReplicas") >= desired,
        ),
        "DaemonSet" => counted(
            status["observedGeneration"].is_i64()
                && has("numberReady") >= has("desiredNumberScheduled"),
        ),
        "Job" => job(status),
        _ => custom(status),
    }
}

fn counted(is_ready: bool) -> State {
    if is_ready { State::Ready } else { State::Waiting(None) }
}

fn condition<'a>(status: &'a Value, kind: &str, value: &str) -> Option<&'a Value> {
    let conditions = status["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == value)
}

fn deployment(status: &Value, is_updated: bool) -> State {
    if condition(status, "Available", "True").is_some() && is_updated {
        return State::Ready;
    }
    let late = condition(status, "Progressing", "False");
    if let Some(late) = late.filter(|late| late["reason"] == "ProgressDeadlineExceeded") {
        return State::Failed(Message::new(late));
    }
    State::Waiting(condition(status, "ReplicaFailure", "True").map(Message::new))
}

fn job(status: &Value) -> State {
    if condition(status, "Complete", "True").is_some() {
        return State::Completed;
    }
    match condition(status, "Failed", "True") {
        Some(failed) => State::Failed(Message::new(failed)),
        None if status["active"].as_i64().unwrap_or(0) > 0 => State::Ready,
        None => State::Waiting(None),
    }
}

/// Operators set `Ready`; they explain failures there or in a separate condition.
fn custom(status: &Value) -> State {
    if condition(status, "Ready", "True").is_some() {
        return State::Ready;
    }
    for bad in ["Failed", "Error"] {
        if let Some(failed) = condition(status, bad, "True") {
            return State::Failed(Message::new(failed));
        }
    }
    let why = condition(status, "Ready", "False").or_else(|| condition(status, "NotReady", "True"));
    let is_empty = |message: &Message| message.reason.is_empty() && message.message.is_empty();
    State::Waiting(why.map(Message::new).filter(|message| !is_empty(message)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kind: &str, status: &Value, expected: &State) {
        let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "generation": 2},
            "spec": {"replicas": 2}, "status": status});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        assert_eq!(state(kind, &object), *expected, "{kind} {status}");
    }

    #[test]
    fn readiness_follows_conditions_and_counts() {
        let is = |kind: &str, value: &str| json!({"type": kind, "status": value, "reason": "Why", "message": "So."});
        let with = |condition: Value| json!({"observedGeneration": 2, "updatedReplicas": 2, "conditions": [condition]});
        let message =
            |reason: &str, text: &str| Message { reason: reason.into(), message: text.into() };
        let failed = State::Failed(message("Why", "So"));
        let waiting = State::Waiting(Some(message("Why", "So")));
        check("Deployment", &with(is("Available", "True")), &State::Ready);
        check("Deployment", &with(is("ReplicaFailure", "True")), &waiting);
        let late =
            json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"});
        check("Deployment", &with(late), &State::Failed(message("ProgressDeadlineExceeded", "")));
        let mut old = with(is("Available", "True"));
        old["observedGeneration"] = json!(1);
        check("Deployment", &old, &State::Waiting(None));
        check("StatefulSet", &json!({"readyReplicas": 1}), &State::Waiting(None));
        check("StatefulSet", &json!({"readyReplicas": 2, "updatedReplicas": 2}), &State::Ready);
        check("Job", &with(is("Complete", "True")), &State::Completed);
        check("Job", &with(is("Failed", "True")), &failed);
        check("Kettle", &json!({}), &State::Waiting(None));
        check("Kettle", &with(is("Ready", "True")), &State::Ready);
        check("Kettle", &with(is("Ready", "False")), &waiting);
        check("Kettle", &with(is("NotReady", "True")), &waiting);
        check("Kettle", &with(is("Failed", "True")), &failed);
    }
}
