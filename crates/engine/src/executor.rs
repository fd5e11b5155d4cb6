//! Executors for Paddock's own kinds: deployments, instances, and commands that run to completion.
//! Executors for external systems are in `adapters`.
//!
//! A created object and its record (`resource.link`) are written in one transaction, so that a
//! repeated call finds the object.

mod command;
mod deployment;
mod service;

use std::str::FromStr;

use futures_util::future::BoxFuture;
use model::environment::Environment;
use model::event::Actor;
use model::operation::Subject;
use model::resource::{Difference, Link, Reason};
use model::{Invalid, ResourceId};
use serde_json::Value;
use store::{Db, Read, Scope, Tx};

use port::{Fault, Task};

pub use command::Commands;
pub use deployment::Deployments;
pub use service::Instances;

/// Maps a store error: transient ones are retried, the others refuse the operation.
fn fault(error: store::Error) -> Fault {
    match error {
        store::Error::Unavailable(_) | store::Error::Database(_) | store::Error::Stale { .. } => {
            Fault::Unavailable(error.to_string())
        }
        store::Error::QuotaExceeded(_) => quota_exceeded(&error),
        other => Fault::Refused(other.to_string()),
    }
}

/// The organization's quota is exceeded: retried, because capacity may be released.
fn quota_exceeded(error: &store::Error) -> Fault {
    let reason = Box::new(Reason::QuotaExceeded { message: error.to_string() });
    Fault::Subject { reason, is_retried: true }
}

fn failed(reason: Reason) -> Fault {
    Fault::Subject { reason: Box::new(reason), is_retried: false }
}

fn refused(invalid: &Invalid) -> Fault {
    Fault::Refused(invalid.to_string())
}

/// Begins a transaction as the environment's user. The environment is locked before its objects.
async fn begin(db: &Db, task: &Task) -> Result<(Tx, Environment), Fault> {
    let of = task.environment.as_ref().ok_or_else(no_resource)?;
    let mut tx = db.begin(Actor::User(of.user)).await.map_err(fault)?;
    let of = store::environment::lock(&mut tx, Scope::All, of.id).await;
    Ok((tx, of.map_err(fault)?))
}

/// The task's resource; these executors serve no other subjects.
fn resource(task: &Task) -> Result<ResourceId, Fault> {
    match task.id {
        Subject::Resource(id) => Ok(id),
        Subject::Cluster(_) => Err(no_resource()),
    }
}

fn no_resource() -> Fault {
    Fault::Refused("this executor serves resources of environments only".into())
}

/// The scope of the task's organization: objects of other organizations are not visible.
fn scope(task: &Task) -> Result<Scope, Fault> {
    task.organization.map(Scope::Organization).ok_or_else(no_resource)
}

/// Resolves at the next event: the status of what was created for a resource may have changed.
fn next_event(db: &Db) -> BoxFuture<'static, ()> {
    let mut signal = db.event_signal();
    signal.mark_unchanged();
    Box::pin(async move { drop(signal.changed().await) })
}

/// Id of the object that was created for a resource.
async fn linked_id<I: FromStr>(
    read: &mut Read,
    task: &Task,
    kind: &str,
) -> Result<Option<I>, Fault> {
    let now = store::resource::get(read, Scope::All, resource(task)?).await.map_err(fault)?;
    let link = now.link.filter(|link| link.kind == kind);
    Ok(link.and_then(|link| link.id.parse().ok()))
}

/// Records which object was created for a resource. A stale fencing token is rejected.
async fn set_link(tx: &mut Tx, task: &Task, link: &Link) -> Result<(), Fault> {
    let recorded = store::resource::set_link(tx, resource(task)?, task.fence, Some(link)).await;
    recorded.map_err(|error| Fault::Unavailable(error.to_string()))
}

/// Records an existing object as belonging to a resource.
async fn adopt(db: &Db, task: &Task, link: &Link) -> Result<(), Fault> {
    let (mut tx, _) = begin(db, task).await?;
    let owner = store::resource::owner(&mut tx, link).await.map_err(fault)?;
    if let Some(other) = owner.filter(|one| Subject::from(one.id) != task.id) {
        let Link { kind, id } = link;
        let why = format!("{kind} {id} already belongs to resource {}", other.node.name);
        return Err(Fault::Refused(why));
    }
    set_link(&mut tx, task, link).await?;
    tx.commit().await.map_err(fault)
}

/// Maps `NotFound` to `None`.
fn found<T>(answer: store::Result<T>) -> Result<Option<T>, Fault> {
    match answer {
        Err(store::Error::NotFound { .. }) => Ok(None),
        other => other.map(Some).map_err(fault),
    }
}

/// The given name, or `<environment>-<resource>`.
fn object_name(task: &Task, given: Option<&str>) -> String {
    let of = task.environment.as_ref().map_or("", |of| &of.name);
    given.map_or_else(|| format!("{of}-{}", task.name), str::to_owned)
}

fn differs(field: &str, made: impl Into<Value>, found: impl Into<Value>) -> Difference {
    Difference { field: field.to_owned(), made: Some(made.into()), found: Some(found.into()) }
}

/// Reports that the object of a resource no longer exists.
fn missing(kind: &str, task: &Task) -> Difference {
    let made = task.link.as_ref().map(|link| Value::from(link.id.clone()));
    Difference { field: kind.to_owned(), made, found: None }
}

/// Label: the resource that an object was created for.
const RESOURCE: &str = "paddock-resource";
/// Label: the idempotency key of the change that an object was created for.
const KEY: &str = "paddock-key";

fn labels(task: &Task) -> [(String, String); 2] {
    [(RESOURCE.to_owned(), task.id.to_string()), (KEY.to_owned(), task.key.clone())]
}
