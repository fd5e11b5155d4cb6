//! Resources with their logs, as answers show them.
//!
//! Values of environment variables may be secret: they are never shown, only the expressions that a
//! template has in their place.

use model::resource::{self, Status};
use serde_json::{Map, Value};
use store::Read;
use store::operation::log;
use wire::resource::Resource;

/// What stands in the place of a value that is not shown.
const HIDDEN: &str = "(not shown)";
/// So many lines of a log are shown with a failure.
const LAST_LINES: i64 = 10;

/// As a part of its environment: with what was said last if it failed.
pub(crate) async fn part(read: &mut Read, of: resource::Resource) -> store::Result<Resource> {
    let last_log = match of.status {
        Status::Failed => Some(log::last(read, of.id, LAST_LINES).await?),
        _ => None,
    };
    Ok(Resource { last_log, ..of.into() })
}

/// With what its executor is told.
pub(super) async fn long(read: &mut Read, mut of: resource::Resource) -> store::Result<Resource> {
    let with = Some(shown(std::mem::take(&mut of.node.with)));
    Ok(Resource { with, ..part(read, of).await? })
}

fn shown(mut with: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(env)) = with.get_mut("env") {
        let is_expression = |value: &Value| value.as_str().is_some_and(|text| text.contains("{{"));
        for value in env.values_mut().filter(|value| !is_expression(value)) {
            *value = HIDDEN.into();
        }
    }
    with
}
