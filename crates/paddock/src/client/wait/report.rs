//! Errors of a wait that ends before its goal: status, cause and hint.

use std::time::Duration;

use wire::deployment::ReplicaStatus;
use wire::subject::{ResourceState, State, Subject};

use crate::client::error::Error;
use crate::client::hint;
use crate::client::subject::Kind;
use crate::client::table;

/// Maximum number of replica failures to show.
const MAX_CAUSES: usize = 3;
/// Maximum number of failed resources whose log tail is shown.
const MAX_LOGS: usize = 2;

/// A status with its reason.
pub(super) fn text(status: &str, reason: &str) -> String {
    match (status, reason) {
        ("", _) => "unknown".into(),
        (status, "") => status.into(),
        (status, reason) => format!("{status}: {reason}"),
    }
}

/// Message of a timeout.
pub(super) fn timed_out(label: &str, state: &State, limit: Duration) -> String {
    let status = text(&state.status, "");
    let message = format!("{label} is still {status} after {} s", limit.as_secs());
    text(&message, state.reason())
}

/// Hint that the operation continues at the server.
pub(super) fn continues(kind: &Kind<'_>, subject: &Subject, state: &State) -> String {
    let verb = if is_pending(state) { "explain" } else { "show" };
    let which = if kind.parts.is_some() { subject.label() } else { &subject.id };
    format!(
        r#"the operation continues; to check it, run "paddock {} {verb} {which}""#,
        kind.command
    )
}

/// Whether a deployment, or one of its replicas, is pending, so that `explain` has details.
fn is_pending(state: &State) -> bool {
    let replicas = state.replica_statuses.iter().flatten().map(|replica| &replica.status);
    replicas.chain([&state.status]).any(|status| matches!(status.as_str(), "queued" | "preempted"))
}

/// Error for a subject that failed.
pub(super) fn failure(kind: &Kind<'_>, subject: &Subject, state: &State) -> Error {
    let text = text(&state.status, state.reason());
    let (causes, logs) = (causes(state), logs(state));
    let message = format!("{} {} {text}{causes}{logs}", kind.noun, subject.label());
    match failure_hint(kind, subject, state) {
        Some(hint) => Error::failed_with_hint(message, hint),
        None => Error::failed(message),
    }
}

/// Reasons of failed replicas that the deployment's reason does not include: a replica may have
/// been stopped because another one failed.
fn causes(state: &State) -> String {
    let mut causes: Vec<&ReplicaStatus> = Vec::new();
    let replicas = state.replica_statuses.iter().flatten();
    for replica in replicas.filter(|replica| replica.status == "failed") {
        let is_known = state.reason().contains(&replica.status_reason)
            || causes.iter().any(|cause| cause.status_reason == replica.status_reason);
        if !is_known && causes.len() < MAX_CAUSES {
            causes.push(replica);
        }
    }
    let line = |r: &&ReplicaStatus| format!("\n  replica {}: {}", r.number, r.status_reason);
    causes.iter().map(line).collect()
}

/// Log tails of failed resources.
fn logs(state: &State) -> String {
    let log = |resource: &ResourceState| {
        let lines = resource.last_log.iter().map(|line| table::clean(line));
        let lines = lines.collect::<Vec<_>>().join("\n    ");
        (!lines.is_empty())
            .then(|| format!("\n  last log lines of {}:\n    {lines}", resource.name))
    };
    failed(state).take(MAX_LOGS).filter_map(log).collect()
}

fn failed(state: &State) -> impl Iterator<Item = &ResourceState> {
    state.resources.iter().filter(|resource| resource.status == "failed")
}

/// Hint after a failure.
fn failure_hint(kind: &Kind<'_>, subject: &Subject, state: &State) -> Option<String> {
    let (id, name) = (&subject.id, subject.label());
    match kind.event {
        "deployment" => Some(hint::for_deployment(id, &state.reason_code, state.image.as_deref())),
        "instance" => Some(format!(
            r#"delete it before you retry: run "paddock {} delete {id}""#,
            kind.command
        )),
        "cluster" => hint::for_cluster(id, "failed", None),
        "environment" => Some(environment_hint(name, failed(state).next())),
        _ => None,
    }
}

fn environment_hint(name: &str, failed: Option<&ResourceState>) -> String {
    let retry = format!(r#""paddock env retry {name} --wait""#);
    let Some(resource) = failed else {
        return format!(r#"check "paddock env show {name}", then run {retry}"#);
    };
    let deployment = resource.link.as_ref().filter(|link| link.kind == "deployment");
    let deployment =
        deployment.map(|link| format!(r#" and "paddock deployment logs {}""#, link.id));
    let (resource, deployment) = (&resource.name, deployment.unwrap_or_default());
    format!(
        r#"check "paddock env logs {name} {resource}"{deployment}, fix the cause, then run {retry}"#
    )
}

#[cfg(test)]
pub(super) mod tests {
    use wire::subject::Link;

    use super::*;

    /// A replica without cluster and node.
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
    fn failure_lists_further_replica_reasons() {
        let stopped = "Stopped, because replica 1 failed.";
        for (replicas, want) in [
            (vec![], ""),
            (vec![replica(0, "failed", stopped), replica(1, "running", "")], ""),
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
    fn failed_environment_has_a_hint() {
        let resource = |link: Option<Link>| ResourceState {
            name: "web".into(),
            status: "failed".into(),
            link,
            ..ResourceState::default()
        };
        assert_eq!(
            environment_hint("shop", None),
            r#"check "paddock env show shop", then run "paddock env retry shop --wait""#
        );
        assert_eq!(
            environment_hint("shop", Some(&resource(None))),
            "check \"paddock env logs shop web\", fix the cause, then run \
             \"paddock env retry shop --wait\""
        );
        let linked = resource(Some(Link { kind: "deployment".into(), id: "d1".into() }));
        let hint = "check \"paddock env logs shop web\" and \"paddock deployment logs d1\", fix";
        assert!(environment_hint("shop", Some(&linked)).starts_with(hint));
    }
}
