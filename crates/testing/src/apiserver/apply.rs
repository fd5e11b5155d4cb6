//! Server-side apply and merge patches: a sensible subset. Lists have one owner.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Which fields, by path, each manager has set.
pub(super) type Owners = BTreeMap<String, BTreeSet<Vec<String>>>;

/// What server-side apply makes of an object, or which manager is in the way of which field.
pub(super) fn apply(
    object: &Value,
    wanted: &Value,
    owners: &mut Owners,
    manager: &str,
    force: bool,
) -> Result<Value, String> {
    let mut fields = BTreeSet::new();
    leaves(wanted, &mut Vec::new(), &mut fields);
    for (other, theirs) in owners.iter().filter(|(other, _)| *other != manager) {
        let differs = |path: &&Vec<String>| at(object, path) != at(wanted, path);
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
            forget(&mut result, path);
        }
    }
    for path in &fields {
        let value = at(wanted, path).cloned().unwrap_or_default();
        set(&mut result, path, value);
        for theirs in owners.values_mut().filter(|_| force) {
            theirs.remove(path);
        }
    }
    owners.insert(manager.to_owned(), fields);
    Ok(result)
}

/// The paths of all values that are no maps. What names an object belongs to nobody.
fn leaves(value: &Value, path: &mut Vec<String>, found: &mut BTreeSet<Vec<String>>) {
    match value {
        Value::Object(fields) if !fields.is_empty() || path.is_empty() => {
            for (name, field) in fields {
                path.push(name.clone());
                leaves(field, path, found);
                path.pop();
            }
        }
        _ if names(path) => {}
        _ => drop(found.insert(path.clone())),
    }
}

fn names(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(path[..], ["apiVersion" | "kind"] | ["metadata", "name" | "namespace"])
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

fn forget(value: &mut Value, path: &[String]) {
    let (Some((name, rest)), Value::Object(fields)) = (path.split_first(), value) else { return };
    if rest.is_empty() {
        fields.remove(name);
    } else if let Some(inner) = fields.get_mut(name) {
        forget(inner, rest);
    }
}

/// A merge patch: null removes.
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
    fn fields_have_owners() {
        let mut owners = Owners::new();
        let wanted = json!({"spec": {"replicas": 1, "paused": true}});
        let one = apply(&json!({}), &wanted, &mut owners, "a", false).unwrap();
        assert_eq!(one, wanted);
        let same = json!({"spec": {"replicas": 1}});
        apply(&one, &same, &mut owners, "b", false).unwrap();
        let other = json!({"spec": {"replicas": 2}});
        let clash = apply(&one, &other, &mut owners, "b", false).unwrap_err();
        assert!(clash.contains("conflict with \"a\": .spec.replicas"), "{clash}");
        let two = apply(&one, &other, &mut owners, "b", true).unwrap();
        assert_eq!(two, json!({"spec": {"replicas": 2, "paused": true}}));
        // What its one owner does not want any more goes.
        let three = apply(&two, &json!({}), &mut owners, "a", false).unwrap();
        assert_eq!(three, json!({"spec": {"replicas": 2}}));
    }

    #[test]
    fn null_removes() {
        let mut value = json!({"a": {"b": 1, "c": 2}});
        merge(&mut value, &json!({"a": {"b": null, "d": [3]}}));
        assert_eq!(value, json!({"a": {"c": 2, "d": [3]}}));
    }
}
