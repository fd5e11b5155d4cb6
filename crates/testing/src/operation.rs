//! An external system in memory, which can be told to be slow, down, or to die in the middle; and addresses
//! that answer as a test wants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::operation::Subject;
use model::resource::Difference;
use model::{Invalid, Secret};
use port::{
    Access, Answer, CLUSTER_DNS, CLUSTER_ID, Fault, Files, Observed, Operation, Outcome, Probe,
    Progress, Task,
};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore};

use crate::outside::Fake;

/// What an external system holds.
#[derive(Debug, Default)]
pub struct Things {
    /// What each cluster or resource was created as.
    pub of: BTreeMap<Subject, Map<String, Value>>,
    /// The task as it came last.
    pub tasks: BTreeMap<Subject, Task>,
    /// What the agent of each cluster was told.
    pub agents: BTreeMap<Subject, Access>,
    /// What was asked, in order: `apply web`, `destroy web`.
    pub asked: Vec<String>,
    /// How often each change is said to be going on before it is done.
    pub slowness: u32,
    /// Resources that are refused, by name.
    pub refuses: BTreeSet<String>,
    /// Which call is carried out but never answered, as when who asked dies meanwhile.
    pub silent_at: Option<usize>,
    /// Told when that has happened.
    pub fell_silent: Arc<Notify>,
    /// While it is there, answers are given only as it has permits for them.
    pub gate: Option<Arc<Semaphore>>,
    /// How often something was looked at.
    pub looks: usize,
    /// Resources that were told to stop, by name.
    pub cancelled: Vec<String>,
    /// The highest fence that was seen for each resource.
    pub fences: BTreeMap<Subject, i64>,
    waits: BTreeMap<String, u32>,
}

/// An external system.
pub type FakeOperation = Fake<Things>;

impl Things {
    /// What was asked of that kind, by the resources' names.
    pub fn names(&self, call: &str) -> Vec<String> {
        let call = format!("{call} ");
        self.asked.iter().filter_map(|line| line.strip_prefix(&call)).map(str::to_owned).collect()
    }

    fn ask<T>(&mut self, call: &str, task: &Task) -> Result<Option<Progress<T>>, Fault> {
        self.asked.push(format!("{call} {}", task.name));
        self.tasks.insert(task.id, task.clone());
        let seen = self.fences.entry(task.id).or_default();
        if *seen > task.fence {
            return Err(Fault::Refused("another server has taken over".into()));
        }
        *seen = task.fence;
        if self.refuses.contains(&task.name) {
            task.log.say(format!("it says no to {}", task.name));
            return Err(Fault::Refused(format!("{} is refused", task.name)));
        }
        let waits = self.waits.entry(format!("{call} {}", task.key)).or_default();
        *waits += 1;
        let message = format!("It goes on ({waits} of {}).", self.slowness);
        let running = Progress::running(message).at(Some(50));
        Ok((*waits <= self.slowness).then_some(running))
    }
}

impl FakeOperation {
    fn carry_out<'a, R: Send + 'a>(
        &'a self,
        act: impl FnOnce(&mut Things) -> Result<R, Fault>,
    ) -> Answer<'a, R> {
        let answer = self.answer(act);
        let things = self.held();
        if things.silent_at.is_none_or(|at| at + 1 != things.asked.len()) {
            return late(things.gate.clone(), Box::pin(async move { answer.await? }));
        }
        let fell_silent = things.fell_silent.clone();
        Box::pin(async move {
            fell_silent.notify_one();
            std::future::pending().await
        })
    }
}

/// An answer that is given once the gate lets it through.
fn late<'a, R: Send + 'a>(gate: Option<Arc<Semaphore>>, answer: Answer<'a, R>) -> Answer<'a, R> {
    let Some(gate) = gate else { return answer };
    Box::pin(async move {
        // It is never closed.
        if let Ok(permit) = gate.acquire().await {
            permit.forget();
        }
        answer.await
    })
}

/// What the apply of a resource gives, and that of a cluster.
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

    fn plan<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Vec<Difference>>> {
        self.answer(|things| Progress::Done(changes(&task.with, things.of.get(&task.id))))
    }

    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Outcome>> {
        self.carry_out(|things| {
            if let Some(running) = things.ask("apply", task)? {
                return Ok(running);
            }
            task.log.say(format!("{} is made", task.name));
            things.of.insert(task.id, task.with.clone());
            Ok(Progress::Done(outcome(task)))
        })
    }

    fn prepare<'a>(&'a self, task: &'a Task, agent: &'a Access) -> Answer<'a, Progress<Outcome>> {
        self.carry_out(|things| {
            things.agents.insert(task.id, agent.clone());
            let running = things.ask("prepare", task)?;
            Ok(running.unwrap_or_else(|| Progress::Done(outcome(task))))
        })
    }

    fn changed<'a>(&'a self, _: &'a Task) -> BoxFuture<'a, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(10)))
    }

    fn observe<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Observed>> {
        let seen = self.answer(|things| {
            things.looks += 1;
            let made = task.applied.clone().unwrap_or_default();
            let found = things.of.get(&task.id);
            let outcome = found.map(|_| outcome(task));
            let drift = changes(&made, found);
            Progress::Done(Observed { drift, outcome, ..Observed::default() })
        });
        late(self.held().gate.clone(), seen)
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<()>> {
        self.carry_out(|things| {
            if let Some(running) = things.ask("destroy", task)? {
                return Ok(running);
            }
            things.of.remove(&task.id);
            Ok(Progress::Done(()))
        })
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> Answer<'a, bool> {
        self.answer(|things| {
            things.cancelled.push(task.name.clone());
            // The first time it is only told to.
            things.cancelled.iter().filter(|name| **name == task.name).count() > 1
        })
    }

    fn keep<'a>(&'a self, task: &'a Task) -> Answer<'a, BTreeMap<String, Secret>> {
        let note = BTreeMap::from([("note".to_owned(), Secret::new("kept by the executor"))]);
        let is_known = task.kept.contains_key("note");
        self.answer(|_| if is_known { BTreeMap::new() } else { note })
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> Answer<'a, Outcome> {
        self.carry_out(|things| {
            things.asked.push(format!("adopt {what}"));
            let found = Map::from_iter([("path".to_owned(), Value::from(what))]);
            things.of.insert(task.id, found);
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

/// Addresses and the status with which each answers; others don't answer at all.
pub type FakeProbe = Fake<BTreeMap<String, u16>>;

impl Probe for FakeProbe {
    fn get<'a>(&'a self, url: &'a str) -> Answer<'a, u16> {
        let status = self.answer(|all| all.get(url).copied());
        Box::pin(async move {
            let silent = || Fault::Unavailable(format!("{url} does not answer"));
            status.await?.ok_or_else(silent)
        })
    }
}
