//! Server-side apply and merge patches: a subset. Lists have a single owner.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Field paths set by each manager.
pub(super) type Owners = BTreeMap<String, BTreeSet<Vec<String>>>;

/// Result of server-side apply, or the conflict with another manager.
pub(super) fn apply(
    object: &Value,
    applied: &Value,
    owners: &mut Owners,
    manager: &str,
    force: bool,
) -> Result<Value, String> {
    let mut fields = BTreeSet::new();
    leaves(applied, &mut Vec::new(), &mut fields);
    for (other, theirs) in owners.iter().filter(|(other, _)| *other != manager) {
        let differs = |path: &&Vec<String>| at(object, path) != at(applied, path);
        let clash = fields.intersection(theirs).find(differs);
        if let Some(path) = clash.filter(|_| !force) {
            return Err(format!(
                "Apply failed with 1 conflict: conflict with \"{other}\": .{}",
                path.join(".")
            ));
        }
    }
    let mut result = object.clone();
    let mine = owners.remove(manager).unwrap_or_default();
    for path in mine.difference(&fields) {
        if !owners.values().any(|theirs| theirs.contains(path)) {
            remove(&mut result, path);
        }
    }
    for path in &fields {
        let value = at(applied, path).cloned().unwrap_or_default();
        set(&mut result, path, value);
        for theirs in owners.values_mut().filter(|_| force) {
            theirs.remove(path);
        }
    }
    owners.insert(manager.to_owned(), fields);
    Ok(result)
}

/// Paths of all values that are not maps. Fields that identify the object have no owner.
fn leaves(value: &Value, path: &mut Vec<String>, found: &mut BTreeSet<Vec<String>>) {
    match value {
        Value::Object(fields) if !fields.is_empty() || path.is_empty() => {
            for (name, field) in fields {
                path.push(name.clone());
                leaves(field, path, found);
                path.pop();
            }
        }
        _ if is_identity(path) => {}
        _ => drop(found.insert(path.clone())),
    }
}

fn is_identity(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(
        path[..],
        ["apiVersion" | "kind"] | ["metadata", "name" | "namespace" | "resourceVersion"]
    )
}

fn at<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

fn set(value: &mut Value, path: &[String], to: Value) {
    let Some((name, rest)) = path.split_first() else { return *value = to };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    if let Value::Object(fields) = value {
        set(fields.entry(name).or_insert(Value::Null), rest, to);
    }
}

fn remove(value: &mut Value, path: &[String]) {
    let (Some((name, rest)), Value::Object(fields)) = (path.split_first(), value) else { return };
    if rest.is_empty() {
        fields.remove(name);
    } else if let Some(inner) = fields.get_mut(name) {
        remove(inner, rest);
    }
}

/// Applies a merge patch: null removes a field.
pub(super) fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else { return *value = patch.clone() };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(fields) = value else { return };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_have_owners_and_conflict() {
        let mut owners = Owners::new();
        let applied = json!({"spec": {"replicas": 1, "paused": true}});
        let one = apply(&json!({}), &applied, &mut owners, "a", false).unwrap();
        assert_eq!(one, applied);
        let same = json!({"spec": {"replicas": 1}});
        apply(&one, &same, &mut owners, "b", false).unwrap();
        let other = json!({"spec": {"replicas": 2}});
        let clash = apply(&one, &other, &mut owners, "b", false).unwrap_err();
        assert!(clash.contains("conflict with \"a\": .spec.replicas"), "{clash}");
        let two = apply(&one, &other, &mut owners, "b", true).unwrap();
        assert_eq!(two, json!({"spec": {"replicas": 2, "paused": true}}));
        // A field that its only owner no longer applies is removed.
        let three = apply(&two, &json!({}), &mut owners, "a", false).unwrap();
        assert_eq!(three, json!({"spec": {"replicas": 2}}));
    }

    #[test]
    fn null_removes_a_field() {
        let mut value = json!({"a": {"b": 1, "c": 2}});
        merge(&mut value, &json!({"a": {"b": null, "d": [3]}}));
        assert_eq!(value, json!({"a": {"c": 2, "d": [3]}}));
    }
}
