//! Complete environments for tests, with fields to override.

use serde_json::{Value, json};
use wire::environment::Environment;

/// An environment with overridden fields, also of its resources.
pub(in crate::client) fn environment(fields: &Value) -> Environment {
    let id = "9m4e2mr0ui3e8a215n4g";
    let at = "2026-01-02T03:04:05.6Z";
    let mut environment = with(
        json!({
            "id": id, "organization_id": id, "name": "prod", "description": "", "tags": {},
            "templates": [], "parameters": {}, "on_drift": "report", "status": "deploying",
            "status_words": "", "status_reason": "", "status_since": at, "progress": 0,
            "entry_points": [], "cancelling": false, "created_by": id, "generation": 1,
            "created_at": at, "updated_at": at,
        }),
        fields,
    );
    for resource in environment["resources"].as_array_mut().into_iter().flatten() {
        *resource = with(
            json!({
                "id": id, "environment_id": id, "name": "", "executor": "deployment",
                "template": "", "action": false, "description": "", "tags": {}, "act": "nothing",
                "status": "pending", "status_reason": "", "status_since": at, "progress": 0,
                "outputs": {}, "depends_on": [], "drift": [], "unexpected": [], "attempts": 0,
                "generation": 1, "created_at": at, "updated_at": at,
            }),
            resource,
        );
    }
    serde_json::from_value(environment).unwrap()
}

fn with(mut all: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        all[name] = value.clone();
    }
    all
}
