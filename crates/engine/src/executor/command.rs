//! Commands: programs that run to completion on a cluster, and HTTP calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::Invalid;
use model::deployment::{Deployment, NewDeployment, Restart, Spec, Status};
use model::resource::{Difference, Reason};
use model::template::configuration;
use serde_json::{Map, Value, json};

use super::deployment::{Deployments, amounts, cluster, env_strings, is_for_task, link, pending};
use super::{failed, fault, labels, object_name, refused};
use port::{Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task};

/// Default timeout in seconds.
const PATIENCE: u32 = 600;

/// Runs programs, and delegates HTTP calls.
pub struct Commands {
    deployments: Deployments,
    /// Executor of HTTP calls.
    calls: Option<Arc<dyn Operation>>,
}

impl Commands {
    /// Programs run as deployments that complete; `calls` handles HTTP.
    pub fn new(deployments: Deployments, calls: Option<Arc<dyn Operation>>) -> Self {
        Self { deployments, calls }
    }

    fn calls(&self) -> Result<&dyn Operation, Fault> {
        let none = || Fault::Refused("this server is not configured to make HTTP calls".into());
        self.calls.as_deref().ok_or_else(none)
    }

    async fn run(
        &self,
        task: &Task,
        config: &configuration::Command,
    ) -> Result<Progress<Outcome>, Fault> {
        let found = self.deployments.find(task).await?;
        let Some(now) = found.filter(|now| is_for_task(now, task)) else {
            return self.begin(task, config).await;
        };
        let patience = config.timeout_seconds.unwrap_or(PATIENCE);
        match now.status {
            Status::Completed => Ok(Progress::Done(applied(&now))),
            Status::Deleting => {
                Err(Fault::Refused("Deployment was deleted before it completed".into()))
            }
            status if status != Status::Failed && self.is_late(&now, patience) => {
                self.deployments.request_delete(task, now.id).await?;
                let message = format!("command stopped after {patience} s. Raise timeout_seconds");
                Err(failed(Reason::DeadlineExceeded { message }))
            }
            _ => pending(now),
        }
    }

    fn is_late(&self, now: &Deployment, patience: u32) -> bool {
        let life = Duration::from_secs(patience.into());
        now.started_at.is_some_and(|at| at + life <= self.deployments.db.now())
    }

    /// Starts the program of this change, after the one of the previous change is deleted.
    async fn begin(
        &self,
        task: &Task,
        config: &configuration::Command,
    ) -> Result<Progress<Outcome>, Fault> {
        if let Progress::Running { reason, percent } = self.deployments.destroy(task).await? {
            return Ok(Progress::Running { reason, percent });
        }
        let new = self.new_object(task, config).await?;
        pending(self.deployments.create(task, new).await?)
    }

    async fn new_object(
        &self,
        task: &Task,
        config: &configuration::Command,
    ) -> Result<NewDeployment, Fault> {
        let pinned_to = match &config.cluster {
            Some(named) => {
                let mut read = self.deployments.db.read().await.map_err(fault)?;
                Some(cluster(&mut read, task, named).await?)
            }
            None => None,
        };
        let spec = Spec {
            image: Some(config.url.clone()),
            resources: amounts(&BTreeMap::new(), config.cpu.as_ref(), config.ram.as_ref())
                .map_err(|i| refused(&i))?,
            replicas: 1,
            env: env_strings(&config.env),
            command: config.command.clone(),
            restart: Restart::Never,
            ..Spec::default()
        };
        let name = object_name(task, config.name.as_deref());
        let labels = labels(task).into_iter().collect();
        let new = NewDeployment { name, pinned_to, spec, priority: 0, labels };
        new.check("resources").map_err(|i| refused(&i))
    }

    async fn apply_once(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let config: configuration::Command =
            configuration::read(&task.with).map_err(|i| refused(&i))?;
        if config.is_call() {
            // The previous version may have been a program.
            if let Progress::Running { reason, percent } = self.deployments.destroy(task).await? {
                return Ok(Progress::Running { reason, percent });
            }
            return self.calls()?.apply(task).await;
        }
        self.run(task, &config).await
    }

    /// Cancels the call or program (expressions may hide which it is); true once it has stopped.
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
        let config: configuration::Command = configuration::read(with)?;
        match &self.calls {
            Some(calls) if config.is_call() => calls.validate(with, files),
            _ => Ok(()),
        }
    }

    fn plan<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        port::ready(Ok(Progress::Done(Vec::new())))
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        Box::pin(self.apply_once(task))
    }

    fn observe<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        // A completed command has no drift.
        port::ready(Ok(Progress::Done(Observed::default())))
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        Box::pin(self.destroy_once(task))
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> PortFuture<'a, bool> {
        Box::pin(self.cancel_once(task))
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        let is_call = configuration::read(&task.with)
            .is_ok_and(|config: configuration::Command| config.is_call());
        match &self.calls {
            Some(calls) if is_call => calls.changed(task),
            _ => self.deployments.changed(task),
        }
    }
}
