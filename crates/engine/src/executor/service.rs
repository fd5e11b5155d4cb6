//! Instances of managed services that belong to environments.

use futures_util::future::BoxFuture;
use model::instance::{Instance, Status};
use model::kind::Kind;
use model::reason::By;
use model::resource::{Difference, Link, Reason};
use model::template::with;
use model::{InstanceId, Invalid};
use serde_json::{Map, Value, json};
use store::{Db, Page, Scope};

use super::{
    adopt, begin, differs, failed, fault, found, gone, linked, name_of, next_event, own,
    quota_exceeded, refused, set_link,
};
use crate::instance::asking::{self, Asker, Refused, Wanted};
use crate::rules::Rules;
use port::{Answer, Fault, Files, Observed, Operation, Outcome, Progress, Task};

/// The word for an instance in links.
const KIND: &str = "instance";

/// Makes instances.
pub struct Services {
    db: Db,
    rules: Rules,
}

impl Services {
    /// By these rules, as for everybody.
    pub fn new(db: Db, rules: Rules) -> Self {
        Self { db, rules }
    }

    async fn found(&self, task: &Task) -> Result<Option<Instance>, Fault> {
        let mut read = self.db.read().await.map_err(fault)?;
        let Some(id) = linked::<InstanceId>(&mut read, task, KIND).await? else { return Ok(None) };
        let own = own(task)?;
        found(store::instance::get(&mut read, own, id).await)
    }

    async fn make(
        &self,
        task: &Task,
        kind: &Kind,
        wish: &with::Service,
    ) -> Result<Instance, Fault> {
        let (mut tx, of) = begin(&self.db, task).await?;
        let own = Scope::Organization(of.organization_id);
        let Some(user) = found(store::user::get(&mut tx, own, of.created_by).await)? else {
            let why = "the user who created the environment no longer exists: create it again";
            return Err(Fault::Refused(why.into()));
        };
        if self.rules.is_denied(&mut tx, &user.username).await.map_err(fault)? {
            let why = format!("{} may not have instances: ask an administrator", user.username);
            return Err(Fault::Refused(why));
        }
        let wanted = wanted(task, kind, wish)?;
        let asker = Asker { user: &user, account: None };
        let made = asking::create(&mut tx, &self.rules, &asker, kind, &wanted).await;
        let made = made.map_err(|refused| match refused {
            Refused::Store(error @ store::Error::Limit { .. }) => quota_exceeded(&error),
            Refused::Store(error) => fault(error),
            other => Fault::Refused(format!("{}: {other}", other.field().unwrap_or_default())),
        })?;
        set_link(&mut tx, task, &link(&made)).await?;
        tx.commit().await.map_err(fault)?;
        task.log.say(format!("Instance {} ({}) created.", made.name, made.id));
        Ok(made)
    }

    async fn apply_once(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let wish: with::Service = with::read(&task.with).map_err(|i| refused(&i))?;
        let catalog = self.rules.catalog();
        let kind = catalog.kind(&wish.kind).ok_or_else(|| {
            let names: Vec<&str> = catalog.kinds().map(|kind| kind.name.as_str()).collect();
            Fault::Refused(format!("with.kind: must be one of {}", names.join(", ")))
        })?;
        let Some(now) = self.found(task).await? else {
            return pending(self.make(task, kind, &wish).await?);
        };
        match now.status {
            Status::Ready => Ok(Progress::Done(applied(kind, &now))),
            // The cause may be fixed by now.
            Status::Failed if now.status_since < task.since => {
                self.end(task, &now).await?;
                Ok(Progress::pending(Reason::Replacing))
            }
            status if status.is_leaving() => Ok(Progress::pending(Reason::Replacing)),
            _ => pending(now),
        }
    }

    async fn destroy_once(&self, task: &Task) -> Result<Progress<()>, Fault> {
        let Some(now) = self.found(task).await? else { return Ok(Progress::Done(())) };
        if now.status.is_leaving() {
            return pending(now);
        }
        match self.end(task, &now).await? {
            Some(now) => pending(now),
            None => Ok(Progress::Done(())),
        }
    }

    /// Requests the deletion of an instance, if it still exists.
    async fn end(&self, task: &Task, now: &Instance) -> Result<Option<Instance>, Fault> {
        let (mut tx, of) = begin(&self.db, task).await?;
        let by = By::Environment { name: of.name };
        let left = found(store::instance::request_delete(&mut tx, Scope::All, now.id, by).await)?;
        if left.is_some() {
            tx.commit().await.map_err(fault)?;
        }
        Ok(left)
    }

    async fn observe_once(&self, task: &Task) -> Result<Observed, Fault> {
        let drift = match self.found(task).await? {
            None => vec![gone(KIND, task)],
            Some(now) if now.status == Status::Failed || now.status.is_leaving() => {
                vec![differs("status", "ready", now.status.as_str())]
            }
            Some(_) => Vec::new(),
        };
        Ok(Observed { drift, ..Observed::default() })
    }

    async fn adopt_once(&self, task: &Task, what: &str) -> Result<Outcome, Fault> {
        let wish: with::Service = with::read(&task.with).map_err(|i| refused(&i))?;
        let own = own(task)?;
        let mut read = self.db.read().await.map_err(fault)?;
        let (id, name) = match what.parse::<InstanceId>() {
            Ok(id) => (Some(id), None),
            Err(_) => (None, Some(what.to_owned())),
        };
        let kind = Some(wish.kind.clone());
        let filter = store::instance::Filter { id, name, kind, ..Default::default() };
        let found = store::instance::list(&mut read, own, &filter, &Page::first(1)).await;
        drop(read);
        let found = found.map_err(fault)?.into_iter().next().ok_or_else(|| {
            Fault::Refused(format!("instance {what} of kind {} not found", wish.kind))
        })?;
        adopt(&self.db, task, &link(&found)).await?;
        Ok(Outcome { outputs: Map::new(), link: Some(link(&found)) })
    }
}

/// The answer while an instance is on its way, or has failed.
fn pending<T>(now: Instance) -> Result<Progress<T>, Fault> {
    let Instance { status, reason, .. } = now;
    match status {
        Status::Failed => Err(failed(Reason::InstanceFailed { reason })),
        _ => Ok(Progress::pending(Reason::InstancePending { status, reason })),
    }
}

fn wanted(task: &Task, kind: &Kind, wish: &with::Service) -> Result<Wanted, Fault> {
    let plan = match (&wish.plan, &wish.instance_type) {
        (Some(plan), _) => Some(plan.clone()),
        (None, Some(of)) => Some(smallest(kind, of)?),
        (None, None) => None,
    };
    Ok(Wanted {
        name: name_of(task, wish.name.as_deref()),
        plan,
        cloud_provider: wish.cloud_provider.clone(),
        region: wish.region.clone(),
        billing_model: wish.billing_model.clone(),
        ..Wanted::default()
    })
}

fn smallest(kind: &Kind, of: &str) -> Result<String, Fault> {
    let found = kind.type_of(of).and_then(|of| of.sizes.first());
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
    // As the kind's own API calls it.
    outputs.insert(kind.words.host.clone(), json!(now.host));
    Outcome { outputs, link: Some(link(now)) }
}

fn link(to: &Instance) -> Link {
    Link { kind: KIND.into(), id: to.id.to_string() }
}

impl Operation for Services {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        let told: with::Service = with::read(with)?;
        if self.rules.catalog().kind(&told.kind).is_some() {
            return Ok(());
        }
        Err(Invalid::new("with.kind", format!("the catalog has no kind {}", told.kind)))
    }

    fn plan<'a>(&'a self, _: &'a Task) -> Answer<'a, Progress<Vec<Difference>>> {
        port::ready(Ok(Progress::Done(Vec::new())))
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
