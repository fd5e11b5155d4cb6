//! Programs that run to their end on a cluster, and calls: the outcome decides.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::Invalid;
use model::deployment::{Deployment, NewDeployment, Restart, Spec, Status};
use model::resource::{Difference, Reason};
use model::template::with;
use serde_json::{Map, Value, json};

use super::deployment::{Deployments, amounts, cluster, is_of, link, pending, texts};
use super::{failed, fault, labels, name_of, refused};
use port::{Answer, Fault, Files, Observed, Operation, Outcome, Progress, Task};

/// What a program gets if nothing is said.
const CPU: &str = "100m";
const RAM: &str = "64Mi";
/// How long it may take if nothing is said.
const PATIENCE: u32 = 600;

/// Runs programs, and has calls be made.
pub struct Commands {
    deployments: Deployments,
    /// Makes calls.
    calls: Option<Arc<dyn Operation>>,
}

impl Commands {
    /// Programs are deployments that end; calls are made by somebody who speaks HTTP.
    pub fn new(deployments: Deployments, calls: Option<Arc<dyn Operation>>) -> Self {
        Self { deployments, calls }
    }

    fn calls(&self) -> Result<&dyn Operation, Fault> {
        let none = || Fault::Refused("this server is not configured to make HTTP calls".into());
        self.calls.as_deref().ok_or_else(none)
    }

    async fn run(&self, task: &Task, wish: &with::Command) -> Result<Progress<Outcome>, Fault> {
        let found = self.deployments.found(task).await?;
        let Some(now) = found.filter(|now| is_of(now, task)) else {
            return self.begin(task, wish).await;
        };
        let patience = wish.timeout_seconds.unwrap_or(PATIENCE);
        match now.status {
            Status::Completed => Ok(Progress::Done(applied(&now))),
            Status::Deleting => {
                Err(Fault::Refused("Deployment was deleted before it completed".into()))
            }
            status if status != Status::Failed && self.is_late(&now, patience) => {
                self.deployments.end(task, now.id).await?;
                let message = format!("command ran longer than {patience} s and was stopped");
                Err(failed(Reason::DeadlineExceeded { message }))
            }
            _ => pending(now),
        }
    }

    fn is_late(&self, now: &Deployment, patience: u32) -> bool {
        let life = Duration::from_secs(patience.into());
        now.started_at.is_some_and(|at| at + life <= self.deployments.db.now())
    }

    /// Has the program of this change run; the one of the change before goes first.
    async fn begin(&self, task: &Task, wish: &with::Command) -> Result<Progress<Outcome>, Fault> {
        if let Progress::Running { reason, percent } = self.deployments.destroy(task).await? {
            return Ok(Progress::Running { reason, percent });
        }
        let new = self.wanted(task, wish).await?;
        pending(self.deployments.make(task, &new).await?)
    }

    async fn wanted(&self, task: &Task, wish: &with::Command) -> Result<NewDeployment, Fault> {
        let pinned_to = match &wish.cluster {
            Some(named) => {
                let mut read = self.deployments.db.read().await.map_err(fault)?;
                Some(cluster(&mut read, task, named).await?)
            }
            None => None,
        };
        let (cpu, ram) = (json!(CPU), json!(RAM));
        let (cpu, ram) = (wish.cpu.as_ref().unwrap_or(&cpu), wish.ram.as_ref().unwrap_or(&ram));
        let spec = Spec {
            image: Some(wish.url.clone()),
            resources: amounts(&BTreeMap::new(), Some(cpu), Some(ram)).map_err(|i| refused(&i))?,
            replicas: 1,
            env: texts(&wish.env),
            command: wish.command.clone(),
            restart: Restart::Never,
            ..Spec::default()
        };
        let name = name_of(task, wish.name.as_deref());
        let labels = labels(task).into_iter().collect();
        let new = NewDeployment { name, pinned_to, spec, priority: 0, labels };
        new.check("resources").map_err(|i| refused(&i))
    }

    async fn apply_once(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let wish: with::Command = with::read(&task.with).map_err(|i| refused(&i))?;
        if wish.is_call() {
            // It may have been a program before.
            if let Progress::Running { reason, percent } = self.deployments.destroy(task).await? {
                return Ok(Progress::Running { reason, percent });
            }
            return self.calls()?.apply(task).await;
        }
        self.run(task, &wish).await
    }

    /// Ends a call that goes on, or a program that runs; true when it is gone. While it has
    /// expressions nobody can say which of both it is.
    async fn cancel_once(&self, task: &Task) -> Result<bool, Fault> {
        if let Some(calls) = &self.calls
            && !calls.cancel(task).await?
        {
            return Ok(false);
        }
        Ok(matches!(self.deployments.destroy(task).await?, Progress::Done(())))
    }

    async fn destroy_once(&self, task: &Task) -> Result<Progress<()>, Fault> {
        if let Some(calls) = &self.calls
            && let running @ Progress::Running { .. } = calls.destroy(task).await?
        {
            return Ok(running);
        }
        self.deployments.destroy(task).await
    }
}

fn applied(now: &Deployment) -> Outcome {
    let outputs = json!({"id": now.id, "name": now.name, "status": 0});
    let outputs = outputs.as_object().cloned().unwrap_or_default();
    Outcome { outputs, link: Some(link(now)) }
}

impl Operation for Commands {
    fn validate(&self, with: &Map<String, Value>, files: &Files) -> Result<(), Invalid> {
        let told: with::Command = with::read(with)?;
        match &self.calls {
            Some(calls) if told.is_call() => calls.validate(with, files),
            _ => Ok(()),
        }
    }

    fn plan<'a>(&'a self, _: &'a Task) -> Answer<'a, Progress<Vec<Difference>>> {
        port::ready(Ok(Progress::Done(Vec::new())))
    }

    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Outcome>> {
        Box::pin(self.apply_once(task))
    }

    fn observe<'a>(&'a self, _: &'a Task) -> Answer<'a, Progress<Observed>> {
        // That it has run stays true.
        port::ready(Ok(Progress::Done(Observed::default())))
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<()>> {
        Box::pin(self.destroy_once(task))
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> Answer<'a, bool> {
        Box::pin(self.cancel_once(task))
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        let is_call = with::read(&task.with).is_ok_and(|told: with::Command| told.is_call());
        match &self.calls {
            Some(calls) if is_call => calls.changed(task),
            _ => self.deployments.changed(task),
        }
    }
}
