//! Complete API responses for tests, with fields to override.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// An id, padded with zeros.
pub(crate) fn id(short: &str) -> String {
    format!("{short:0<20}")
}

/// A response with overridden fields.
fn with<T: DeserializeOwned>(mut response: Value, fields: Value) -> T {
    let Value::Object(fields) = fields else { panic!("not an object") };
    for (name, value) in fields {
        response[name] = value;
    }
    serde_json::from_value(response).unwrap()
}

/// A cluster.
pub(crate) fn cluster(fields: Value) -> wire::cluster::Cluster {
    let response = json!({
        "id": id("c"), "organization_id": null, "shared": true, "name": "prod", "status": "ready",
        "status_reason": "", "provider": "local", "cloud_provider": "", "region": "", "labels": {},
        "capacity": {}, "nodes": [], "deployments": 0, "generation": 1, "created_by": "server",
        "created_at": "2026-01-02T03:04:05.123456Z", "updated_at": "2026-01-02T03:04:05.123456Z",
    });
    with(response, fields)
}

/// A token.
pub(crate) fn token(fields: Value) -> wire::token::Token {
    let response = json!({
        "id": id("t"), "kind": "personal", "name": "laptop",
        "scope": {"read_only": false, "kinds": []}, "user_id": id("u"), "service_account": null,
        "created_by": "", "created_at": "2026-01-02T03:04:05Z",
        "expires_at": "2026-01-09T03:04:05Z", "last_used_at": null, "is_current": false,
    });
    with(response, fields)
}

/// A deployment.
pub(crate) fn deployment(fields: Value) -> wire::deployment::Deployment {
    let response = json!({
        "id": id("d"), "organization_id": id("o"), "name": "web", "resources": {}, "replicas": 1,
        "priority": 0, "env": {}, "command": [], "ports": [], "labels": {}, "restart": "never",
        "node_selector": {}, "anti_affinity": false, "status": "queued", "status_reason": "",
        "endpoints": [], "generation": 1, "created_by": "server",
        "created_at": "2026-01-02T03:04:05.6Z", "updated_at": "2026-01-02T03:04:05.6Z",
    });
    with(response, fields)
}

/// A replica of a deployment.
pub(crate) fn replica(fields: Value) -> wire::deployment::ReplicaStatus {
    let response = json!({"number": 0, "status": "running", "status_reason": "", "endpoints": []});
    with(response, fields)
}

/// A placement explanation of a replica.
pub(crate) fn explanation(fields: Value) -> wire::explain::ReplicaExplanation {
    let response = json!({
        "number": 0, "verdict": "not_now", "shortages": [], "blockers": [], "other_blockers": 0,
    });
    with(response, fields)
}

/// An invite.
pub(crate) fn invite(fields: Value) -> wire::invite::Invite {
    let response = json!({
        "id": id("i"), "organization_id": id("o"), "role": "member", "active": false, "expired": false,
        "times_used": 0, "created_by": id("u"), "created_at": "2026-01-02T03:04:05Z",
        "expires_at": "2026-01-09T03:04:05Z",
    });
    with(response, fields)
}
