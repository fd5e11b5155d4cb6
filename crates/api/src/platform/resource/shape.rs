//! Resource responses with logs.
//!
//! Values of environment variables may be secret: they are never returned, only the expressions of
//! the template.

use model::resource::{self, Status};
use serde_json::{Map, Value};
use store::Read;
use store::operation::log;
use wire::resource::Resource;

/// Replaces a hidden value.
const HIDDEN: &str = "(not shown)";
/// Number of log lines shown with a failure.
const LAST_LINES: i64 = 10;

/// Converts a resource with its last log lines if it failed.
pub(crate) async fn with_last_log(
    read: &mut Read,
    resource: resource::Resource,
) -> store::Result<Resource> {
    let last_log = match resource.status {
        Status::Failed => Some(log::last(read, resource.id, LAST_LINES).await?),
        _ => None,
    };
    Ok(Resource { last_log, ..resource.into() })
}

/// Converts a resource with the input of its executor.
pub(super) async fn with_input(
    read: &mut Read,
    mut resource: resource::Resource,
) -> store::Result<Resource> {
    let with = Some(without_env_values(std::mem::take(&mut resource.node.with)));
    Ok(Resource { with, ..with_last_log(read, resource).await? })
}

fn without_env_values(mut with: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(env)) = with.get_mut("env") {
        let is_expression = |value: &Value| value.as_str().is_some_and(|text| text.contains("{{"));
        for value in env.values_mut().filter(|value| !is_expression(value)) {
            *value = HIDDEN.into();
        }
    }
    with
}
