//! Instances of managed services that belong to environments.

use futures_util::future::BoxFuture;
use model::instance::{Instance, Status};
use model::kind::Kind;
use model::reason::Requester;
use model::resource::{Difference, Link, Reason};
use model::template::configuration;
use model::{InstanceId, Invalid};
use serde_json::{Map, Value, json};
use store::{Db, Page, Scope};

use super::{
    adopt, begin, differs, failed, fault, found, linked_id, missing, next_event, object_name,
    quota_exceeded, refused, scope, set_link,
};
use crate::instance::commands::{self, Caller, CreateError, NewInstanceRequest};
use crate::rules::RulesReader;
use port::{Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task};

/// Kind of instances in links.
const KIND: &str = "instance";

/// Executor that creates instances.
pub struct Instances {
    db: Db,
    rules: RulesReader,
}

impl Instances {
    /// Creates the executor. The rules are those of the API.
    pub fn new(db: Db, rules: RulesReader) -> Self {
        Self { db, rules }
    }

    async fn find(&self, task: &Task) -> Result<Option<Instance>, Fault> {
        let mut read = self.db.read().await.map_err(fault)?;
        let Some(id) = linked_id::<InstanceId>(&mut read, task, KIND).await? else {
            return Ok(None);
        };
        let scope = scope(task)?;
        found(store::instance::get(&mut read, scope, id).await)
    }

    async fn create(
        &self,
        task: &Task,
        kind: &Kind,
        config: &configuration::Service,
    ) -> Result<Instance, Fault> {
        let (mut tx, of) = begin(&self.db, task).await?;
        let scope = Scope::Organization(of.organization_id);
        let Some(user) = found(store::user::get(&mut tx, scope, of.created_by).await)? else {
            let why =
                "the user who created the environment no longer exists: recreate the environment";
            return Err(Fault::Refused(why.into()));
        };
        if self.rules.is_denied(&mut tx, &user.username).await.map_err(fault)? {
            let why = format!("{} may not own instances: ask an administrator", user.username);
            return Err(Fault::Refused(why));
        }
        let wanted = new_object(task, kind, config)?;
        let caller = Caller { user: &user, account: None };
        let created = commands::create(&mut tx, &self.rules, &caller, kind, &wanted).await;
        let created = created.map_err(|refused| match refused {
            CreateError::Store(error @ store::Error::Limit { .. }) => quota_exceeded(&error),
            CreateError::Store(error) => fault(error),
            other => Fault::Refused(format!("{}: {other}", other.field().unwrap_or_default())),
        })?;
        set_link(&mut tx, task, &link(&created)).await?;
        tx.commit().await.map_err(fault)?;
        task.log.append(format!("Instance {} ({}) created.", created.name, created.id));
        Ok(created)
    }

    async fn apply_once(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let config: configuration::Service =
            configuration::read(&task.with).map_err(|i| refused(&i))?;
        let catalog = self.rules.catalog();
        let kind = catalog.kind(&config.kind).ok_or_else(|| {
            let names: Vec<&str> = catalog.kinds().map(|kind| kind.name.as_str()).collect();
            Fault::Refused(format!("with.kind: must be one of {}", names.join(", ")))
        })?;
        let Some(now) = self.find(task).await? else {
            return pending(self.create(task, kind, &config).await?);
        };
        match now.status {
            Status::Ready => Ok(Progress::Done(applied(kind, &now))),
            // The cause may be fixed by now.
            Status::Failed if now.status_since < task.since => {
                self.request_delete(task, &now).await?;
                Ok(Progress::pending(Reason::Replacing))
            }
            status if status.is_deleting() => Ok(Progress::pending(Reason::Replacing)),
            _ => pending(now),
        }
    }

    async fn destroy_once(&self, task: &Task) -> Result<Progress<()>, Fault> {
        let Some(now) = self.find(task).await? else { return Ok(Progress::Done(())) };
        if now.status.is_deleting() {
            return pending(now);
        }
        match self.request_delete(task, &now).await? {
            Some(now) => pending(now),
            None => Ok(Progress::Done(())),
        }
    }

    /// Requests the deletion of an instance, if it still exists.
    async fn request_delete(&self, task: &Task, now: &Instance) -> Result<Option<Instance>, Fault> {
        let (mut tx, of) = begin(&self.db, task).await?;
        let by = Requester::Environment { name: of.name };
        let left = found(store::instance::request_delete(&mut tx, Scope::All, now.id, by).await)?;
        if left.is_some() {
            tx.commit().await.map_err(fault)?;
        }
        Ok(left)
    }

    async fn observe_once(&self, task: &Task) -> Result<Observed, Fault> {
        let drift = match self.find(task).await? {
            None => vec![missing(KIND, task)],
            Some(now) if now.status == Status::Failed || now.status.is_deleting() => {
                vec![differs("status", "ready", now.status.as_str())]
            }
            Some(_) => Vec::new(),
        };
        Ok(Observed { drift, ..Observed::default() })
    }

    async fn adopt_once(&self, task: &Task, what: &str) -> Result<Outcome, Fault> {
        let config: configuration::Service =
            configuration::read(&task.with).map_err(|i| refused(&i))?;
        let scope = scope(task)?;
        let mut read = self.db.read().await.map_err(fault)?;
        let (id, name) = match what.parse::<InstanceId>() {
            Ok(id) => (Some(id), None),
            Err(_) => (None, Some(what.to_owned())),
        };
        let kind = Some(config.kind.clone());
        let filter = store::instance::Filter { id, name, kind, ..Default::default() };
        let found = store::instance::list(&mut read, scope, &filter, &Page::first(1)).await;
        drop(read);
        let found = found.map_err(fault)?.into_iter().next().ok_or_else(|| {
            Fault::Refused(format!("instance {what} of kind {} not found", config.kind))
        })?;
        adopt(&self.db, task, &link(&found)).await?;
        Ok(Outcome { outputs: Map::new(), link: Some(link(&found)) })
    }
}

/// The result for an instance that is in progress or has failed.
fn pending<T>(now: Instance) -> Result<Progress<T>, Fault> {
    let Instance { status, reason, .. } = now;
    match status {
        Status::Failed => Err(failed(Reason::InstanceFailed { reason })),
        _ => Ok(Progress::pending(Reason::InstancePending { status, reason })),
    }
}

fn new_object(
    task: &Task,
    kind: &Kind,
    config: &configuration::Service,
) -> Result<NewInstanceRequest, Fault> {
    let plan = match (&config.plan, &config.instance_type) {
        (Some(plan), _) => Some(plan.clone()),
        (None, Some(of)) => Some(smallest(kind, of)?),
        (None, None) => None,
    };
    Ok(NewInstanceRequest {
        name: object_name(task, config.name.as_deref()),
        plan,
        cloud_provider: config.cloud_provider.clone(),
        region: config.region.clone(),
        billing_model: config.billing_model.clone(),
        ..NewInstanceRequest::default()
    })
}

fn smallest(kind: &Kind, of: &str) -> Result<String, Fault> {
    let found = kind.instance_type(of).and_then(|of| of.sizes.first());
    found.map(|size| format!("{of}.{}", size.id)).ok_or_else(|| {
        let names: Vec<&str> = kind.types.iter().map(|one| one.id.as_str()).collect();
        Fault::Refused(format!("with.instance_type: must be one of {}", names.join(", ")))
    })
}

fn applied(kind: &Kind, now: &Instance) -> Outcome {
    let mut outputs = Map::new();
    for (name, value) in [
        ("id", json!(now.id)),
        ("name", json!(now.name)),
        ("kind", json!(now.kind)),
        ("host", json!(now.host)),
        ("endpoint", json!(now.detail.endpoints.first())),
        ("endpoints", json!(now.detail.endpoints)),
        ("cluster_id", json!(now.cluster_id)),
    ] {
        outputs.insert(name.to_owned(), value);
    }
    // The kind's own name for the host.
    outputs.insert(kind.words.host.clone(), json!(now.host));
    Outcome { outputs, link: Some(link(now)) }
}

fn link(to: &Instance) -> Link {
    Link { kind: KIND.into(), id: to.id.to_string() }
}

impl Operation for Instances {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        let config: configuration::Service = configuration::read(with)?;
        if self.rules.catalog().kind(&config.kind).is_some() {
            return Ok(());
        }
        Err(Invalid::new("with.kind", format!("the catalog has no kind {}", config.kind)))
    }

    fn plan<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        port::ready(Ok(Progress::Done(Vec::new())))
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
