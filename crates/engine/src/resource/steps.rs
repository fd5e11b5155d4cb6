//! The steps of a resource: found out, made or changed, taken away, stopped.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::time::Duration;

use base::entropy;
use model::environment::{self, Environment};
use model::resource::{Difference, Reason, Resource, Status};
use model::template::{self, Act};
use model::work::Next;
use model::{Invalid, backoff};
use serde_json::{Map, Value};
use store::Tx;

use super::Resources;
use crate::Error;
use crate::environment::pend;
use port::{Fault, Operation, Outcome, Progress, Task};

/// How long a foreign system may be away before the step has failed.
const PATIENCE: Duration = Duration::from_hours(1);
/// How often it must have been tried then: something that takes hours may miss once.
const FAULTS: i64 = 100;
/// How soon to look whether an executor is set up by now.
const UNSET: Duration = Duration::from_secs(30);

impl Resources {
    /// One step of a resource that this server holds.
    pub(super) async fn step(&self, one: &Resource, of: &Environment) -> Result<Next, Error> {
        let executor = self.executors.get(one.node.executor);
        let is_end = of.status == environment::Status::Destroying;
        if of.is_cancelled || is_end && one.status != Status::Destroying {
            return self.stop(one, of, executor).await;
        }
        let Some(executor) = executor else {
            if one.status == Status::Destroying && !one.is_touched() {
                return self.gone(one).await;
            }
            let missing = Reason::BackendNotConfigured { executor: one.node.executor };
            self.explain(one, missing, one.progress).await?;
            return Ok(self.operations.soon(UNSET));
        };
        match one.status {
            Status::Planning => self.plan(one, of, executor).await,
            Status::Applying => self.apply(one, of, executor).await,
            _ => self.destroy(one, of, executor).await,
        }
    }

    async fn plan(
        &self,
        one: &Resource,
        of: &Environment,
        executor: &Arc<dyn Operation>,
    ) -> Result<Next, Error> {
        let (id, step) = (one.id.into(), step("plan", one));
        let task = match self.operations.running(id, &step) {
            Some(task) => task,
            None => match self.planned(one, of, executor).await? {
                Continue(task) => self.operations.start(task, &step),
                Break(next) => return Ok(next),
            },
        };
        let planned = executor.plan(&task).await;
        if let Ok(Progress::Done(differences)) = &planned {
            for one in differences {
                task.log.say(in_words(one));
            }
        }
        match self.ended(one, executor, &task, planned).await? {
            Continue(_) => self.begin(one, task.with.clone()).await,
            Break(next) => Ok(next),
        }
    }

    /// The task of a plan; when to look again if the resource needs none.
    async fn planned(
        &self,
        one: &Resource,
        of: &Environment,
        executor: &Arc<dyn Operation>,
    ) -> Result<ControlFlow<Next, Task>, Error> {
        let with = match self.filled(one, of).await? {
            Ok(with) => with,
            Err(invalid) => return self.invalid(one, &invalid).await.map(Break),
        };
        if is_already_so(one, &with) {
            return self.applied(one, with, None).await.map(Break);
        }
        // What others give may have come out so that it can't be changed in place.
        let must_go = one.applied.as_ref().is_some_and(|applied| {
            one.act == Act::Update && template::is_replaced(one.node.executor, applied, &with)
        });
        if one.act == Act::Replace || must_go {
            return self.replace(one).await.map(Break);
        }
        let task = match self.task(one, of, Some(with)).await? {
            Ok(task) => task,
            Err(fault) => return self.fault(one, fault).await.map(Break),
        };
        match executor.validate(&task.with, &task.files) {
            Ok(()) => Ok(Continue(task)),
            Err(invalid) => self.invalid(one, &invalid).await.map(Break),
        }
    }

    /// The task of a step that is told what the resource was last told.
    pub(super) async fn begun(
        &self,
        one: &Resource,
        of: &Environment,
        call: &str,
    ) -> Result<Result<Arc<Task>, Fault>, Error> {
        let step = step(call, one);
        if let Some(task) = self.operations.running(one.id.into(), &step) {
            return Ok(Ok(task));
        }
        let task = self.task(one, of, None).await?;
        Ok(task.map(|task| self.operations.start(task, &step)))
    }

    async fn begin(&self, one: &Resource, with: Map<String, Value>) -> Result<Next, Error> {
        if let Some((mut tx, mut now)) = self.still(one).await? {
            now.tried = Some(with);
            store::transition(&mut tx, &mut now, Status::Applying, Reason::AsExpected).await?;
            tx.commit().await?;
        }
        Ok(Next::Again)
    }

    async fn replace(&self, one: &Resource) -> Result<Next, Error> {
        if let Some((mut tx, mut now)) = self.still(one).await? {
            now.act = Act::Replace;
            store::transition(&mut tx, &mut now, Status::Destroying, Reason::Replacing).await?;
            tx.commit().await?;
        }
        Ok(Next::Again)
    }

    async fn apply(
        &self,
        one: &Resource,
        of: &Environment,
        executor: &Arc<dyn Operation>,
    ) -> Result<Next, Error> {
        let step = step("apply", one);
        let task = match self.operations.running(one.id.into(), &step) {
            Some(task) => task,
            None => {
                let with = match self.filled(one, of).await? {
                    Ok(with) => with,
                    Err(invalid) => return self.invalid(one, &invalid).await,
                };
                match self.task(one, of, Some(with)).await? {
                    Ok(task) => self.operations.start(task, &step),
                    Err(fault) => return self.fault(one, fault).await,
                }
            }
        };
        // What is linked was taken over by an earlier call.
        let adopted = match one.adopt.as_ref().filter(|_| one.link.is_none()) {
            Some(what) => executor.adopt(&task, what).await.map(Some),
            None => Ok(None),
        };
        let made = match adopted {
            Ok(Some(Outcome { outputs, link })) => {
                let task = Task { outputs, link, ..Task::clone(&task) };
                executor.apply(&task).await
            }
            Ok(None) => executor.apply(&task).await,
            Err(fault) => Err(fault),
        };
        match self.ended(one, executor, &task, made).await? {
            Continue(made) => self.applied(one, task.with.clone(), Some(made)).await,
            Break(next) => Ok(next),
        }
    }

    async fn destroy(
        &self,
        one: &Resource,
        of: &Environment,
        executor: &Arc<dyn Operation>,
    ) -> Result<Next, Error> {
        let task = match self.begun(one, of, "destroy").await? {
            Ok(task) => task,
            Err(fault) => return self.fault(one, fault).await,
        };
        let mut destroyed = executor.destroy(&task).await;
        // What was refused before anything was made needs nobody who takes it away.
        if !one.is_touched() && matches!(destroyed, Err(Fault::Refused(_))) {
            destroyed = Ok(Progress::Done(()));
        }
        match self.ended(one, executor, &task, destroyed).await? {
            Continue(()) => self.gone(one).await,
            Break(next) => Ok(next),
        }
    }

    /// What came of a call if it is done; else when to ask again.
    async fn ended<T>(
        &self,
        one: &Resource,
        executor: &Arc<dyn Operation>,
        task: &Task,
        outcome: Result<Progress<T>, Fault>,
    ) -> Result<ControlFlow<Next, T>, Error> {
        if let Err(fault) = self.operations.keep(&**executor, task).await? {
            return self.fault(one, fault).await.map(Break);
        }
        match outcome {
            Ok(Progress::Running { reason, percent }) => {
                self.explain(one, reason, percent.map_or(one.progress, i64::from)).await?;
                Ok(Break(self.operations.wait(executor, task.id)))
            }
            Ok(Progress::Done(done)) => {
                self.operations.end(task.id);
                Ok(Continue(done))
            }
            Err(fault) => self.fault(one, fault).await.map(Break),
        }
    }

    /// Has the executor stop, and says so once it has.
    async fn stop(
        &self,
        one: &Resource,
        of: &Environment,
        executor: Option<&Arc<dyn Operation>>,
    ) -> Result<Next, Error> {
        if let Some(executor) = executor {
            let task = match self.begun(one, of, "cancel").await? {
                Ok(task) => task,
                Err(fault) => return self.fault(one, fault).await,
            };
            let stopped = executor.cancel(&task).await;
            if let Err(fault) = self.operations.keep(&**executor, &task).await? {
                tracing::warn!(resource = %one.id, %fault, "executor state not persisted");
            }
            match stopped {
                Ok(true) => {}
                Ok(false) => {
                    self.explain(one, Reason::Cancelling, one.progress).await?;
                    return Ok(self.operations.wait(executor, task.id));
                }
                Err(fault) => {
                    let reason = Reason::CancelFailed { message: fault.to_string() };
                    self.explain(one, reason, one.progress).await?;
                    return Ok(self.operations.soon(Duration::from_secs(2)));
                }
            }
        }
        if of.is_cancelled {
            return self.fail(one, Reason::Cancelled).await;
        }
        if let Some((mut tx, now)) = self.still(one).await? {
            self.doomed(&mut tx, now, None).await?;
            tx.commit().await?;
        }
        Ok(Next::Rest)
    }

    /// Queues a resource of an environment that is destroyed, and whose step was stopped or failed.
    async fn doomed(
        &self,
        tx: &mut Tx,
        mut now: Resource,
        after: Option<Box<Reason>>,
    ) -> Result<(), Error> {
        now.aim(None, Act::Destroy);
        now.attempts = 0;
        pend(tx, &mut now, Reason::DestructionQueued { after }).await?;
        self.operations.release(tx, now.id.into()).await
    }

    async fn applied(
        &self,
        one: &Resource,
        with: Map<String, Value>,
        made: Option<Outcome>,
    ) -> Result<Next, Error> {
        let Some((mut tx, mut now)) = self.still(one).await? else { return Ok(Next::Again) };
        let reason = if made.is_some() { Reason::AsExpected } else { Reason::Unchanged };
        if let Some(made) = made {
            (now.outputs, now.link) = (made.outputs, made.link);
        }
        (now.print, now.applied, now.tried) = (Some(now.node.print.clone()), Some(with), None);
        now.node.needs = None;
        (now.attempts, now.progress, now.adopt) = (0, 100, None);
        // Somebody may have had its environment be destroyed meanwhile.
        if now.act != Act::Destroy {
            now.act = Act::Nothing;
        }
        now.drift.clear();
        now.observed_at = Some(tx.now());
        store::transition(&mut tx, &mut now, Status::Applied, reason).await?;
        self.operations.release(&mut tx, now.id.into()).await?;
        tx.commit().await?;
        Ok(Next::Again)
    }

    async fn gone(&self, one: &Resource) -> Result<Next, Error> {
        let Some((mut tx, mut now)) = self.still(one).await? else { return Ok(Next::Again) };
        if now.act == Act::Destroy {
            store::resource::delete(&mut tx, &mut now, Reason::AsExpected).await?;
            tx.commit().await?;
            return Ok(Next::Rest);
        }
        // It is replaced: what it was is gone.
        (now.print, now.applied, now.tried, now.link) = (None, None, None, None);
        (now.act, now.attempts, now.progress) = (Act::Create, 0, 0);
        (now.outputs, now.node.needs) = (Map::new(), None);
        store::operation::secret::forget(&mut tx, now.id).await?;
        store::transition(&mut tx, &mut now, Status::Planning, Reason::Recreating).await?;
        tx.commit().await?;
        Ok(Next::Again)
    }

    /// Fails or retries a step.
    async fn fault(&self, one: &Resource, fault: Fault) -> Result<Next, Error> {
        self.operations.end(one.id.into());
        let message = fault.to_string();
        let reason = match fault {
            Fault::Refused(message) => {
                return self.fail(one, Reason::BackendRefused { message }).await;
            }
            Fault::Subject { reason, is_retried: false } => return self.fail(one, *reason).await,
            Fault::Subject { reason, is_retried: true } => Some(*reason),
            Fault::Unavailable(_) => None,
        };
        if one.attempts >= FAULTS && one.status_since + PATIENCE <= self.db.now() {
            return self.fail(one, Reason::DeadlineExceeded { message }).await;
        }
        let attempts = u32::try_from(one.attempts + 1).unwrap_or(u32::MAX);
        let wait = backoff::delay(attempts, entropy::noise(self.db.entropy()));
        let wait = wait.clamp(Duration::from_millis(200), Duration::from_secs(30));
        let Some((mut tx, mut now)) = self.still(one).await? else { return Ok(Next::Again) };
        now.attempts += 1;
        let (attempts, retry_at) = (attempts.into(), tx.now() + wait);
        let unavailable = Reason::BackendUnavailable { message, attempts, retry_at };
        // So that the attempt is written, also where the reason is the same.
        now.reason = Reason::AsExpected;
        let progress = now.progress;
        store::resource::explain(&mut tx, &mut now, reason.unwrap_or(unavailable), progress)
            .await?;
        tx.commit().await?;
        Ok(self.operations.soon(wait))
    }

    async fn invalid(&self, one: &Resource, invalid: &Invalid) -> Result<Next, Error> {
        self.fail(one, Reason::InvalidConfiguration { message: invalid.to_string() }).await
    }

    async fn fail(&self, one: &Resource, reason: Reason) -> Result<Next, Error> {
        let Some((mut tx, mut now)) = self.still(one).await? else { return Ok(Next::Again) };
        store::operation::log::append(&mut tx, now.id, &[reason.to_string()]).await?;
        if now.act == Act::Destroy && now.status != Status::Destroying {
            self.doomed(&mut tx, now, Some(Box::new(reason))).await?;
            tx.commit().await?;
            return Ok(Next::Rest);
        }
        now.attempts += 1;
        store::transition(&mut tx, &mut now, Status::Failed, reason).await?;
        self.operations.release(&mut tx, now.id.into()).await?;
        tx.commit().await?;
        Ok(Next::Rest)
    }

    pub(super) async fn explain(
        &self,
        one: &Resource,
        reason: Reason,
        progress: i64,
    ) -> Result<(), Error> {
        if one.reason == reason && one.progress == progress {
            return Ok(());
        }
        if let Some((mut tx, mut now)) = self.still(one).await? {
            store::resource::explain(&mut tx, &mut now, reason, progress).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

/// Names a step of a resource: while its call is running, its task stays the same.
fn step(call: &str, one: &Resource) -> String {
    format!("{call} {} {}", one.generation, one.status_since)
}

/// Is there nothing to do after all? What others give may have come out the same.
fn is_already_so(one: &Resource, with: &Map<String, Value>) -> bool {
    let is_same_module = one.node.executor != template::Executor::Terraform
        || one.print.as_ref() == Some(&one.node.print);
    one.act == Act::Update
        && one.applied.as_ref() == Some(with)
        && one.drift.is_empty()
        && one.attempts == 0
        && is_same_module
}

fn in_words(difference: &Difference) -> String {
    let shown = |value: &Option<Value>| match value {
        Some(value) => value.to_string(),
        None => "nothing".to_owned(),
    };
    format!("{}: {} → {}", difference.field, shown(&difference.found), shown(&difference.made))
}
