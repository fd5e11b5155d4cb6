//! The KV engine in both versions.

use serde_json::{Map, Value, json};

use super::State;
use super::serve::{Answer, VaultRequest, error};

/// A secret of version 2.
#[derive(Default)]
pub(super) struct Entry {
    /// Oldest first; none if deleted.
    pub(super) versions: Vec<Option<Map<String, Value>>>,
    pub(super) custom: Map<String, Value>,
}

impl Entry {
    pub(super) fn newest(&self) -> Option<&Map<String, Value>> {
        self.versions.last()?.as_ref()
    }

    fn metadata(&self) -> Value {
        let deleted = if self.newest().is_none() { "2030-01-01T00:00:00Z" } else { "" };
        let custom = if self.custom.is_empty() { Value::Null } else { self.custom.clone().into() };
        json!({
            "version": self.versions.len(), "deletion_time": deleted, "destroyed": false,
            "custom_metadata": custom,
        })
    }
}

/// Version 1: the path is the secret.
pub(super) fn version_1(state: &mut State, asked: &VaultRequest<'_>) -> Answer {
    match (asked.method, asked.body) {
        ("GET", _) => match state.kv1.get(asked.path) {
            Some(values) => (200, json!({"data": values, "lease_duration": 2_764_800})),
            None => error(404, ""),
        },
        ("POST" | "PUT", Value::Object(values)) if !values.is_empty() => {
            state.kv1.insert(asked.path.to_owned(), values.clone());
            (204, Value::Null)
        }
        ("POST" | "PUT", _) => error(400, "missing data fields"),
        ("DELETE", _) => {
            state.kv1.remove(asked.path);
            (204, Value::Null)
        }
        _ => error(405, "unsupported operation"),
    }
}

/// Version 2, mounted at `secret`.
pub(super) fn version_2(state: &mut State, asked: &VaultRequest<'_>, rest: &str) -> Answer {
    let settings = json!({"max_versions": 0, "cas_required": false, "delete_version_after": "0s"});
    match rest.split_once('/') {
        None if rest == "config" && asked.method == "GET" => (200, json!({"data": settings})),
        Some(("data", path)) => data(state, asked, &format!("secret/{path}")),
        Some(("metadata", path)) => metadata(state, asked, &format!("secret/{path}")),
        _ => {
            let why = "Invalid path for a versioned K/V secrets engine. See the API docs for the \
                       appropriate API endpoints to use.";
            (404, json!({"data": null, "warnings": [why]}))
        }
    }
}

fn data(state: &mut State, asked: &VaultRequest<'_>, path: &str) -> Answer {
    match asked.method {
        "GET" => {
            let found = state.kv2.get(path).filter(|entry| !entry.versions.is_empty());
            let Some(entry) = found else { return error(404, "") };
            let status = if entry.newest().is_some() { 200 } else { 404 };
            (status, json!({"data": {"data": entry.newest(), "metadata": entry.metadata()}}))
        }
        "POST" | "PUT" => {
            let Some(values) = asked.body["data"].as_object() else {
                return error(400, "no data provided");
            };
            let now = state.kv2.get(path).map_or(0, |entry| entry.versions.len());
            if asked.body["options"]["cas"]
                .as_u64()
                .is_some_and(|cas| usize::try_from(cas) != Ok(now))
            {
                return error(400, "check-and-set parameter did not match the current version");
            }
            let entry = state.kv2.entry(path.to_owned()).or_default();
            entry.versions.push(Some(values.clone()));
            (200, json!({"data": entry.metadata()}))
        }
        "DELETE" => {
            if let Some(newest) =
                state.kv2.get_mut(path).and_then(|entry| entry.versions.last_mut())
            {
                *newest = None;
            }
            (204, Value::Null)
        }
        _ => error(405, "unsupported operation"),
    }
}

fn metadata(state: &mut State, asked: &VaultRequest<'_>, path: &str) -> Answer {
    let has_patch = state.has_patch;
    let change = asked.body["custom_metadata"].as_object();
    match (asked.method, state.kv2.get_mut(path)) {
        ("DELETE", _) => {
            state.kv2.remove(path);
            (204, Value::Null)
        }
        ("GET", Some(entry)) => (200, json!({"data": entry.metadata()})),
        ("PATCH", _) if !has_patch => error(405, "unsupported operation"),
        ("PATCH", _) if asked.content_type != "application/merge-patch+json" => {
            error(415, "PATCH requests should have content type application/merge-patch+json")
        }
        ("PATCH", Some(entry)) => {
            let mut custom = entry.custom.clone();
            for (key, value) in change.into_iter().flatten() {
                match value {
                    Value::Null => drop(custom.remove(key)),
                    value => drop(custom.insert(key.clone(), value.clone())),
                }
            }
            set_custom(entry, custom)
        }
        ("POST" | "PUT", _) => {
            let entry = state.kv2.entry(path.to_owned()).or_default();
            set_custom(entry, change.cloned().unwrap_or_else(|| entry.custom.clone()))
        }
        _ => error(404, ""),
    }
}

/// Printable by Vault's definition: letters, marks, numbers, symbols and the blank.
fn is_printable(text: &str) -> bool {
    let escaped: String = format!("a{text}").escape_debug().collect();
    !escaped.replace(r"\\", "").contains(r"\u{") && !text.contains(char::is_control)
}

/// Sets custom metadata within Vault's limits.
fn set_custom(entry: &mut Entry, custom: Map<String, Value>) -> Answer {
    let fits = |(key, value): (&String, &Value)| {
        let value = value.as_str().filter(|text| text.len() <= 512);
        key.len() <= 128 && is_printable(key) && value.is_some_and(is_printable)
    };
    if custom.len() > 64 || !custom.iter().all(fits) {
        return error(400, "custom_metadata validation failed");
    }
    entry.custom = custom;
    (204, Value::Null)
}
