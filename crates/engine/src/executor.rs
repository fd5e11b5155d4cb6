//! Executors that make what Paddock has itself: deployments, instances, and programs that run to their
//! end. Foreign systems' executors are in `adapters`.
//!
//! What is made and the note of it (`resource.link`) are one transaction, so that a repeated call finds
//! its own work.

mod command;
mod deployment;
mod service;

use model::environment::Environment;
use model::event::Actor;
use model::resource::Difference;
use model::{Invalid, ResourceId};
use serde_json::Value;
use store::{Db, Tx};

use crate::port::{Fault, Task};

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

fn refused(invalid: &Invalid) -> Fault {
    Fault::Refused(invalid.to_string())
}

/// A transaction in the name of the user whose environment it is, and the environment held in it: what
/// is made for it is locked after it.
async fn begin(db: &Db, task: &Task) -> Result<(Tx, Environment), Fault> {
    let mut tx = db.begin(Actor::User(task.user)).await.map_err(fault)?;
    let of = store::environment::take(&mut tx, store::Scope::All, task.environment).await;
    Ok((tx, of.map_err(fault)?))
}

/// What it is called if nobody says otherwise.
fn name_of(task: &Task, given: Option<&str>) -> String {
    given.map_or_else(|| format!("{}-{}", task.environment_name, task.name), str::to_owned)
}

fn differs(field: &str, made: impl Into<Value>, found: impl Into<Value>) -> Difference {
    Difference { field: field.to_owned(), made: Some(made.into()), found: Some(found.into()) }
}

fn gone(kind: &str, id: &str) -> Difference {
    Difference { field: kind.to_owned(), made: Some(Value::from(id)), found: None }
}

/// The label that says for which resource something was made.
const RESOURCE: &str = "paddock-resource";
/// The label that says for which change of it.
const KEY: &str = "paddock-key";

fn labels(task: &Task) -> [(String, String); 2] {
    let id: ResourceId = task.id;
    [(RESOURCE.to_owned(), id.to_string()), (KEY.to_owned(), task.key.clone())]
}
