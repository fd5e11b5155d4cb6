//! `--wait`: follows an environment and its resources until it is where it should be, or can't get there.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Time;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::follow::Follow;
use crate::client::http::{Answer, Api};
use crate::client::progress::Progress;
use crate::client::subject::Subject;
use crate::client::table;

/// Where the environment should get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// It works.
    Deployed,
    /// Nothing goes on any more.
    Rest,
    /// It is gone.
    Destroyed,
}

/// Where it is.
#[derive(Debug, Clone, Default, Deserialize)]
struct State {
    status: String,
    #[serde(default)]
    status_reason: String,
    #[serde(default)]
    progress: u64,
    #[serde(default)]
    updated_at: Option<Time>,
    /// Events don't tell.
    #[serde(default)]
    resources: Vec<Part>,
}

/// Where one of its resources is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Part {
    name: String,
    /// Only events tell.
    #[serde(default)]
    environment_id: Option<String>,
    status: String,
    #[serde(default)]
    status_reason: String,
    #[serde(default)]
    link: Option<Link>,
    /// What it said last if it failed; events don't tell.
    #[serde(default)]
    last_log: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Link {
    kind: String,
    id: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Reached,
    Failed,
    NotYet,
}

/// What an event tells.
#[derive(Debug)]
enum News {
    Environment(State),
    Resource(Part),
}

/// The status of what is no longer there.
const DESTROYED: &str = "destroyed";
/// Of so many resources that failed it is shown what they said last.
const MAX_FAILED: usize = 2;

/// What the environment that was answered with is after the wait; without a limit, as it was answered.
pub(super) async fn settle(
    api: &Api,
    answer: Answer,
    goal: Goal,
    limit: Option<Duration>,
) -> Result<Answer, Error> {
    let Some(limit) = limit else { return Ok(answer) };
    let subject: Subject = api.read(&answer)?;
    wait(api, &subject, goal, limit).await?;
    api.send(&Call::get(&["environments", &subject.id])).await
}

/// Waits until an environment has reached the goal.
pub(super) async fn wait(
    api: &Api,
    subject: &Subject,
    goal: Goal,
    limit: Duration,
) -> Result<(), Error> {
    let label = format!("environment {}", subject.label());
    let mut watch = Watch {
        api,
        id: &subject.id,
        goal,
        state: State::default(),
        parts: BTreeMap::new(),
        count: 0,
        progress: Progress::of_percent(&label),
    };
    let outcome = timeout(limit, watch.run()).await;
    let state = std::mem::take(&mut watch.state);
    drop(watch);
    // Whatever happens to us, the server goes on with what it was asked for.
    let goes_on = format!(r#"it goes on by itself: run "paddock env show {}""#, subject.label());
    match outcome {
        Ok(Ok(Verdict::Reached)) => Ok(()),
        Ok(Ok(_)) => Err(failure(api, subject, &label, state).await),
        Ok(Err(error)) => {
            let what = format!("{label} can't be followed any more: {}", error.what());
            Err(Error::failed_but(what, goes_on))
        }
        Err(_) => {
            let what = format!("{label} is still {} after {} s", state.text(), limit.as_secs());
            Err(Error::failed_but(what, goes_on))
        }
    }
}

/// Why it did not get there: the reason, what the resources that failed said last, and the way on.
async fn failure(api: &Api, subject: &Subject, label: &str, state: State) -> Error {
    let name = subject.label();
    // What came by the stream is not all there is to know.
    let state = look(api, &subject.id).await.unwrap_or(state);
    let failed: Vec<&Part> =
        state.resources.iter().filter(|part| part.status == "failed").take(MAX_FAILED).collect();
    let mut what = format!("{label} {}", state.text());
    for part in &failed {
        let said: Vec<_> = part.last_log.iter().map(|line| table::clean(line)).collect();
        if !said.is_empty() {
            what = format!("{what}\n  {} said last:\n    {}", part.name, said.join("\n    "));
        }
    }
    Error::failed_but(what, next(name, &failed))
}

/// The way on from a failure.
fn next(name: &str, failed: &[&Part]) -> String {
    let retry = format!(r#""paddock env retry {name} --wait""#);
    let Some(part) = failed.first() else {
        return format!(r#""paddock env show {name}" says more; {retry} goes on"#);
    };
    let deployment = part.link.as_ref().filter(|link| link.kind == "deployment");
    let deployment =
        deployment.map(|link| format!(r#" and "paddock deployment logs {}""#, link.id));
    let (resource, deployment) = (&part.name, deployment.unwrap_or_default());
    format!(
        r#""paddock env logs {name} {resource}"{deployment} may say more; when it is mended, run {retry}"#
    )
}

struct Watch<'a> {
    api: &'a Api,
    id: &'a str,
    goal: Goal,
    state: State,
    /// Its resources, by name.
    parts: BTreeMap<String, Part>,
    /// How many there were at first.
    count: usize,
    progress: Progress,
}

impl Watch<'_> {
    async fn run(&mut self) -> Result<Verdict, Error> {
        let events = |kind| Call::get(&["events"]).query("kind", Some(kind));
        let own = events("environment").query("subject", Some(self.id));
        let mut own = Follow::open(self.api, own).await?;
        let mut parts = Follow::open(self.api, events("resource")).await?;
        // The streams tell what happens from now on; what happened before they were open, one look
        // tells. In this order nothing is missed.
        let state = look(self.api, self.id).await?;
        self.count = state.resources.len();
        for part in state.resources.clone() {
            self.parts.insert(part.name.clone(), part);
        }
        let mut verdict = self.enter(state);
        while verdict == Verdict::NotYet {
            let message = tokio::select! {
                message = own.next() => message?,
                message = parts.next() => message?,
            };
            match read_event(&message.data) {
                Some(News::Environment(state)) if !state.is_older_than(&self.state) => {
                    verdict = self.enter(state);
                }
                Some(News::Resource(part)) if part.environment_id.as_deref() == Some(self.id) => {
                    self.enter_part(part);
                }
                _ => {}
            }
        }
        Ok(verdict)
    }

    fn enter(&mut self, state: State) -> Verdict {
        let verdict = judge(self.goal, &state.status);
        self.state = state;
        let percent = self.percent(&verdict);
        self.progress.show_percent(percent, &self.state.text());
        verdict
    }

    /// Shows what goes on with a resource, if that is news. That one waits is none.
    fn enter_part(&mut self, part: Part) {
        let line = format!("{}: {}", part.name, text(&part.status, &part.status_reason));
        let is_shown = self.parts.get(&part.name).is_some_and(|before| {
            (&before.status, &before.status_reason) == (&part.status, &part.status_reason)
        });
        match part.status.as_str() {
            _ if is_shown => {}
            "pending" | "planning" => {}
            "applying" | "destroying" => self.progress.doing(&line),
            _ => self.progress.done(&line),
        }
        self.parts.insert(part.name.clone(), part);
        if self.goal == Goal::Destroyed {
            let percent = self.percent(&Verdict::NotYet);
            self.progress.show_percent(percent, &self.state.text());
        }
    }

    /// How much is done. On the way out that is how much is gone.
    fn percent(&self, verdict: &Verdict) -> u64 {
        match (self.goal, verdict) {
            (_, Verdict::Reached) => 100,
            (Goal::Destroyed, _) => {
                let gone = self.parts.values().filter(|part| part.status == DESTROYED).count();
                (gone * 100 / self.count.max(gone).max(1)) as u64
            }
            _ => self.state.progress,
        }
    }
}

async fn look(api: &Api, id: &str) -> Result<State, Error> {
    match api.send(&Call::get(&["environments", id])).await {
        Ok(answer) => api.read(&answer),
        Err(error) if error.status() == Some(404) => {
            Ok(State { status: DESTROYED.into(), ..State::default() })
        }
        Err(error) => Err(error),
    }
}

impl State {
    /// Whether it was before `other`: events may tell what the first look has already seen.
    fn is_older_than(&self, other: &Self) -> bool {
        self.updated_at.zip(other.updated_at).is_some_and(|(this, other)| this < other)
    }

    fn text(&self) -> String {
        text(&self.status, &self.status_reason)
    }
}

fn text(status: &str, reason: &str) -> String {
    match (status, reason) {
        ("", _) => "unknown".into(),
        (status, "") => status.into(),
        (status, reason) => format!("{status}: {reason}"),
    }
}

fn judge(goal: Goal, status: &str) -> Verdict {
    match (goal, status) {
        (Goal::Deployed, "deployed")
        | (Goal::Destroyed, DESTROYED)
        | (Goal::Rest, "deployed" | "failed" | DESTROYED) => Verdict::Reached,
        (Goal::Deployed | Goal::Destroyed, "failed")
        | (Goal::Deployed, "destroying" | DESTROYED) => Verdict::Failed,
        _ => Verdict::NotYet,
    }
}

fn read_event(data: &str) -> Option<News> {
    #[derive(Deserialize)]
    struct Event {
        #[serde(default)]
        kind: String,
        #[serde(default)]
        data: Value,
    }
    let event: Event = serde_json::from_str(data).ok()?;
    match event.kind.as_str() {
        "environment" => serde_json::from_value(event.data).ok().map(News::Environment),
        "resource" => serde_json::from_value(event.data).ok().map(News::Resource),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_goal_has_its_end() {
        for (goal, status, want) in [
            (Goal::Deployed, "deploying", Verdict::NotYet),
            (Goal::Deployed, "validating", Verdict::NotYet),
            (Goal::Deployed, "deployed", Verdict::Reached),
            (Goal::Deployed, "failed", Verdict::Failed),
            (Goal::Deployed, "destroying", Verdict::Failed),
            (Goal::Rest, "deploying", Verdict::NotYet),
            (Goal::Rest, "destroying", Verdict::NotYet),
            (Goal::Rest, "failed", Verdict::Reached),
            (Goal::Rest, "deployed", Verdict::Reached),
            (Goal::Destroyed, "destroying", Verdict::NotYet),
            (Goal::Destroyed, "failed", Verdict::Failed),
            (Goal::Destroyed, "destroyed", Verdict::Reached),
        ] {
            assert_eq!(judge(goal, status), want, "{goal:?} {status}");
        }
    }

    #[test]
    fn events_tell_of_the_environment_and_its_resources() {
        let environment = r#"{"kind":"environment","type":"environment.progress",
            "data":{"id":"e","status":"deploying","status_reason":"1 of 2 done.","progress":50}}"#;
        let Some(News::Environment(state)) = read_event(environment) else { panic!() };
        assert_eq!((state.text().as_str(), state.progress), ("deploying: 1 of 2 done.", 50));
        let resource = r#"{"kind":"resource","data":{"id":"r","environment_id":"e","name":"web",
            "status":"applying","status_reason":"","link":null}}"#;
        let Some(News::Resource(part)) = read_event(resource) else { panic!() };
        assert_eq!((part.name.as_str(), part.environment_id.as_deref()), ("web", Some("e")));
        for other in
            [r#"{"kind":"cluster","data":{"status":"ready"}}"#, r#"{"kind":"resource"}"#, "x"]
        {
            assert!(read_event(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_failure_names_the_way_on() {
        let part = |link: Option<Link>| Part {
            name: "web".into(),
            environment_id: None,
            status: "failed".into(),
            status_reason: String::new(),
            link,
            last_log: Vec::new(),
        };
        let none = next("shop", &[]);
        assert_eq!(
            none,
            r#""paddock env show shop" says more; "paddock env retry shop --wait" goes on"#
        );
        let plain = part(None);
        assert_eq!(
            next("shop", &[&plain]),
            "\"paddock env logs shop web\" may say more; when it is mended, run \
             \"paddock env retry shop --wait\""
        );
        let linked = part(Some(Link { kind: "deployment".into(), id: "d1".into() }));
        let words = "\"paddock env logs shop web\" and \"paddock deployment logs d1\" may say more";
        assert!(next("shop", &[&linked]).starts_with(words));
    }
}
