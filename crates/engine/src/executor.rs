//! Executors that make what Paddock has itself: deployments, instances, and programs that run to their
//! end. Foreign systems' executors are in `adapters`.
//!
//! What is made and the note of it (`resource.link`) are one transaction, so that a repeated call finds
//! its own work.

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
pub use service::Services;

/// Our own store did not do it: tried again, unless it said no.
fn fault(error: store::Error) -> Fault {
    match error {
        store::Error::Unavailable(_) | store::Error::Broken(_) | store::Error::Stale { .. } => {
            Fault::Unavailable(error.to_string())
        }
        other => Fault::Refused(other.to_string()),
    }
}

/// The organization's quota is used up: retried, because something else may be deleted.
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

/// A transaction in the name of the user whose environment it is, and the environment held in it: what
/// is made for it is locked after it.
async fn begin(db: &Db, task: &Task) -> Result<(Tx, Environment), Fault> {
    let of = task.environment.as_ref().ok_or_else(no_resource)?;
    let mut tx = db.begin(Actor::User(of.user)).await.map_err(fault)?;
    let of = store::environment::take(&mut tx, Scope::All, of.id).await;
    Ok((tx, of.map_err(fault)?))
}

/// The resource; these executors operate on nothing else.
fn resource(task: &Task) -> Result<ResourceId, Fault> {
    match task.id {
        Subject::Resource(id) => Ok(id),
        Subject::Cluster(_) => Err(no_resource()),
    }
}

fn no_resource() -> Fault {
    Fault::Refused("this executor serves resources of environments only".into())
}

/// The organization whose resource it is: nothing of others may be used for it.
fn own(task: &Task) -> Result<Scope, Fault> {
    task.organization.map(Scope::Organization).ok_or_else(no_resource)
}

/// Resolves at the next event: the status of what was created for a resource may have changed.
fn next_event(db: &Db) -> BoxFuture<'static, ()> {
    let mut signal = db.event_signal();
    signal.mark_unchanged();
    Box::pin(async move { drop(signal.changed().await) })
}

/// The id of what was made for a resource.
async fn linked<I: FromStr>(read: &mut Read, task: &Task, kind: &str) -> Result<Option<I>, Fault> {
    let now = store::resource::get(read, Scope::All, resource(task)?).await.map_err(fault)?;
    let link = now.link.filter(|link| link.kind == kind);
    Ok(link.and_then(|link| link.id.parse().ok()))
}

/// Notes what was made for a resource. Whose turn is over notes nothing.
async fn set_link(tx: &mut Tx, task: &Task, link: &Link) -> Result<(), Fault> {
    let noted = store::resource::set_link(tx, resource(task)?, task.fence, Some(link)).await;
    noted.map_err(|error| Fault::Unavailable(error.to_string()))
}

/// Notes what was made by others and belongs to a resource from now on.
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

/// What the store has; none if it is gone.
fn found<T>(answer: store::Result<T>) -> Result<Option<T>, Fault> {
    match answer {
        Err(store::Error::NotFound { .. }) => Ok(None),
        other => other.map(Some).map_err(fault),
    }
}

/// What it is called if nobody says otherwise.
fn name_of(task: &Task, given: Option<&str>) -> String {
    let of = task.environment.as_ref().map_or("", |of| &of.name);
    given.map_or_else(|| format!("{of}-{}", task.name), str::to_owned)
}

fn differs(field: &str, made: impl Into<Value>, found: impl Into<Value>) -> Difference {
    Difference { field: field.to_owned(), made: Some(made.into()), found: Some(found.into()) }
}

/// What was made for a resource is no longer there.
fn gone(kind: &str, task: &Task) -> Difference {
    let made = task.link.as_ref().map(|link| Value::from(link.id.clone()));
    Difference { field: kind.to_owned(), made, found: None }
}

/// The label that says for which resource something was made.
const RESOURCE: &str = "paddock-resource";
/// The label that says for which change of it.
const KEY: &str = "paddock-key";

fn labels(task: &Task) -> [(String, String); 2] {
    [(RESOURCE.to_owned(), task.id.to_string()), (KEY.to_owned(), task.key.clone())]
}
