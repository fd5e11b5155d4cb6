//! Deployments that belong to environments.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use model::deployment::{Deployment, NewDeployment, Restart, Spec, Status};
use model::resource::{Difference, Link, Reason};
use model::template::with;
use model::{ClusterId, DeploymentId, Invalid, Quantity, Resources};
use serde_json::{Map, Value, json};
use store::deployment::{Change, Limits};
use store::{Db, Page, Read, Scope};

use super::{
    adopt, begin, differs, failed, fault, found, gone, labels, linked, name_of, next_event, own,
    quota_exceeded, refused, set_link,
};
use port::{Answer, Fault, Files, Observed, Operation, Outcome, Progress, Task};

/// The word for a deployment in links.
const KIND: &str = "deployment";

/// Makes deployments.
pub struct Deployments {
    pub(super) db: Db,
    pub(super) limits: Limits,
}

impl Deployments {
    /// Within these limits, as for everybody.
    pub fn new(db: Db, limits: Limits) -> Self {
        Self { db, limits }
    }

    /// The deployment that was made for a resource, if it is still there.
    pub(super) async fn found(&self, task: &Task) -> Result<Option<Deployment>, Fault> {
        let mut read = self.db.read().await.map_err(fault)?;
        let Some(id) = linked::<DeploymentId>(&mut read, task, KIND).await? else {
            return Ok(None);
        };
        let own = own(task)?;
        found(store::deployment::get(&mut read, own, id).await)
    }

    pub(super) async fn make(&self, task: &Task, new: &NewDeployment) -> Result<Deployment, Fault> {
        let (mut tx, of) = begin(&self.db, task).await?;
        let made = store::deployment::create(&mut tx, of.organization_id, new, self.limits).await;
        let made = made.map_err(|error| match error {
            // Somebody may delete another one.
            store::Error::Limit { .. } => quota_exceeded(&error),
            other => fault(other),
        })?;
        set_link(&mut tx, task, &link(&made)).await?;
        tx.commit().await.map_err(fault)?;
        task.log.say(format!("Deployment {} ({}) created.", made.name, made.id));
        Ok(made)
    }

    /// Changes what can be changed while it runs; is there something to change?
    async fn change(
        &self,
        task: &Task,
        now: &Deployment,
        wish: &with::Deployment,
    ) -> Result<bool, Fault> {
        let (replicas, priority) = (wish.replicas.unwrap_or(1), wish.priority);
        if (now.spec.replicas, now.priority) == (replicas, priority) {
            return Ok(false);
        }
        let (mut tx, _) = begin(&self.db, task).await?;
        let replicas = Some(replicas).filter(|n| *n != now.spec.replicas);
        let change = Change { replicas, priority: Some(priority), ..Change::default() };
        store::deployment::set(&mut tx, now.id, &change).await.map_err(fault)?;
        tx.commit().await.map_err(fault)?;
        if let Some(n) = replicas {
            task.log.say(format!("Scaling to {n} replicas."));
        }
        Ok(true)
    }

    pub(super) async fn end(&self, task: &Task, id: DeploymentId) -> Result<(), Fault> {
        let (mut tx, _) = begin(&self.db, task).await?;
        match found(store::deployment::request_delete(&mut tx, Scope::All, id).await)? {
            None => Ok(()),
            Some(_) => tx.commit().await.map_err(fault),
        }
    }

    async fn apply_once(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let wish: with::Deployment = with::read(&task.with).map_err(|i| refused(&i))?;
        let now = match self.found(task).await? {
            Some(now) if now.status == Status::Deleting => {
                return Ok(Progress::pending(Reason::Replacing));
            }
            // The cause of a failure may be fixed by now; an adopted one can't get another image in place.
            Some(now)
                if now.status == Status::Failed && !is_of(&now, task)
                    || now.spec.image != wish.image =>
            {
                self.end(task, now.id).await?;
                return Ok(Progress::pending(Reason::Replacing));
            }
            Some(now) => now,
            None => {
                let mut read = self.db.read().await.map_err(fault)?;
                let new = wanted(&mut read, task, &wish).await?;
                drop(read);
                self.make(task, &new).await?
            }
        };
        if self.change(task, &now, &wish).await? {
            return Ok(Progress::pending(Reason::AsExpected));
        }
        match now.status {
            Status::Running | Status::Completed => Ok(Progress::Done(applied(&now))),
            _ => pending(now),
        }
    }

    async fn destroy_once(&self, task: &Task) -> Result<Progress<()>, Fault> {
        let Some(now) = self.found(task).await? else { return Ok(Progress::Done(())) };
        if now.status != Status::Deleting {
            self.end(task, now.id).await?;
        }
        match self.found(task).await? {
            None => Ok(Progress::Done(())),
            Some(now) => pending(now),
        }
    }

    async fn observe_once(&self, task: &Task) -> Result<Observed, Fault> {
        let drift = match self.found(task).await? {
            Some(now) => drift(task, &now)?,
            None => vec![gone(KIND, task)],
        };
        Ok(Observed { drift, ..Observed::default() })
    }

    async fn adopt_once(&self, task: &Task, what: &str) -> Result<Outcome, Fault> {
        let own = own(task)?;
        let mut read = self.db.read().await.map_err(fault)?;
        let found = match what.parse::<DeploymentId>() {
            Ok(id) => store::deployment::get(&mut read, own, id).await.map_err(fault)?,
            Err(_) => by_name(&mut read, own, what).await?,
        };
        drop(read);
        if found.instance_id.is_some() || found.reserved.is_some() {
            let why = format!("deployment {what} belongs to something else and can't be adopted");
            return Err(Fault::Refused(why));
        }
        adopt(&self.db, task, &link(&found)).await?;
        Ok(applied(&found))
    }
}

/// The answer while a deployment is on its way, or has failed.
pub(super) fn pending<T>(now: Deployment) -> Result<Progress<T>, Fault> {
    let Deployment { status, reason, .. } = now;
    match status {
        Status::Failed => Err(failed(Reason::DeploymentFailed { reason })),
        _ => Ok(Progress::pending(Reason::DeploymentPending { status, reason })),
    }
}

async fn by_name(read: &mut Read, own: Scope, name: &str) -> Result<Deployment, Fault> {
    let filter = store::deployment::Filter { name: Some(name.to_owned()), ..Default::default() };
    let found = store::deployment::list(read, own, &filter, &Page::first(2)).await;
    let mut found = found.map_err(fault)?;
    match (found.pop(), found.pop()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            Err(Fault::Refused(format!("several deployments are named {name}: use the id")))
        }
        _ => Err(Fault::Refused(format!("there is no deployment {name}"))),
    }
}

/// Was it made for this very change?
pub(super) fn is_of(now: &Deployment, task: &Task) -> bool {
    now.labels.get(super::KEY) == Some(&task.key)
}

fn drift(task: &Task, now: &Deployment) -> Result<Vec<Difference>, Fault> {
    let made = task.applied.as_ref().unwrap_or(&task.with);
    let made: with::Deployment = with::read(made).map_err(|i| refused(&i))?;
    let mut drift = Vec::new();
    if made.image != now.spec.image {
        drift.push(differs("image", json!(made.image), json!(now.spec.image)));
    }
    let replicas = made.replicas.unwrap_or(1);
    if replicas != now.spec.replicas {
        drift.push(differs("replicas", replicas, now.spec.replicas));
    }
    if made.priority != now.priority {
        drift.push(differs("priority", made.priority, now.priority));
    }
    if matches!(now.status, Status::Failed | Status::Deleting) {
        drift.push(differs("status", "running", now.status.as_str()));
    }
    Ok(drift)
}

fn applied(now: &Deployment) -> Outcome {
    let outputs = json!({
        "id": now.id,
        "name": now.name,
        "image": now.spec.image,
        "cluster_id": now.cluster_id(),
        "endpoint": now.endpoints.first(),
        "endpoints": now.endpoints,
    });
    let outputs = outputs.as_object().cloned().unwrap_or_default();
    Outcome { outputs, link: Some(link(now)) }
}

pub(super) fn link(to: &Deployment) -> Link {
    Link { kind: KIND.into(), id: to.id.to_string() }
}

async fn wanted(
    read: &mut Read,
    task: &Task,
    wish: &with::Deployment,
) -> Result<NewDeployment, Fault> {
    let pinned_to = match &wish.cluster {
        Some(named) => Some(cluster(read, task, named).await?),
        None => None,
    };
    let mut marks: BTreeMap<String, String> = wish.labels.clone();
    marks.extend(labels(task));
    let spec = Spec {
        image: wish.image.clone(),
        resources: amounts(&wish.resources, wish.cpu.as_ref(), wish.ram.as_ref())
            .map_err(|i| refused(&i))?,
        replicas: wish.replicas.unwrap_or(1),
        env: texts(&wish.env),
        command: wish.command.clone(),
        ports: wish.ports.clone(),
        restart: Restart::Always,
        ..Spec::default()
    };
    let name = name_of(task, wish.name.as_deref());
    let new = NewDeployment { name, pinned_to, spec, priority: wish.priority, labels: marks };
    new.check("resources").map_err(|i| refused(&i))
}

/// Amounts as they are asked for, with those of the two that are always named apart.
pub(super) fn amounts(
    all: &BTreeMap<String, Value>,
    cpu: Option<&Value>,
    ram: Option<&Value>,
) -> Result<Resources, Invalid> {
    let mut sum = Resources::default();
    let named = [("cpu", cpu), ("ram", ram)].into_iter().filter_map(|(k, v)| Some((k, v?)));
    for (kind, value) in all.iter().map(|(k, v)| (k.as_str(), v)).chain(named) {
        let amount: Quantity = serde_json::from_value(value.clone())
            .map_err(|error| Invalid::new(format!("with.{kind}"), error.to_string()))?;
        sum.set(kind, amount);
    }
    Ok(sum)
}

/// Variables as programs get them: what is no text is JSON.
pub(super) fn texts(env: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    env.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// The cluster of that name or id.
pub(super) async fn cluster(read: &mut Read, task: &Task, named: &str) -> Result<ClusterId, Fault> {
    let own = own(task)?;
    if let Ok(id) = named.parse::<ClusterId>() {
        return store::cluster::get(read, own, id).await.map(|one| one.id).map_err(fault);
    }
    let filter = store::cluster::Filter { name: Some(named.to_owned()), ..Default::default() };
    let found = store::cluster::list(read, own, &filter, &Page::first(1)).await.map_err(fault)?;
    let found = found.first().map(|one| one.id);
    found.ok_or_else(|| Fault::Refused(format!("with.cluster: cluster {named} not found")))
}

impl Operation for Deployments {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        with::read::<with::Deployment>(with).map(drop)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Vec<Difference>>> {
        Box::pin(async move {
            let Some(now) = self.found(task).await? else { return Ok(Progress::Done(Vec::new())) };
            let task = Task { applied: Some(task.with.clone()), ..task.clone() };
            drift(&task, &now).map(Progress::Done)
        })
    }

    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Outcome>> {
        Box::pin(self.apply_once(task))
    }

    fn observe<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Observed>> {
        Box::pin(async { self.observe_once(task).await.map(Progress::Done) })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<()>> {
        Box::pin(self.destroy_once(task))
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> Answer<'a, Outcome> {
        Box::pin(self.adopt_once(task, what))
    }

    fn changed<'a>(&'a self, _: &'a Task) -> BoxFuture<'a, ()> {
        next_event(&self.db)
    }
}
