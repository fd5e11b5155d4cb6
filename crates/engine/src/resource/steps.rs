//! The steps of a resource: found out, made or changed, taken away, stopped.

use std::ops::ControlFlow::{self, Break, Continue};
use std::time::Duration;

use base::entropy;
use model::backoff;
use model::environment::{self, Environment};
use model::resource::{Difference, Reason, Resource, Status};
use model::template::{self, Act};
use model::work::Next;
use serde_json::{Map, Value};
use store::Tx;

use super::{ASK_AGAIN, Resources};
use crate::Error;
use crate::environment::pend;
use port::{Applied, Doing, Executor, Fault, Task};

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
            self.explain(one, &missing.to_string(), one.progress).await?;
            return Ok(self.soon(UNSET));
        };
        match one.status {
            Status::Planning => self.find_out(one, of, executor).await,
            Status::Applying => self.make(one, of, executor).await,
            _ => self.take_away(one, of, executor).await,
        }
    }

    async fn find_out(
        &self,
        one: &Resource,
        of: &Environment,
        executor: &dyn Executor,
    ) -> Result<Next, Error> {
        let with = match self.filled(one, of).await? {
            Ok(with) => with,
            Err(invalid) => return self.fail(one, &invalid.to_string()).await,
        };
        if is_already_so(one, &with) {
            return self.applied(one, with, None).await;
        }
        // What others give may have come out so that it can't be changed in place.
        let must_go = one.applied.as_ref().is_some_and(|applied| {
            one.act == Act::Update && template::is_replaced(one.node.executor, applied, &with)
        });
        if one.act == Act::Replace || must_go {
            return self.replace(one).await;
        }
        let task = match self.task(one, of, Some(with)).await? {
            Ok(task) => task,
            Err(fault) => return self.fault(one, &fault).await,
        };
        if let Err(invalid) = executor.validate(&task.with, &task.files) {
            return self.fail(one, &invalid.to_string()).await;
        }
        let planned = executor.plan(&task).await;
        if let Ok(Doing::Done(differences)) = &planned {
            for one in differences {
                task.log.say(in_words(one));
            }
        }
        match self.ended(one, executor, &task, planned).await? {
            Continue(_) => self.begin(one, task.with).await,
            Break(next) => Ok(next),
        }
    }

    async fn begin(&self, one: &Resource, with: Map<String, Value>) -> Result<Next, Error> {
        if let Some((mut tx, mut now)) = self.still(one).await? {
            now.tried = Some(with);
            let reason = "It is being made.";
            store::resource::advance(&mut tx, &mut now, Status::Applying, reason).await?;
            tx.commit().await?;
        }
        Ok(Next::Again)
    }

    async fn replace(&self, one: &Resource) -> Result<Next, Error> {
        if let Some((mut tx, mut now)) = self.still(one).await? {
            now.act = Act::Replace;
            let reason = "What it was is taken away first.";
            store::resource::advance(&mut tx, &mut now, Status::Destroying, reason).await?;
            tx.commit().await?;
        }
        Ok(Next::Again)
    }

    async fn make(
        &self,
        one: &Resource,
        of: &Environment,
        executor: &dyn Executor,
    ) -> Result<Next, Error> {
        let with = match self.filled(one, of).await? {
            Ok(with) => with,
            Err(invalid) => return self.fail(one, &invalid.to_string()).await,
        };
        let mut task = match self.task(one, of, Some(with)).await? {
            Ok(task) => task,
            Err(fault) => return self.fault(one, &fault).await,
        };
        // What is linked was taken over by an earlier call.
        let adopted = match one.adopt.as_ref().filter(|_| one.link.is_none()) {
            Some(what) => executor.adopt(&task, what).await.map(Some),
            None => Ok(None),
        };
        let made = match adopted {
            Ok(found) => {
                if let Some(found) = found {
                    (task.outputs, task.link) = (found.outputs, found.link);
                }
                executor.apply(&task).await
            }
            Err(fault) => Err(fault),
        };
        match self.ended(one, executor, &task, made).await? {
            Continue(made) => self.applied(one, task.with, Some(made)).await,
            Break(next) => Ok(next),
        }
    }

    async fn take_away(
        &self,
        one: &Resource,
        of: &Environment,
        executor: &dyn Executor,
    ) -> Result<Next, Error> {
        let task = match self.task(one, of, None).await? {
            Ok(task) => task,
            Err(fault) => return self.fault(one, &fault).await,
        };
        let mut destroyed = executor.destroy(&task).await;
        // What was refused before anything was made needs nobody who takes it away.
        if !one.is_touched() && matches!(destroyed, Err(Fault::Refused(_))) {
            destroyed = Ok(Doing::Done(()));
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
        executor: &dyn Executor,
        task: &Task,
        outcome: Result<Doing<T>, Fault>,
    ) -> Result<ControlFlow<Next, T>, Error> {
        // What was made half-way must not be forgotten, however that ended, and what an executor needs
        // to find its work again must be kept before it does any.
        match self.sealed(executor, task).await {
            Ok(sealed) => self.keep(task, &sealed).await?,
            Err(fault) => return self.fault(one, &fault).await.map(Break),
        }
        match outcome {
            Ok(Doing::Done(done)) => Ok(Continue(done)),
            Ok(Doing::Going { words, percent }) => {
                self.explain(one, &words, percent.map_or(one.progress, i64::from)).await?;
                Ok(Break(self.soon(ASK_AGAIN)))
            }
            Err(fault) => self.fault(one, &fault).await.map(Break),
        }
    }

    /// Has the executor stop, and says so once it has.
    async fn stop(
        &self,
        one: &Resource,
        of: &Environment,
        executor: Option<&dyn Executor>,
    ) -> Result<Next, Error> {
        if let Some(executor) = executor {
            let task = match self.task(one, of, None).await? {
                Ok(task) => task,
                Err(fault) => return self.fault(one, &fault).await,
            };
            let stopped = executor.cancel(&task).await;
            match self.sealed(executor, &task).await {
                Ok(sealed) => self.keep(&task, &sealed).await?,
                Err(fault) => tracing::warn!(resource = %one.id, %fault, "what is kept is old"),
            }
            match stopped {
                Ok(true) => {}
                Ok(false) => {
                    self.explain(one, "It is being stopped.", one.progress).await?;
                    return Ok(self.soon(ASK_AGAIN));
                }
                Err(fault) => {
                    self.explain(one, &format!("It can't be stopped yet: {fault}"), one.progress)
                        .await?;
                    return Ok(self.soon(Duration::from_secs(2)));
                }
            }
        }
        if of.is_cancelled {
            return self.fail(one, "Its step was cancelled.").await;
        }
        if let Some((mut tx, now)) = self.still(one).await? {
            self.doomed(&mut tx, now, "Its step was stopped; it shall go.").await?;
            tx.commit().await?;
        }
        Ok(Next::Rest)
    }

    /// Its environment is destroyed: it goes when its turn has come. That has not begun.
    async fn doomed(&self, tx: &mut Tx, mut now: Resource, reason: &str) -> Result<(), Error> {
        now.aim(None, Act::Destroy);
        now.attempts = 0;
        pend(tx, &mut now, reason).await?;
        Ok(store::resource::let_go(tx, now.id, &self.executors.server).await?)
    }

    async fn applied(
        &self,
        one: &Resource,
        with: Map<String, Value>,
        made: Option<Applied>,
    ) -> Result<Next, Error> {
        let Some((mut tx, mut now)) = self.still(one).await? else { return Ok(Next::Again) };
        let reason =
            if made.is_some() { "It is as it should be." } else { "Nothing had to change." };
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
        store::resource::advance(&mut tx, &mut now, Status::Applied, reason).await?;
        store::resource::let_go(&mut tx, now.id, &self.executors.server).await?;
        tx.commit().await?;
        Ok(Next::Again)
    }

    async fn gone(&self, one: &Resource) -> Result<Next, Error> {
        let Some((mut tx, mut now)) = self.still(one).await? else { return Ok(Next::Again) };
        if now.act == Act::Destroy {
            store::resource::delete(&mut tx, &mut now, "Nothing of it is left.").await?;
            tx.commit().await?;
            return Ok(Next::Rest);
        }
        // It is replaced: what it was is gone.
        (now.print, now.applied, now.tried, now.link) = (None, None, None, None);
        (now.act, now.attempts, now.progress) = (Act::Create, 0, 0);
        (now.outputs, now.node.needs) = (Map::new(), None);
        store::resource::secret::forget(&mut tx, now.id).await?;
        let reason = "What it was is gone; it is made again.";
        store::resource::advance(&mut tx, &mut now, Status::Planning, reason).await?;
        tx.commit().await?;
        Ok(Next::Again)
    }

    /// It can't be done like this, or not now.
    async fn fault(&self, one: &Resource, fault: &Fault) -> Result<Next, Error> {
        let why = match fault {
            Fault::Refused(why) => return self.fail(one, why).await,
            Fault::Unavailable(why) => why,
        };
        if one.attempts >= FAULTS && one.status_since + PATIENCE <= self.db.now() {
            let why = format!("It was waited for too long: {why}");
            return self.fail(one, &why).await;
        }
        let attempts = u32::try_from(one.attempts + 1).unwrap_or(u32::MAX);
        let wait = backoff::delay(attempts, entropy::noise(self.db.entropy()));
        let wait = wait.clamp(Duration::from_millis(200), Duration::from_secs(30));
        let Some((mut tx, mut now)) = self.still(one).await? else { return Ok(Next::Again) };
        now.attempts += 1;
        let (words, progress) = (format!("Waits; it is tried again: {why}"), now.progress);
        // So that it counts, also where the words are the same.
        now.status_reason.clear();
        store::resource::explain(&mut tx, &mut now, &words, progress).await?;
        tx.commit().await?;
        Ok(self.soon(wait))
    }

    async fn fail(&self, one: &Resource, why: &str) -> Result<Next, Error> {
        let Some((mut tx, mut now)) = self.still(one).await? else { return Ok(Next::Again) };
        store::resource::log::append(&mut tx, now.id, &[why.to_owned()]).await?;
        if now.act == Act::Destroy && now.status != Status::Destroying {
            self.doomed(&mut tx, now, &format!("It failed, and shall go: {why}")).await?;
            tx.commit().await?;
            return Ok(Next::Rest);
        }
        now.attempts += 1;
        store::resource::advance(&mut tx, &mut now, Status::Failed, why).await?;
        store::resource::let_go(&mut tx, now.id, &self.executors.server).await?;
        tx.commit().await?;
        Ok(Next::Rest)
    }

    pub(super) async fn explain(
        &self,
        one: &Resource,
        why: &str,
        progress: i64,
    ) -> Result<(), Error> {
        if one.status_reason == why && one.progress == progress {
            return Ok(());
        }
        if let Some((mut tx, mut now)) = self.still(one).await? {
            store::resource::explain(&mut tx, &mut now, why, progress).await?;
            tx.commit().await?;
        }
        Ok(())
    }
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
