//! Deployments that belong to environments.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use model::deployment::{Deployment, NewDeployment, Restart, Spec, Status};
use model::resource::{Difference, Link, Reason};
use model::template::configuration;
use model::{ClusterId, DeploymentId, Invalid, Quantity, Resources};
use serde_json::{Map, Value, json};
use store::deployment::{Change, Limits};
use store::{Db, Page, Read, Scope};

use super::{
    adopt, begin, differs, failed, fault, found, labels, linked_id, missing, next_event,
    object_name, quota_exceeded, refused, scope, set_link,
};
use crate::secrets;
use port::{Encryption, Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task};

/// Kind of deployments in links.
const KIND: &str = "deployment";

/// Executor that creates deployments.
pub struct Deployments {
    pub(super) db: Db,
    pub(super) limits: Limits,
    pub(super) seal: Arc<dyn Encryption>,
}

impl Deployments {
    /// Creates the executor. The limits are those of the API.
    pub fn new(db: Db, limits: Limits, seal: Arc<dyn Encryption>) -> Self {
        Self { db, limits, seal }
    }

    /// The deployment that was created for a resource, if it still exists.
    pub(super) async fn find(&self, task: &Task) -> Result<Option<Deployment>, Fault> {
        let mut read = self.db.read().await.map_err(fault)?;
        let Some(id) = linked_id::<DeploymentId>(&mut read, task, KIND).await? else {
            return Ok(None);
        };
        let scope = scope(task)?;
        found(store::deployment::get(&mut read, scope, id).await)
    }

    pub(super) async fn create(
        &self,
        task: &Task,
        mut new: NewDeployment,
    ) -> Result<Deployment, Fault> {
        let id = self.db.id();
        secrets::encrypt_env(&*self.seal, id, &mut new.spec).await?;
        let (mut tx, of) = begin(&self.db, task).await?;
        let owner = of.organization_id;
        let created = store::deployment::create_as(&mut tx, id, owner, &new, self.limits).await;
        let created = created.map_err(|error| match error {
            // Retried: another deployment may be deleted.
            store::Error::Limit { .. } => quota_exceeded(&error),
            other => fault(other),
        })?;
        set_link(&mut tx, task, &link(&created)).await?;
        tx.commit().await.map_err(fault)?;
        task.log.append(format!("Deployment {} ({}) created.", created.name, created.id));
        Ok(created)
    }

    /// Applies the fields that can change in place. Returns whether anything changed.
    async fn change(
        &self,
        task: &Task,
        now: &Deployment,
        config: &configuration::Deployment,
    ) -> Result<bool, Fault> {
        let (replicas, priority) = (config.replicas.unwrap_or(1), config.priority);
        if (now.spec.replicas, now.priority) == (replicas, priority) {
            return Ok(false);
        }
        let (mut tx, _) = begin(&self.db, task).await?;
        if priority != now.priority {
            let (owner, ceiling) = (now.organization_id, self.limits.max_priority);
            let checked =
                store::organization::check_priority(&mut tx, owner, priority, ceiling).await;
            checked.map_err(fault)?;
        }
        let replicas = Some(replicas).filter(|n| *n != now.spec.replicas);
        let change = Change { replicas, priority: Some(priority), ..Change::default() };
        store::deployment::set(&mut tx, now.id, &change).await.map_err(fault)?;
        tx.commit().await.map_err(fault)?;
        if let Some(n) = replicas {
            task.log.append(format!("Scaling to {n} replicas."));
        }
        Ok(true)
    }

    pub(super) async fn request_delete(&self, task: &Task, id: DeploymentId) -> Result<(), Fault> {
        let (mut tx, _) = begin(&self.db, task).await?;
        match found(store::deployment::request_delete(&mut tx, Scope::All, id).await)? {
            None => Ok(()),
            Some(_) => tx.commit().await.map_err(fault),
        }
    }

    async fn apply_once(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let config: configuration::Deployment =
            configuration::read(&task.with).map_err(|i| refused(&i))?;
        let now = match self.find(task).await? {
            Some(now) if now.status == Status::Deleting => {
                return Ok(Progress::pending(Reason::Replacing));
            }
            // The cause of a failure may be fixed; an adopted deployment can't change its image.
            Some(now)
                if now.status == Status::Failed && !is_for_task(&now, task)
                    || now.spec.image != config.image =>
            {
                self.request_delete(task, now.id).await?;
                return Ok(Progress::pending(Reason::Replacing));
            }
            Some(now) => now,
            None => {
                let mut read = self.db.read().await.map_err(fault)?;
                let new = new_object(&mut read, task, &config).await?;
                drop(read);
                self.create(task, new).await?
            }
        };
        if self.change(task, &now, &config).await? {
            return Ok(Progress::pending(Reason::AsExpected));
        }
        match now.status {
            Status::Running | Status::Completed => Ok(Progress::Done(applied(&now))),
            _ => pending(now),
        }
    }

    async fn destroy_once(&self, task: &Task) -> Result<Progress<()>, Fault> {
        let Some(now) = self.find(task).await? else { return Ok(Progress::Done(())) };
        if now.status != Status::Deleting {
            self.request_delete(task, now.id).await?;
        }
        match self.find(task).await? {
            None => Ok(Progress::Done(())),
            Some(now) => pending(now),
        }
    }

    async fn observe_once(&self, task: &Task) -> Result<Observed, Fault> {
        let drift = match self.find(task).await? {
            Some(now) => drift(task, &now)?,
            None => vec![missing(KIND, task)],
        };
        Ok(Observed { drift, ..Observed::default() })
    }

    async fn adopt_once(&self, task: &Task, what: &str) -> Result<Outcome, Fault> {
        let scope = scope(task)?;
        let mut read = self.db.read().await.map_err(fault)?;
        let found = match what.parse::<DeploymentId>() {
            Ok(id) => store::deployment::get(&mut read, scope, id).await.map_err(fault)?,
            Err(_) => by_name(&mut read, scope, what).await?,
        };
        drop(read);
        if found.instance_id.is_some() || found.reserved.is_some() {
            let why = format!("deployment {what} belongs to another owner and can't be adopted");
            return Err(Fault::Refused(why));
        }
        adopt(&self.db, task, &link(&found)).await?;
        Ok(applied(&found))
    }
}

/// The result for a deployment that is in progress or has failed.
pub(super) fn pending<T>(now: Deployment) -> Result<Progress<T>, Fault> {
    let Deployment { status, reason, .. } = now;
    match status {
        Status::Failed => Err(failed(Reason::DeploymentFailed { reason })),
        _ => Ok(Progress::pending(Reason::DeploymentPending { status, reason })),
    }
}

async fn by_name(read: &mut Read, scope: Scope, name: &str) -> Result<Deployment, Fault> {
    let filter = store::deployment::Filter { name: Some(name.to_owned()), ..Default::default() };
    let found = store::deployment::list(read, scope, &filter, &Page::first(2)).await;
    let mut found = found.map_err(fault)?;
    match (found.pop(), found.pop()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            Err(Fault::Refused(format!("several deployments are named {name}: use the id")))
        }
        _ => Err(Fault::Refused(format!("deployment {name} not found"))),
    }
}

/// Whether the deployment was created for this change.
pub(super) fn is_for_task(now: &Deployment, task: &Task) -> bool {
    now.labels.get(super::KEY) == Some(&task.key)
}

fn drift(task: &Task, now: &Deployment) -> Result<Vec<Difference>, Fault> {
    let made = task.applied.as_ref().unwrap_or(&task.with);
    let made: configuration::Deployment = configuration::read(made).map_err(|i| refused(&i))?;
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

async fn new_object(
    read: &mut Read,
    task: &Task,
    config: &configuration::Deployment,
) -> Result<NewDeployment, Fault> {
    let pinned_to = match &config.cluster {
        Some(named) => Some(cluster(read, task, named).await?),
        None => None,
    };
    let mut all_labels: BTreeMap<String, String> = config.labels.clone();
    all_labels.extend(labels(task));
    let spec = Spec {
        image: config.image.clone(),
        resources: amounts(&config.resources, config.cpu.as_ref(), config.ram.as_ref())
            .map_err(|i| refused(&i))?,
        replicas: config.replicas.unwrap_or(1),
        env: env_strings(&config.env),
        command: config.command.clone(),
        ports: config.ports.clone(),
        restart: Restart::Always,
        ..Spec::default()
    };
    let name = object_name(task, config.name.as_deref());
    let new =
        NewDeployment { name, pinned_to, spec, priority: config.priority, labels: all_labels };
    new.check("resources").map_err(|i| refused(&i))
}

/// Parses the requested resources, including the separate `cpu` and `ram` fields.
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

/// Environment variables as strings; other values become JSON.
pub(super) fn env_strings(env: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    env.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// Finds a cluster by name or id.
pub(super) async fn cluster(read: &mut Read, task: &Task, named: &str) -> Result<ClusterId, Fault> {
    let scope = scope(task)?;
    if let Ok(id) = named.parse::<ClusterId>() {
        return store::cluster::get(read, scope, id).await.map(|one| one.id).map_err(fault);
    }
    let filter = store::cluster::Filter { name: Some(named.to_owned()), ..Default::default() };
    let found = store::cluster::list(read, scope, &filter, &Page::first(1)).await.map_err(fault)?;
    let found = found.first().map(|one| one.id);
    found.ok_or_else(|| Fault::Refused(format!("with.cluster: cluster {named} not found")))
}

impl Operation for Deployments {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        configuration::read::<configuration::Deployment>(with).map(drop)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        Box::pin(async move {
            let Some(now) = self.find(task).await? else { return Ok(Progress::Done(Vec::new())) };
            let task = Task { applied: Some(task.with.clone()), ..task.clone() };
            drift(&task, &now).map(Progress::Done)
        })
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        Box::pin(self.apply_once(task))
    }

    fn observe<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        Box::pin(async { self.observe_once(task).await.map(Progress::Done) })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        Box::pin(self.destroy_once(task))
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> PortFuture<'a, Outcome> {
        Box::pin(self.adopt_once(task, what))
    }

    fn changed<'a>(&'a self, _: &'a Task) -> BoxFuture<'a, ()> {
        next_event(&self.db)
    }
}
