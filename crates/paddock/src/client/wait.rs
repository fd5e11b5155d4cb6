//! `--wait`: follows a subject until it is where it should be, or can't get there.

use std::time::Duration;

use model::Time;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::call::Call;
use super::error::Error;
use super::follow::Follow;
use super::http::Api;
use super::progress::Progress;
use super::subject::{Kind, Subject};

/// Whether, and how long, a command waits.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Wait {
    /// Waits until it is done, at most this long [without a number: 600]
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "600",
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    wait: Option<u64>,
}

impl Wait {
    /// How long to wait, if at all.
    pub(crate) fn limit(self) -> Option<Duration> {
        self.wait.map(Duration::from_secs)
    }
}

/// Where the subject should get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// To a status that is good to be in.
    Up,
    /// Away.
    Gone,
    /// Empty: a cluster that is being drained.
    Empty,
}

/// Where it is.
#[derive(Debug, Clone, Default, Deserialize)]
struct State {
    status: String,
    #[serde(default)]
    status_reason: Option<String>,
    #[serde(default)]
    updated_at: Option<Time>,
    /// How many deployments are on it; only clusters have that.
    #[serde(default)]
    deployments: Option<i64>,
    /// Is it being drained? Only clusters are.
    #[serde(default)]
    draining_at: Option<Time>,
    /// How many of it there should be; only deployments have these.
    #[serde(default)]
    replicas: Option<usize>,
    /// Each of them; events don't tell.
    #[serde(default)]
    replica_statuses: Option<Vec<Part>>,
}

/// Where one replica is.
#[derive(Debug, Clone, Deserialize)]
struct Part {
    #[serde(default)]
    number: u32,
    status: String,
    #[serde(default)]
    status_reason: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Reached,
    Failed,
    NotYet,
    /// It may be reached: only a look at each replica tells.
    Look,
}

/// More reasons than this help nobody.
const MAX_CAUSES: usize = 3;

/// The status of what no longer exists.
const DELETED: &str = "deleted";

/// Waits until `subject` has reached the goal.
pub(crate) async fn wait(
    api: &Api,
    kind: &Kind<'_>,
    subject: &Subject,
    goal: Goal,
    limit: Duration,
) -> Result<(), Error> {
    let label = format!("{} {}", kind.word, subject.label());
    let mut watch = Watch {
        api,
        kind,
        subject,
        goal,
        state: State::default(),
        progress: Progress::new(&label),
    };
    let outcome = timeout(limit, watch.run_and_ask_why()).await;
    let state = std::mem::take(&mut watch.state);
    drop(watch);
    // Whatever happens to us, the server goes on with what it was asked for.
    let verb = if state.is_waiting() { "explain" } else { "show" };
    let goes_on =
        format!(r#"it goes on by itself: run "paddock {} {verb} {}""#, kind.command, subject.id);
    match outcome {
        Ok(Ok(Verdict::Reached)) => Ok(()),
        Ok(Ok(_)) => {
            Err(kind.failure(subject, format!("{label} {}{}", state.text(), state.causes())))
        }
        Ok(Err(error)) => {
            let what = format!("{label} can't be followed any more: {}", error.what());
            Err(Error::failed_but(what, goes_on))
        }
        Err(_) => Err(Error::failed_but(state.still(&label, limit), goes_on)),
    }
}

struct Watch<'a> {
    api: &'a Api,
    kind: &'a Kind<'a>,
    subject: &'a Subject,
    goal: Goal,
    state: State,
    progress: Progress,
}

impl Watch<'_> {
    /// The same as `run`; of a failure it also learns what each replica says.
    async fn run_and_ask_why(&mut self) -> Result<Verdict, Error> {
        let verdict = self.run().await?;
        if verdict == Verdict::Failed
            && self.state.replicas.is_some()
            && let Ok(state) = self.look().await
            && state.status == self.state.status
        {
            self.state = state;
        }
        Ok(verdict)
    }

    async fn run(&mut self) -> Result<Verdict, Error> {
        let call = Call::get(&["events"])
            .query("kind", Some(self.kind.event))
            .query("subject", Some(&self.subject.id));
        let mut stream = Follow::open(self.api, call).await?;
        // The stream tells what happens from now on; what happened before it was open, one look
        // tells. In this order nothing is missed.
        let mut state = Some(self.look().await?);
        loop {
            match state.map_or(Verdict::NotYet, |state| self.enter(state)) {
                Verdict::NotYet => {}
                Verdict::Look => match self.look().await.map(|state| self.enter(state))? {
                    Verdict::NotYet => {}
                    verdict => return Ok(verdict),
                },
                verdict => return Ok(verdict),
            }
            let event = read_event(&stream.next().await?.data);
            state = event.filter(|state| !state.is_older_than(&self.state));
        }
    }

    fn enter(&mut self, state: State) -> Verdict {
        let verdict = judge(self.goal, self.kind, &state);
        self.progress.show(&state.text());
        self.state = state;
        verdict
    }

    async fn look(&self) -> Result<State, Error> {
        match self.api.send(&Call::get(&[self.kind.path, &self.subject.id])).await {
            Ok(answer) => self.api.read(&answer),
            Err(error) if error.status() == Some(404) => Ok(State::deleted()),
            Err(error) => Err(error),
        }
    }
}

impl State {
    fn deleted() -> Self {
        Self { status: DELETED.into(), ..Self::default() }
    }

    /// Whether it was before `other`: events may tell what the first look has already seen.
    fn is_older_than(&self, other: &Self) -> bool {
        self.updated_at.zip(other.updated_at).is_some_and(|(this, other)| this < other)
    }

    /// Whether all replicas are there and none is on its way out; nobody knows without a look.
    fn is_complete(&self, kind: &Kind<'_>) -> Option<bool> {
        let Some(replicas) = self.replicas else { return Some(true) };
        let parts = self.replica_statuses.as_ref()?;
        let is_up = |part: &Part| kind.up.contains(&part.status.as_str());
        Some(parts.len() == replicas && parts.iter().all(is_up))
    }

    /// Whether it, or a part of it, waits for room: then more can be told than its status. Only
    /// deployments do.
    fn is_waiting(&self) -> bool {
        let parts = self.replica_statuses.iter().flatten().map(|part| &part.status);
        parts.chain([&self.status]).any(|status| matches!(status.as_str(), "queued" | "preempted"))
    }

    /// What replicas that failed say beyond the deployment's own reason: one may only have been
    /// stopped because of another.
    fn causes(&self) -> String {
        let told = self.status_reason.as_deref().unwrap_or_default();
        let mut causes: Vec<&Part> = Vec::new();
        for part in self.replica_statuses.iter().flatten().filter(|part| part.status == "failed") {
            let is_told = told.contains(&part.status_reason)
                || causes.iter().any(|cause| cause.status_reason == part.status_reason);
            if !is_told && causes.len() < MAX_CAUSES {
                causes.push(part);
            }
        }
        let line = |part: &&Part| format!("\n  replica {}: {}", part.number, part.status_reason);
        causes.iter().map(line).collect::<Vec<_>>().concat()
    }

    fn still(&self, label: &str, limit: Duration) -> String {
        let reason = self.status_reason.as_deref().filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let status = if self.status.is_empty() { "unknown" } else { &self.status };
        format!("{label} is still {status} after {} s{reason}", limit.as_secs())
    }

    fn text(&self) -> String {
        match &self.status_reason {
            Some(reason) if !reason.is_empty() => format!("{}: {reason}", self.status),
            _ => self.status.clone(),
        }
    }
}

fn judge(goal: Goal, kind: &Kind<'_>, state: &State) -> Verdict {
    match (goal, state.status.as_str()) {
        (Goal::Gone | Goal::Empty, DELETED) => Verdict::Reached,
        (Goal::Up, "failed" | DELETED) => Verdict::Failed,
        (Goal::Empty, _) if state.draining_at.is_none() => Verdict::Failed,
        (Goal::Empty, _) if state.deployments == Some(0) => Verdict::Reached,
        (Goal::Up, status) if kind.up.contains(&status) => match state.is_complete(kind) {
            Some(true) => Verdict::Reached,
            Some(false) => Verdict::NotYet,
            None => Verdict::Look,
        },
        // What is being deleted may have failed before; that is no news.
        _ => Verdict::NotYet,
    }
}

/// The state that an event tells. `deployment.deleted` is the end; all else carries the subject.
fn read_event(data: &str) -> Option<State> {
    #[derive(Deserialize)]
    struct Event {
        #[serde(rename = "type")]
        kind_and_change: String,
        #[serde(default)]
        data: Value,
    }
    let event: Event = serde_json::from_str(data).ok()?;
    if event.kind_and_change.ends_with(".deleted") {
        return Some(State::deleted());
    }
    serde_json::from_value(event.data).ok()
}

#[cfg(test)]
mod tests {
    use super::super::subject::{CLUSTER, DEPLOYMENT, INSTANCE};
    use super::*;

    #[test]
    fn each_kind_has_its_goal() {
        for (kind, goal, status, want) in [
            (&CLUSTER, Goal::Up, "accepted", Verdict::NotYet),
            (&CLUSTER, Goal::Up, "ready", Verdict::Reached),
            (&CLUSTER, Goal::Up, "failed", Verdict::Failed),
            (&CLUSTER, Goal::Up, "deleted", Verdict::Failed),
            (&CLUSTER, Goal::Gone, "failed", Verdict::NotYet),
            (&CLUSTER, Goal::Gone, "cleanup", Verdict::NotYet),
            (&CLUSTER, Goal::Gone, "deleted", Verdict::Reached),
            (&DEPLOYMENT, Goal::Up, "queued", Verdict::NotYet),
            (&DEPLOYMENT, Goal::Up, "preempted", Verdict::NotYet),
            (&DEPLOYMENT, Goal::Up, "running", Verdict::Reached),
            (&DEPLOYMENT, Goal::Up, "completed", Verdict::Reached),
            (&DEPLOYMENT, Goal::Up, "failed", Verdict::Failed),
            (&INSTANCE, Goal::Up, "provisioning", Verdict::NotYet),
            (&INSTANCE, Goal::Up, "ready", Verdict::Reached),
            (&INSTANCE, Goal::Up, "failed", Verdict::Failed),
            (&INSTANCE, Goal::Gone, "deleting", Verdict::NotYet),
            (&INSTANCE, Goal::Gone, "deleted", Verdict::Reached),
        ] {
            let state = State { status: status.into(), ..State::default() };
            assert_eq!(judge(goal, kind, &state), want, "{} {goal:?} {status}", kind.word);
        }
    }

    fn part(number: u32, status: &str, reason: &str) -> Part {
        Part { number, status: status.into(), status_reason: reason.into() }
    }

    #[test]
    fn a_failure_tells_what_its_first_replica_does_not() {
        let stopped = "Stopped, because replica 1 failed.";
        for (parts, want) in [
            (vec![], ""),
            (vec![part(0, "failed", stopped), part(1, "running", "It runs.")], ""),
            (
                vec![
                    part(0, "failed", stopped),
                    part(1, "failed", "No such image."),
                    part(2, "failed", stopped),
                    part(3, "failed", "No such image."),
                ],
                "\n  replica 1: No such image.",
            ),
        ] {
            let state = State {
                status_reason: Some(format!("Replica 0: {stopped}")),
                replica_statuses: Some(parts),
                ..State::default()
            };
            assert_eq!(state.causes(), want);
        }
    }

    #[test]
    fn a_deployment_is_up_when_each_of_its_replicas_is() {
        for (parts, replicas, want) in [
            (Some(&["running", "running"][..]), 2, Verdict::Reached),
            (Some(&["running", "completed"]), 2, Verdict::Reached),
            (Some(&["running", "queued"]), 2, Verdict::NotYet),
            (Some(&["running", "deleting"]), 1, Verdict::NotYet),
            (Some(&["running"]), 2, Verdict::NotYet),
            (None, 2, Verdict::Look),
        ] {
            let part = |status: &&str| part(0, status, "");
            let state = State {
                status: "running".into(),
                replicas: Some(replicas),
                replica_statuses: parts.map(|parts| parts.iter().map(part).collect()),
                ..State::default()
            };
            assert_eq!(judge(Goal::Up, &DEPLOYMENT, &state), want, "{parts:?}");
        }
    }

    #[test]
    fn what_was_seen_is_not_told_again() {
        let at = |time: Option<&str>| State {
            updated_at: time.map(|time| time.parse().unwrap()),
            ..State::default()
        };
        let (early, late) = ("2026-01-02T03:04:05.65Z", "2026-01-02T03:04:05.7Z");
        for (this, other, is_older) in [
            (Some(early), Some(late), true),
            (Some(late), Some(early), false),
            (Some(late), Some(late), false),
            (Some(early), None, false),
            (None, Some(early), false),
        ] {
            assert_eq!(at(this).is_older_than(&at(other)), is_older, "{this:?} {other:?}");
        }
    }

    #[test]
    fn events_tell_the_state() {
        for (event, want) in [
            (r#"{"type":"cluster.ready","data":{"status":"ready"}}"#, Some("ready")),
            (
                r#"{"type":"deployment.queued","data":{"status":"queued","status_reason":"2 cpu short"}}"#,
                Some("queued: 2 cpu short"),
            ),
            (r#"{"type":"cluster.deleted","data":{"status":"cleanup"}}"#, Some("deleted")),
            (r#"{"type":"cluster.updated","data":{}}"#, None),
            (r#"{"type":"cluster.updated"}"#, None),
            ("nonsense", None),
        ] {
            assert_eq!(read_event(event).map(|s| s.text()).as_deref(), want, "{event}");
        }
    }
}
