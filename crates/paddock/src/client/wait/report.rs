//! What a wait says when it ends before its goal: where the subject is, why, and what to do next.

use std::time::Duration;

use wire::deployment::ReplicaStatus;
use wire::subject::{ResourceState, State, Subject};

use crate::client::error::Error;
use crate::client::hint;
use crate::client::subject::Kind;
use crate::client::table;

/// More reasons than this help nobody.
const MAX_CAUSES: usize = 3;
/// Of so many failed resources the end of the log is shown.
const MAX_LOGS: usize = 2;

/// A status with its reason.
pub(super) fn text(status: &str, reason: &str) -> String {
    match (status, reason) {
        ("", _) => "unknown".into(),
        (status, "") => status.into(),
        (status, reason) => format!("{status}: {reason}"),
    }
}

/// Where the subject is when time is up.
pub(super) fn still(label: &str, state: &State, limit: Duration) -> String {
    let status = text(&state.status, "");
    let still = format!("{label} is still {status} after {} s", limit.as_secs());
    text(&still, state.reason())
}

/// Whatever happens to the client, the server goes on: where to see it.
pub(super) fn goes_on(kind: &Kind<'_>, subject: &Subject, state: &State) -> String {
    let verb = if is_pending(state) { "explain" } else { "show" };
    let which = if kind.parts.is_some() { subject.label() } else { &subject.id };
    format!(r#"it goes on by itself: run "paddock {} {verb} {which}""#, kind.command)
}

/// Whether a deployment, or a replica of it, waits for capacity: then `explain` tells more.
fn is_pending(state: &State) -> bool {
    let replicas = state.replica_statuses.iter().flatten().map(|replica| &replica.status);
    replicas.chain([&state.status]).any(|status| matches!(status.as_str(), "queued" | "preempted"))
}

/// Why the goal was missed, and the next step.
pub(super) fn failure(kind: &Kind<'_>, subject: &Subject, state: &State) -> Error {
    let text = text(&state.status, state.reason());
    let what = format!("{} {} {text}{}{}", kind.word, subject.label(), causes(state), logs(state));
    match next(kind, subject, state) {
        Some(next) => Error::failed_but(what, next),
        None => Error::failed(what),
    }
}

/// What failed replicas say beyond the deployment's own reason: one may only have been stopped
/// because of another.
fn causes(state: &State) -> String {
    let mut causes: Vec<&ReplicaStatus> = Vec::new();
    let replicas = state.replica_statuses.iter().flatten();
    for replica in replicas.filter(|replica| replica.status == "failed") {
        let is_told = state.reason().contains(&replica.status_reason)
            || causes.iter().any(|cause| cause.status_reason == replica.status_reason);
        if !is_told && causes.len() < MAX_CAUSES {
            causes.push(replica);
        }
    }
    let line = |one: &&ReplicaStatus| format!("\n  replica {}: {}", one.number, one.status_reason);
    causes.iter().map(line).collect()
}

/// The end of the logs of failed resources.
fn logs(state: &State) -> String {
    let log = |resource: &ResourceState| {
        let lines = resource.last_log.iter().map(|line| table::clean(line));
        let lines = lines.collect::<Vec<_>>().join("\n    ");
        (!lines.is_empty()).then(|| format!("\n  {} said last:\n    {lines}", resource.name))
    };
    failed(state).take(MAX_LOGS).filter_map(log).collect()
}

fn failed(state: &State) -> impl Iterator<Item = &ResourceState> {
    state.resources.iter().filter(|resource| resource.status == "failed")
}

/// The next step after a failure.
fn next(kind: &Kind<'_>, subject: &Subject, state: &State) -> Option<String> {
    let (id, name) = (&subject.id, subject.label());
    match kind.event {
        "deployment" => Some(format!(r#""paddock deployment logs {id}" may say more"#)),
        "instance" => {
            Some(format!(r#""paddock {} delete {id}" makes room to try again"#, kind.command))
        }
        "cluster" => hint::of_cluster(id, "failed", None),
        "environment" => Some(next_of_environment(name, failed(state).next())),
        _ => None,
    }
}

fn next_of_environment(name: &str, failed: Option<&ResourceState>) -> String {
    let retry = format!(r#""paddock env retry {name} --wait""#);
    let Some(resource) = failed else {
        return format!(r#""paddock env show {name}" says more; {retry} goes on"#);
    };
    let deployment = resource.link.as_ref().filter(|link| link.kind == "deployment");
    let deployment =
        deployment.map(|link| format!(r#" and "paddock deployment logs {}""#, link.id));
    let (resource, deployment) = (&resource.name, deployment.unwrap_or_default());
    format!(
        r#""paddock env logs {name} {resource}"{deployment} may say more; when it is mended, run {retry}"#
    )
}

#[cfg(test)]
pub(super) mod tests {
    use wire::subject::Link;

    use super::*;

    /// A replica without a place.
    pub(in super::super) fn replica(number: u32, status: &str, reason: &str) -> ReplicaStatus {
        ReplicaStatus {
            number,
            status: status.into(),
            status_reason: reason.into(),
            reason_code: String::new(),
            cluster_id: None,
            node: None,
            endpoints: Vec::new(),
            started_at: None,
        }
    }

    #[test]
    fn a_failure_tells_what_its_first_replica_does_not() {
        let stopped = "Stopped, because replica 1 failed.";
        for (replicas, want) in [
            (vec![], ""),
            (vec![replica(0, "failed", stopped), replica(1, "running", "It runs.")], ""),
            (
                vec![
                    replica(0, "failed", stopped),
                    replica(1, "failed", "No such image."),
                    replica(2, "failed", stopped),
                    replica(3, "failed", "No such image."),
                ],
                "\n  replica 1: No such image.",
            ),
        ] {
            let state = State {
                status_reason: Some(format!("Replica 0: {stopped}")),
                replica_statuses: Some(replicas),
                ..State::default()
            };
            assert_eq!(causes(&state), want);
        }
    }

    #[test]
    fn a_failed_environment_names_the_next_step() {
        let resource = |link: Option<Link>| ResourceState {
            name: "web".into(),
            status: "failed".into(),
            link,
            ..ResourceState::default()
        };
        assert_eq!(
            next_of_environment("shop", None),
            r#""paddock env show shop" says more; "paddock env retry shop --wait" goes on"#
        );
        assert_eq!(
            next_of_environment("shop", Some(&resource(None))),
            "\"paddock env logs shop web\" may say more; when it is mended, run \
             \"paddock env retry shop --wait\""
        );
        let linked = resource(Some(Link { kind: "deployment".into(), id: "d1".into() }));
        let words = "\"paddock env logs shop web\" and \"paddock deployment logs d1\" may say more";
        assert!(next_of_environment("shop", Some(&linked)).starts_with(words));
    }
}
