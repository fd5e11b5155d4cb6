//! The steps of a resource: plan, apply, replace, destroy, cancel.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::time::Duration;

use base::entropy;
use model::environment::{self, Environment};
use model::resource::{Difference, Reason, Resource, Status};
use model::template::{self, Act};
use model::work::Requeue;
use model::{Invalid, backoff};
use serde_json::{Map, Value};
use store::Tx;

use super::ResourceWorker;
use crate::Error;
use crate::environment::queue;
use port::{Fault, Operation, Outcome, Progress, Task};

/// How long an external system may be unavailable before the step fails.
const MAX_UNAVAILABLE: Duration = Duration::from_hours(1);
/// Minimum number of attempts before that: an operation of hours may miss a few.
const MIN_ATTEMPTS: i64 = 100;
/// How soon to check whether a missing executor is configured.
const EXECUTOR_POLL: Duration = Duration::from_secs(30);

impl ResourceWorker {
    /// Takes one step of a resource whose lease this server holds.
    pub(super) async fn step(
        &self,
        resource: &Resource,
        env: &Environment,
    ) -> Result<Requeue, Error> {
        let executor = self.executors.get(resource.node.executor);
        let is_end = env.status == environment::Status::Destroying;
        if env.is_cancelled || is_end && resource.status != Status::Destroying {
            return self.cancel(resource, env, executor).await;
        }
        let Some(executor) = executor else {
            if resource.status == Status::Destroying && !resource.may_exist() {
                return self.destroyed(resource).await;
            }
            let missing = Reason::BackendNotConfigured { executor: resource.node.executor };
            self.explain(resource, missing, resource.progress).await?;
            return Ok(self.operations.soon(EXECUTOR_POLL));
        };
        match resource.status {
            Status::Planning => self.plan(resource, env, executor).await,
            Status::Applying => self.apply(resource, env, executor).await,
            _ => self.destroy(resource, env, executor).await,
        }
    }

    async fn plan(
        &self,
        resource: &Resource,
        env: &Environment,
        executor: &Arc<dyn Operation>,
    ) -> Result<Requeue, Error> {
        let (id, step) = (resource.id.into(), step("plan", resource));
        let task = match self.operations.running(id, &step) {
            Some(task) => task,
            None => match self.planned(resource, env, executor).await? {
                Continue(task) => self.operations.start(task, &step),
                Break(next) => return Ok(next),
            },
        };
        let planned = executor.plan(&task).await;
        if let Ok(Progress::Done(differences)) = &planned {
            for difference in differences {
                task.log.append(describe(difference));
            }
        }
        match self.ended(resource, executor, &task, planned).await? {
            Continue(_) => self.begin(resource, task.with.clone()).await,
            Break(next) => Ok(next),
        }
    }

    /// The task of a plan; or when to reconcile again if no plan is needed.
    async fn planned(
        &self,
        resource: &Resource,
        env: &Environment,
        executor: &Arc<dyn Operation>,
    ) -> Result<ControlFlow<Requeue, Task>, Error> {
        let with = match self.resolved_config(resource, env).await? {
            Ok(with) => with,
            Err(invalid) => return self.invalid(resource, &invalid).await.map(Break),
        };
        if is_unchanged(resource, &with) {
            return self.applied(resource, with, None).await.map(Break);
        }
        // Outputs of dependencies may have changed fields that can't be updated in place.
        let must_be_replaced = resource.applied.as_ref().is_some_and(|applied| {
            resource.act == Act::Update
                && template::forces_replacement(resource.node.executor, applied, &with)
        });
        if resource.act == Act::Replace || must_be_replaced {
            return self.replace(resource).await.map(Break);
        }
        let task = match self.task(resource, env, Some(with)).await? {
            Ok(task) => task,
            Err(fault) => return self.fault(resource, fault).await.map(Break),
        };
        match executor.validate(&task.with, &task.files) {
            Ok(()) => Ok(Continue(task)),
            Err(invalid) => self.invalid(resource, &invalid).await.map(Break),
        }
    }

    /// The task of a step that uses the last applied configuration.
    pub(super) async fn task_for(
        &self,
        resource: &Resource,
        env: &Environment,
        call: &str,
    ) -> Result<Result<Arc<Task>, Fault>, Error> {
        let step = step(call, resource);
        if let Some(task) = self.operations.running(resource.id.into(), &step) {
            return Ok(Ok(task));
        }
        let task = self.task(resource, env, None).await?;
        Ok(task.map(|task| self.operations.start(task, &step)))
    }

    async fn begin(&self, resource: &Resource, with: Map<String, Value>) -> Result<Requeue, Error> {
        if let Some((mut tx, mut now)) = self.lock(resource).await? {
            now.tried = Some(with);
            store::transition(&mut tx, &mut now, Status::Applying, Reason::AsExpected).await?;
            tx.commit().await?;
        }
        Ok(Requeue::Now)
    }

    async fn replace(&self, resource: &Resource) -> Result<Requeue, Error> {
        if let Some((mut tx, mut now)) = self.lock(resource).await? {
            now.act = Act::Replace;
            store::transition(&mut tx, &mut now, Status::Destroying, Reason::Replacing).await?;
            tx.commit().await?;
        }
        Ok(Requeue::Now)
    }

    async fn apply(
        &self,
        resource: &Resource,
        env: &Environment,
        executor: &Arc<dyn Operation>,
    ) -> Result<Requeue, Error> {
        let step = step("apply", resource);
        let task = match self.operations.running(resource.id.into(), &step) {
            Some(task) => task,
            None => {
                let with = match self.resolved_config(resource, env).await? {
                    Ok(with) => with,
                    Err(invalid) => return self.invalid(resource, &invalid).await,
                };
                match self.task(resource, env, Some(with)).await? {
                    Ok(task) => self.operations.start(task, &step),
                    Err(fault) => return self.fault(resource, fault).await,
                }
            }
        };
        // A linked object was adopted by an earlier call.
        let adopted = match resource.adopt.as_ref().filter(|_| resource.link.is_none()) {
            Some(what) => executor.adopt(&task, what).await.map(Some),
            None => Ok(None),
        };
        let applied = match adopted {
            Ok(Some(Outcome { outputs, link })) => {
                let task = Task { outputs, link, ..Task::clone(&task) };
                executor.apply(&task).await
            }
            Ok(None) => executor.apply(&task).await,
            Err(fault) => Err(fault),
        };
        match self.ended(resource, executor, &task, applied).await? {
            Continue(outcome) => self.applied(resource, task.with.clone(), Some(outcome)).await,
            Break(next) => Ok(next),
        }
    }

    async fn destroy(
        &self,
        resource: &Resource,
        env: &Environment,
        executor: &Arc<dyn Operation>,
    ) -> Result<Requeue, Error> {
        let task = match self.task_for(resource, env, "destroy").await? {
            Ok(task) => task,
            Err(fault) => return self.fault(resource, fault).await,
        };
        let mut destroyed = executor.destroy(&task).await;
        // Refused before anything was created: nothing to destroy.
        if !resource.may_exist() && matches!(destroyed, Err(Fault::Refused(_))) {
            destroyed = Ok(Progress::Done(()));
        }
        match self.ended(resource, executor, &task, destroyed).await? {
            Continue(()) => self.destroyed(resource).await,
            Break(next) => Ok(next),
        }
    }

    /// The result of a finished call; otherwise when to poll again.
    async fn ended<T>(
        &self,
        resource: &Resource,
        executor: &Arc<dyn Operation>,
        task: &Task,
        outcome: Result<Progress<T>, Fault>,
    ) -> Result<ControlFlow<Requeue, T>, Error> {
        if let Err(fault) = self.operations.persist(&**executor, task).await? {
            return self.fault(resource, fault).await.map(Break);
        }
        match outcome {
            Ok(Progress::Running { reason, percent }) => {
                self.explain(resource, reason, percent.map_or(resource.progress, i64::from))
                    .await?;
                Ok(Break(self.operations.wait(executor, task.id)))
            }
            Ok(Progress::Done(done)) => {
                self.operations.end(task.id);
                Ok(Continue(done))
            }
            Err(fault) => self.fault(resource, fault).await.map(Break),
        }
    }

    /// Cancels the executor's operation, and records that once it has stopped.
    async fn cancel(
        &self,
        resource: &Resource,
        env: &Environment,
        executor: Option<&Arc<dyn Operation>>,
    ) -> Result<Requeue, Error> {
        if let Some(executor) = executor {
            let task = match self.task_for(resource, env, "cancel").await? {
                Ok(task) => task,
                Err(fault) => return self.fault(resource, fault).await,
            };
            let stopped = executor.cancel(&task).await;
            if let Err(fault) = self.operations.persist(&**executor, &task).await? {
                tracing::warn!(resource = %resource.id, %fault, "executor state not persisted");
            }
            match stopped {
                Ok(true) => {}
                Ok(false) => {
                    self.explain(resource, Reason::Cancelling, resource.progress).await?;
                    return Ok(self.operations.wait(executor, task.id));
                }
                Err(fault) => {
                    let reason = Reason::CancelFailed { message: fault.to_string() };
                    self.explain(resource, reason, resource.progress).await?;
                    return Ok(self.operations.soon(Duration::from_secs(2)));
                }
            }
        }
        if env.is_cancelled {
            return self.fail(resource, Reason::Cancelled).await;
        }
        if let Some((mut tx, now)) = self.lock(resource).await? {
            self.queue_destruction(&mut tx, now, None).await?;
            tx.commit().await?;
        }
        Ok(Requeue::OnChange)
    }

    /// Queues the destruction of a resource after its step was cancelled or failed.
    async fn queue_destruction(
        &self,
        tx: &mut Tx,
        mut now: Resource,
        after: Option<Box<Reason>>,
    ) -> Result<(), Error> {
        now.set_desired(None, Act::Destroy);
        now.attempts = 0;
        queue(tx, &mut now, Reason::DestructionQueued { after }).await?;
        self.operations.release(tx, now.id.into()).await
    }

    async fn applied(
        &self,
        resource: &Resource,
        with: Map<String, Value>,
        outcome: Option<Outcome>,
    ) -> Result<Requeue, Error> {
        let Some((mut tx, mut now)) = self.lock(resource).await? else {
            return Ok(Requeue::Now);
        };
        let reason = if outcome.is_some() { Reason::AsExpected } else { Reason::Unchanged };
        if let Some(outcome) = outcome {
            (now.outputs, now.link) = (outcome.outputs, outcome.link);
        }
        (now.print, now.applied, now.tried) = (Some(now.node.print.clone()), Some(with), None);
        now.node.needs = None;
        (now.attempts, now.progress, now.adopt) = (0, 100, None);
        // The destruction of the environment may have been requested meanwhile.
        if now.act != Act::Destroy {
            now.act = Act::Nothing;
        }
        now.drift.clear();
        now.observed_at = Some(tx.now());
        store::transition(&mut tx, &mut now, Status::Applied, reason).await?;
        self.operations.release(&mut tx, now.id.into()).await?;
        tx.commit().await?;
        Ok(Requeue::Now)
    }

    async fn destroyed(&self, resource: &Resource) -> Result<Requeue, Error> {
        let Some((mut tx, mut now)) = self.lock(resource).await? else {
            return Ok(Requeue::Now);
        };
        if now.act == Act::Destroy {
            store::resource::delete(&mut tx, &mut now, Reason::AsExpected).await?;
            tx.commit().await?;
            return Ok(Requeue::OnChange);
        }
        // Replacement: the old object is destroyed.
        (now.print, now.applied, now.tried, now.link) = (None, None, None, None);
        (now.act, now.attempts, now.progress) = (Act::Create, 0, 0);
        (now.outputs, now.node.needs) = (Map::new(), None);
        store::operation::secret::delete_all(&mut tx, now.id).await?;
        store::transition(&mut tx, &mut now, Status::Planning, Reason::Recreating).await?;
        tx.commit().await?;
        Ok(Requeue::Now)
    }

    /// Fails or retries a step.
    async fn fault(&self, resource: &Resource, fault: Fault) -> Result<Requeue, Error> {
        self.operations.end(resource.id.into());
        let message = fault.to_string();
        let reason = match fault {
            Fault::Refused(message) => {
                return self.fail(resource, Reason::BackendRefused { message }).await;
            }
            Fault::Subject { reason, is_retried: false } => {
                return self.fail(resource, *reason).await;
            }
            Fault::Subject { reason, is_retried: true } => Some(*reason),
            Fault::Unavailable(_) => None,
        };
        if resource.attempts >= MIN_ATTEMPTS
            && resource.status_since + MAX_UNAVAILABLE <= self.db.now()
        {
            return self.fail(resource, Reason::DeadlineExceeded { message }).await;
        }
        let attempts = u32::try_from(resource.attempts + 1).unwrap_or(u32::MAX);
        let wait = backoff::delay(attempts, entropy::random_u64(self.db.entropy()));
        let wait = wait.clamp(Duration::from_millis(200), Duration::from_secs(30));
        let Some((mut tx, mut now)) = self.lock(resource).await? else {
            return Ok(Requeue::Now);
        };
        now.attempts += 1;
        let (attempts, retry_at) = (attempts.into(), tx.now() + wait);
        let unavailable = Reason::BackendUnavailable { message, attempts, retry_at };
        // Ensures that the attempt is written even if the reason is unchanged.
        now.reason = Reason::AsExpected;
        let progress = now.progress;
        store::resource::explain(&mut tx, &mut now, reason.unwrap_or(unavailable), progress)
            .await?;
        tx.commit().await?;
        Ok(self.operations.soon(wait))
    }

    async fn invalid(&self, resource: &Resource, invalid: &Invalid) -> Result<Requeue, Error> {
        self.fail(resource, Reason::InvalidConfiguration { message: invalid.to_string() }).await
    }

    async fn fail(&self, resource: &Resource, reason: Reason) -> Result<Requeue, Error> {
        let Some((mut tx, mut now)) = self.lock(resource).await? else {
            return Ok(Requeue::Now);
        };
        store::operation::log::append(&mut tx, now.id, &[reason.to_string()]).await?;
        if now.act == Act::Destroy && now.status != Status::Destroying {
            self.queue_destruction(&mut tx, now, Some(Box::new(reason))).await?;
            tx.commit().await?;
            return Ok(Requeue::OnChange);
        }
        now.attempts += 1;
        store::transition(&mut tx, &mut now, Status::Failed, reason).await?;
        self.operations.release(&mut tx, now.id.into()).await?;
        tx.commit().await?;
        Ok(Requeue::OnChange)
    }

    pub(super) async fn explain(
        &self,
        resource: &Resource,
        reason: Reason,
        progress: i64,
    ) -> Result<(), Error> {
        if resource.reason == reason && resource.progress == progress {
            return Ok(());
        }
        if let Some((mut tx, mut now)) = self.lock(resource).await? {
            store::resource::explain(&mut tx, &mut now, reason, progress).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

/// Identifies a step of a resource: while its call runs, its task stays the same.
fn step(call: &str, resource: &Resource) -> String {
    format!("{call} {} {}", resource.generation, resource.status_since)
}

/// Whether the update changes nothing: outputs of dependencies may be unchanged.
fn is_unchanged(resource: &Resource, with: &Map<String, Value>) -> bool {
    let is_same_module = resource.node.executor != template::Executor::Terraform
        || resource.print.as_ref() == Some(&resource.node.print);
    resource.act == Act::Update
        && resource.applied.as_ref() == Some(with)
        && resource.drift.is_empty()
        && resource.attempts == 0
        && is_same_module
}

fn describe(difference: &Difference) -> String {
    let shown = |value: &Option<Value>| match value {
        Some(value) => value.to_string(),
        None => "nothing".to_owned(),
    };
    format!("{}: {} → {}", difference.field, shown(&difference.found), shown(&difference.made))
}
