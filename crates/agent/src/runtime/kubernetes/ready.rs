//! Is an object what it shall be? By its own status. Pure.

use kube::core::DynamicObject;
use model::deployment::Reason;
use serde_json::Value;

use super::fault::one_line;
use super::object::Place;

/// How an object is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// Not yet; what it says itself, if it does.
    Waiting(Option<Said>),
    Failed(Said),
    /// It ran to its end.
    Completed,
}

/// What a condition of an object says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) reason: String,
    pub(super) message: String,
}

impl Said {
    fn of(condition: &Value) -> Self {
        let text = |field: &str| condition[field].as_str().map(one_line).unwrap_or_default();
        Self { reason: text("reason"), message: text("message") }
    }

    /// Its subject failed.
    pub(super) fn failed(self) -> Reason {
        let reason = if self.reason.is_empty() { "Unknown".to_owned() } else { self.reason };
        Reason::PodFailed { reason, message: self.message }
    }

    /// The object at `place` is not ready.
    pub(super) fn unready(self, place: &Place) -> Reason {
        let parts = [place.words(), self.reason, self.message];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let message = parts.join(": ");
        Reason::ReadinessCheckFailed { port: None, within_seconds: None, message }
    }
}

/// Is that a kind whose objects are ready at some time after they were made? The others just exist.
pub(super) fn is_watched(group: &str, kind: &str) -> bool {
    let is_own = group.is_empty() || !group.contains('.') || group.ends_with(".k8s.io");
    let works = ["Deployment", "StatefulSet", "DaemonSet", "Job"].contains(&kind);
    !is_own || (matches!(group, "apps" | "batch") && works)
}

/// How an object is doing, by its kind.
pub(super) fn state(kind: &str, object: &DynamicObject) -> State {
    let status = &object.data["status"];
    // What is said of what it was before counts for nothing.
    if let (Some(seen), Some(now)) =
        (status["observedGeneration"].as_i64(), object.metadata.generation)
        && seen < now
    {
        return State::Waiting(None);
    }
    let wanted = object.data["spec"]["replicas"].as_i64().unwrap_or(1);
    let has = |field: &str| status[field].as_i64().unwrap_or(0);
    match kind {
        "Deployment" => deployment(status, has("updatedReplicas") >= wanted),
        "StatefulSet" => counted(
            has("readyReplicas") >= wanted
                && has("currentReplicas") + has("updatedReplicas") >= wanted,
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
    let all = status["conditions"].as_array()?;
    all.iter().find(|one| one["type"] == kind && one["status"] == value)
}

fn deployment(status: &Value, is_new: bool) -> State {
    if condition(status, "Available", "True").is_some() && is_new {
        return State::Ready;
    }
    let late = condition(status, "Progressing", "False");
    if let Some(late) = late.filter(|late| late["reason"] == "ProgressDeadlineExceeded") {
        return State::Failed(Said::of(late));
    }
    State::Waiting(condition(status, "ReplicaFailure", "True").map(Said::of))
}

fn job(status: &Value) -> State {
    if condition(status, "Complete", "True").is_some() {
        return State::Completed;
    }
    match condition(status, "Failed", "True") {
        Some(failed) => State::Failed(Said::of(failed)),
        None if status["active"].as_i64().unwrap_or(0) > 0 => State::Ready,
        None => State::Waiting(None),
    }
}

/// Operators say `Ready`; what hinders them they say there, or in a condition of its own.
fn custom(status: &Value) -> State {
    if condition(status, "Ready", "True").is_some() {
        return State::Ready;
    }
    for bad in ["Failed", "Error"] {
        if let Some(failed) = condition(status, bad, "True") {
            return State::Failed(Said::of(failed));
        }
    }
    let why = condition(status, "Ready", "False").or_else(|| condition(status, "NotReady", "True"));
    let is_empty = |said: &Said| said.reason.is_empty() && said.message.is_empty();
    State::Waiting(why.map(Said::of).filter(|said| !is_empty(said)))
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
    fn what_objects_say() {
        let is = |kind: &str, value: &str| json!({"type": kind, "status": value, "reason": "Why", "message": "So."});
        let with = |condition: Value| json!({"observedGeneration": 2, "updatedReplicas": 2, "conditions": [condition]});
        let said =
            |reason: &str, message: &str| Said { reason: reason.into(), message: message.into() };
        let failed = State::Failed(said("Why", "So"));
        let waiting = State::Waiting(Some(said("Why", "So")));
        check("Deployment", &with(is("Available", "True")), &State::Ready);
        check("Deployment", &with(is("ReplicaFailure", "True")), &waiting);
        let late =
            json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"});
        check("Deployment", &with(late), &State::Failed(said("ProgressDeadlineExceeded", "")));
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
