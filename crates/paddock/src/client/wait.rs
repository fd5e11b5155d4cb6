//! `--wait`: follows a subject until it reaches its goal or fails.

mod goal;
mod report;

use std::collections::BTreeMap;
use std::future;
use std::time::Duration;

use tokio::time::timeout;
use wire::event::Event;
use wire::subject::{ResourceState, State, Subject};

use super::call::Call;
use super::error::Error;
use super::follow::Follow;
use super::http::{Api, ApiResponse};
use super::progress::Progress;
use super::sse::Message;
use super::subject::Kind;
pub(crate) use goal::Goal;
use goal::Verdict;

/// Wait option.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Wait {
    /// Wait for the operation to end, at most this long [without a value: 600]
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
    /// Maximum wait, if requested.
    pub(crate) fn limit(self) -> Option<Duration> {
        self.wait.map(Duration::from_secs)
    }
}

/// Waits for the subject of `response` and returns its new state; without a limit, `response`.
pub(crate) async fn settle(
    api: &Api,
    kind: &Kind<'_>,
    response: ApiResponse,
    goal: Goal,
    limit: Option<Duration>,
) -> Result<ApiResponse, Error> {
    let Some(limit) = limit else { return Ok(response) };
    let subject: Subject = api.read(&response)?;
    wait(api, kind, &subject, goal, limit).await?;
    api.send(&Call::get(&[kind.path, &subject.id])).await
}

/// Waits until `subject` reaches the goal.
pub(crate) async fn wait(
    api: &Api,
    kind: &Kind<'_>,
    subject: &Subject,
    goal: Goal,
    limit: Duration,
) -> Result<(), Error> {
    let label = format!("{} {}", kind.noun, subject.label());
    let progress = match kind.parts {
        Some(_) => Progress::with_percent(&label),
        None => Progress::new(&label),
    };
    let (state, parts) = (State::default(), BTreeMap::new());
    let mut watch = Watch { api, kind, subject, goal, state, parts, count: 0, progress };
    let outcome = timeout(limit, watch.run_and_fetch_failure()).await;
    let state = std::mem::take(&mut watch.state);
    drop(watch);
    match outcome {
        Ok(Ok(Verdict::Reached)) => Ok(()),
        Ok(Ok(_)) => Err(report::failure(kind, subject, &state)),
        Ok(Err(error)) => {
            let message = format!("waiting for {label} failed: {}", error.message());
            Err(Error::failed_with_hint(message, report::continues(kind, subject, &state)))
        }
        Err(_) => {
            let message = report::timed_out(&label, &state, limit);
            Err(Error::failed_with_hint(message, report::continues(kind, subject, &state)))
        }
    }
}

struct Watch<'a> {
    api: &'a Api,
    kind: &'a Kind<'a>,
    subject: &'a Subject,
    goal: Goal,
    state: State,
    /// Resources of an environment, by name.
    parts: BTreeMap<String, ResourceState>,
    /// Initial number of resources.
    count: usize,
    progress: Progress,
}

impl Watch<'_> {
    /// Like `run`; after a failure, also fetches the state of the parts, which events omit.
    async fn run_and_fetch_failure(&mut self) -> Result<Verdict, Error> {
        let verdict = self.run().await?;
        let has_parts = self.kind.parts.is_some() || self.state.replicas.is_some();
        if verdict == Verdict::Failed
            && has_parts
            && let Ok(state) = self.fetch().await
            && state.status == self.state.status
        {
            self.state = state;
        }
        Ok(verdict)
    }

    async fn run(&mut self) -> Result<Verdict, Error> {
        let events = |kind| Call::get(&["events"]).query("kind", Some(kind));
        let own = events(self.kind.event).query("subject", Some(&self.subject.id));
        let mut own = Follow::open(self.api, own).await?;
        let mut parts = match self.kind.parts {
            Some(kind) => Some(Follow::open(self.api, events(kind)).await?),
            None => None,
        };
        // Fetches the state after opening the streams, so that no change is missed.
        let state = self.fetch().await?;
        self.count = state.resources.len();
        self.parts = state.resources.iter().map(|part| (part.name.clone(), part.clone())).collect();
        let mut verdict = self.update(state);
        loop {
            if verdict == Verdict::Fetch {
                let state = self.fetch().await?;
                verdict = self.update(state);
            }
            if matches!(verdict, Verdict::Reached | Verdict::Failed) {
                return Ok(verdict);
            }
            let message = tokio::select! {
                message = own.next() => message?,
                message = next(&mut parts) => message?,
            };
            verdict = self.receive(&message.data);
        }
    }

    async fn fetch(&self) -> Result<State, Error> {
        match self.api.send(&Call::get(&[self.kind.path, &self.subject.id])).await {
            Ok(response) => self.api.read(&response),
            Err(error) if error.status() == Some(404) => Ok(State::new(self.kind.deleted)),
            Err(error) => Err(error),
        }
    }

    /// Processes an event; ignores invalid ones.
    fn receive(&mut self, data: &str) -> Verdict {
        match read_event(self.kind, data) {
            Some(Change::Subject(state)) if !state.is_older_than(&self.state) => self.update(state),
            Some(Change::Part(part)) if part.environment_id.as_ref() == Some(&self.subject.id) => {
                self.update_part(part);
                Verdict::NotYet
            }
            _ => Verdict::NotYet,
        }
    }

    fn update(&mut self, state: State) -> Verdict {
        let verdict = self.goal.judge(self.kind, &state);
        self.state = state;
        self.show(&verdict);
        verdict
    }

    /// Shows changes of a part, except to pending and planning.
    fn update_part(&mut self, part: ResourceState) {
        let text = report::text(&part.status, &part.status_reason);
        let line = format!("{}: {text}", part.name);
        let is_shown = self.parts.get(&part.name).is_some_and(|before| {
            (&before.status, &before.status_reason) == (&part.status, &part.status_reason)
        });
        match part.status.as_str() {
            _ if is_shown => {}
            "pending" | "planning" => {}
            "applying" | "destroying" => self.progress.activity(&line),
            _ => self.progress.done(&line),
        }
        self.parts.insert(part.name.clone(), part);
        if self.goal == Goal::DESTROYED {
            self.show(&Verdict::NotYet);
        }
    }

    fn show(&mut self, verdict: &Verdict) {
        let text = report::text(&self.state.status, self.state.reason());
        match self.kind.parts {
            Some(_) => self.progress.show_percent(self.percent(verdict), &text),
            None => self.progress.show(&text),
        }
    }

    /// Percentage of completed work; during destruction, of destroyed resources.
    fn percent(&self, verdict: &Verdict) -> u64 {
        if *verdict == Verdict::Reached {
            return 100;
        }
        if self.goal == Goal::DESTROYED {
            let is_deleted = |part: &&ResourceState| part.status == self.kind.deleted;
            let deleted = self.parts.values().filter(is_deleted).count();
            return (deleted * 100 / self.count.max(deleted).max(1)) as u64;
        }
        self.state.progress
    }
}

async fn next(stream: &mut Option<Follow<'_>>) -> Result<Message, Error> {
    match stream {
        Some(stream) => stream.next().await,
        None => future::pending().await,
    }
}

/// Changed state in an event.
#[derive(Debug)]
enum Change {
    Subject(State),
    Part(ResourceState),
}

fn read_event(kind: &Kind<'_>, data: &str) -> Option<Change> {
    let event: Event = serde_json::from_str(data).ok()?;
    if Some(event.kind.as_str()) == kind.parts {
        return serde_json::from_value(event.data).ok().map(Change::Part);
    }
    if event.kind != kind.event {
        return None;
    }
    // `*.deleted` is the last event; all others carry the subject.
    if event.change.ends_with(".deleted") {
        return Some(Change::Subject(State::new(kind.deleted)));
    }
    serde_json::from_value(event.data).ok().map(Change::Subject)
}

#[cfg(test)]
mod tests {
    use super::super::subject::{CLUSTER, DEPLOYMENT, ENVIRONMENT};
    use super::*;

    fn event(change: &str, data: &str) -> String {
        let kind = change.split('.').next().unwrap();
        format!(
            r#"{{"seq":1,"at":"2026-01-02T03:04:05Z","actor":"server","kind":"{kind}",
                "subject":"9m4e2mr0ui3e8a215n4g","type":"{change}","data":{data}}}"#
        )
    }

    #[test]
    fn events_carry_the_state() {
        for (kind, event, want) in [
            (&CLUSTER, event("cluster.ready", r#"{"status":"ready"}"#), Some("ready")),
            (
                &DEPLOYMENT,
                event(
                    "deployment.queued",
                    r#"{"status":"queued","status_reason":"2 cpu short","resources":{"cpu":2}}"#,
                ),
                Some("queued: 2 cpu short"),
            ),
            (
                &ENVIRONMENT,
                event("environment.progress", r#"{"status":"deploying","progress":50}"#),
                Some("deploying"),
            ),
            (&CLUSTER, event("cluster.deleted", r#"{"status":"cleanup"}"#), Some("deleted")),
            (&CLUSTER, event("cluster.updated", "{}"), None),
            (&CLUSTER, event("cluster.updated", "null"), None),
            (&ENVIRONMENT, event("cluster.ready", r#"{"status":"ready"}"#), None),
            (&CLUSTER, "nonsense".into(), None),
        ] {
            let text = match read_event(kind, &event) {
                Some(Change::Subject(state)) => Some(report::text(&state.status, state.reason())),
                _ => None,
            };
            assert_eq!(text.as_deref(), want, "{event}");
        }
    }

    #[test]
    fn events_carry_the_resources_of_an_environment() {
        let data = r#"{"id":"r","environment_id":"e","name":"web","status":"applying",
            "status_reason":"","link":null}"#;
        let read = |kind| read_event(kind, &event("resource.applying", data));
        let Some(Change::Part(part)) = read(&ENVIRONMENT) else { panic!() };
        assert_eq!((part.name.as_str(), part.environment_id.as_deref()), ("web", Some("e")));
        assert!(read(&CLUSTER).is_none());
    }

    #[test]
    fn older_state_is_recognised() {
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
}
