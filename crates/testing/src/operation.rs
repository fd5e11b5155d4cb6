//! In-memory external system that can be slow, down or interrupted, and in-memory health checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::operation::Subject;
use model::resource::Difference;
use model::{Invalid, OrganizationId, Secret};
use port::{
    Access, CLUSTER_DNS, CLUSTER_ID, Fault, Files, Observed, Operation, Outcome, PortFuture, Probe,
    Progress, Task,
};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore};

use crate::outside::Fake;

/// State of a fake external system.
#[derive(Debug, Default)]
pub struct ExternalState {
    /// Content of each cluster or resource.
    pub resources: BTreeMap<Subject, Map<String, Value>>,
    /// The last task of each.
    pub tasks: BTreeMap<Subject, Task>,
    /// Credentials of each cluster's agent.
    pub agents: BTreeMap<Subject, Access>,
    /// The operations, in order: `apply web`, `destroy web`.
    pub calls: Vec<String>,
    /// How many polls report an operation as running.
    pub running_polls: u32,
    /// Names of resources whose operations are refused.
    pub refuses: BTreeSet<String>,
    /// Index of the operation that is carried out but never answered, as if the caller crashed.
    pub unanswered_at: Option<usize>,
    /// Notified when that operation was carried out.
    pub unanswered: Arc<Notify>,
    /// If set, each response needs a permit.
    pub gate: Option<Arc<Semaphore>>,
    /// Number of observations.
    pub observations: usize,
    /// Names of resources whose operation was cancelled.
    pub cancelled: Vec<String>,
    /// The highest fencing token of each resource.
    pub fences: BTreeMap<Subject, i64>,
    waits: BTreeMap<String, u32>,
}

/// A fake external system.
pub type FakeOperation = Fake<ExternalState>;

impl ExternalState {
    /// Names of the resources of all operations of one kind.
    pub fn names(&self, call: &str) -> Vec<String> {
        let call = format!("{call} ");
        self.calls.iter().filter_map(|line| line.strip_prefix(&call)).map(str::to_owned).collect()
    }

    fn begin<T>(&mut self, call: &str, task: &Task) -> Result<Option<Progress<T>>, Fault> {
        self.calls.push(format!("{call} {}", task.name));
        self.tasks.insert(task.id, task.clone());
        let highest = self.fences.entry(task.id).or_default();
        if *highest > task.fence {
            return Err(Fault::Refused("another server has taken over".into()));
        }
        *highest = task.fence;
        if self.refuses.contains(&task.name) {
            task.log.append(format!("it says no to {}", task.name));
            return Err(Fault::Refused(format!("{} is refused", task.name)));
        }
        let waits = self.waits.entry(format!("{call} {}", task.key)).or_default();
        *waits += 1;
        let message = format!("It goes on ({waits} of {}).", self.running_polls);
        let running = Progress::running(message).at(Some(50));
        Ok((*waits <= self.running_polls).then_some(running))
    }
}

impl FakeOperation {
    fn run<'a, R: Send + 'a>(
        &'a self,
        act: impl FnOnce(&mut ExternalState) -> Result<R, Fault>,
    ) -> PortFuture<'a, R> {
        let answer = self.answer(act);
        let things = self.state();
        if things.unanswered_at.is_none_or(|at| at + 1 != things.calls.len()) {
            return gated(things.gate.clone(), Box::pin(async move { answer.await? }));
        }
        let fell_silent = things.unanswered.clone();
        Box::pin(async move {
            fell_silent.notify_one();
            std::future::pending().await
        })
    }
}

/// A response that waits for a permit of the gate.
fn gated<'a, R: Send + 'a>(
    gate: Option<Arc<Semaphore>>,
    answer: PortFuture<'a, R>,
) -> PortFuture<'a, R> {
    let Some(gate) = gate else { return answer };
    Box::pin(async move {
        // The semaphore is never closed.
        if let Ok(permit) = gate.acquire().await {
            permit.forget();
        }
        answer.await
    })
}

/// The outcome of an apply.
fn outcome(task: &Task) -> Outcome {
    let outputs = match task.id {
        Subject::Resource(_) => json!({"path": format!("made/{}", task.name), "told": task.with}),
        Subject::Cluster(id) => json!({
            CLUSTER_ID: format!("site-{id}"),
            CLUSTER_DNS: format!("{}.clusters.test", task.name),
        }),
    };
    Outcome { outputs: outputs.as_object().cloned().unwrap_or_default(), link: None }
}

impl Operation for FakeOperation {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        match with.get("path") {
            Some(path) if path == "bad" => Err(Invalid::new("with.path", "must not be bad")),
            _ => Ok(()),
        }
    }

    fn plan<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        self.answer(|things| Progress::Done(changes(&task.with, things.resources.get(&task.id))))
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        self.run(|things| {
            if let Some(running) = things.begin("apply", task)? {
                return Ok(running);
            }
            task.log.append(format!("{} is made", task.name));
            things.resources.insert(task.id, task.with.clone());
            Ok(Progress::Done(outcome(task)))
        })
    }

    fn prepare<'a>(
        &'a self,
        task: &'a Task,
        agent: &'a Access,
    ) -> PortFuture<'a, Progress<Outcome>> {
        self.run(|things| {
            things.agents.insert(task.id, agent.clone());
            let running = things.begin("prepare", task)?;
            Ok(running.unwrap_or_else(|| Progress::Done(outcome(task))))
        })
    }

    fn changed<'a>(&'a self, _: &'a Task) -> BoxFuture<'a, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(10)))
    }

    fn observe<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        let observed = self.answer(|things| {
            things.observations += 1;
            let made = task.applied.clone().unwrap_or_default();
            let found = things.resources.get(&task.id);
            let outcome = found.map(|_| outcome(task));
            let drift = changes(&made, found);
            Progress::Done(Observed { drift, outcome, ..Observed::default() })
        });
        gated(self.state().gate.clone(), observed)
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        self.run(|things| {
            if let Some(running) = things.begin("destroy", task)? {
                return Ok(running);
            }
            things.resources.remove(&task.id);
            Ok(Progress::Done(()))
        })
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> PortFuture<'a, bool> {
        self.answer(|things| {
            things.cancelled.push(task.name.clone());
            // The first call only requests the cancellation.
            things.cancelled.iter().filter(|name| **name == task.name).count() > 1
        })
    }

    fn persist<'a>(&'a self, task: &'a Task) -> PortFuture<'a, BTreeMap<String, Secret>> {
        let note = BTreeMap::from([("note".to_owned(), Secret::new("kept by the executor"))]);
        let is_known = task.persisted.contains_key("note");
        self.answer(|_| if is_known { BTreeMap::new() } else { note })
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> PortFuture<'a, Outcome> {
        self.run(|things| {
            things.calls.push(format!("adopt {what}"));
            let found = Map::from_iter([("path".to_owned(), Value::from(what))]);
            things.resources.insert(task.id, found);
            Ok(Outcome::default())
        })
    }
}

fn changes(made: &Map<String, Value>, found: Option<&Map<String, Value>>) -> Vec<Difference> {
    let none = Map::new();
    let found = found.unwrap_or(&none);
    let fields: BTreeSet<&String> = made.keys().chain(found.keys()).collect();
    let differs = fields.into_iter().filter(|field| made.get(*field) != found.get(*field));
    let of = |map: &Map<String, Value>, field: &String| map.get(field).cloned();
    differs
        .map(|field| Difference {
            field: field.clone(),
            made: of(made, field),
            found: of(found, field),
        })
        .collect()
}

/// Fake health checks: URLs with the status of their response; others do not respond.
pub type FakeProbe = Fake<BTreeMap<String, u16>>;

impl Probe for FakeProbe {
    fn get<'a>(&'a self, _: OrganizationId, url: &'a str) -> PortFuture<'a, u16> {
        let status = self.answer(|all| all.get(url).copied());
        Box::pin(async move {
            let silent = || Fault::Unavailable(format!("{url} does not answer"));
            status.await?.ok_or_else(silent)
        })
    }
}
