//! What is different between two versions of a template, by names and not by places in lists.

use serde::Serialize;
use serde_json::{Map, Value};

use super::Template;

/// One field that is different.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Which field: `resources.web.with.image`.
    pub path: String,
    /// What it was; none if it was not there.
    pub from: Option<Value>,
    /// What it is; none if it is gone.
    pub to: Option<Value>,
}

/// What is different in `to`, in the order of the fields' names. That the versions differ is not said.
pub fn diff(from: &Template, to: &Template) -> Vec<Change> {
    let mut changes = Vec::new();
    maps("", &by_names(from), &by_names(to), &mut changes);
    changes
}

/// A template whose lists of named things are maps.
fn by_names(template: &Template) -> Map<String, Value> {
    let Ok(Value::Object(mut map)) = serde_json::to_value(template) else { return Map::new() };
    map.remove("version");
    for list in ["groups", "resources", "actions"] {
        if let Some(Value::Array(items)) = map.get_mut(list).map(Value::take) {
            let named = items.into_iter().filter_map(|item| match item {
                Value::Object(mut one) => {
                    let name = one.remove("name")?.as_str()?.to_owned();
                    Some((name, Value::Object(one)))
                }
                _ => None,
            });
            map.insert(list.to_owned(), Value::Object(named.collect()));
        }
    }
    map
}

fn maps(path: &str, from: &Map<String, Value>, to: &Map<String, Value>, changes: &mut Vec<Change>) {
    let mut names: Vec<&String> = from.keys().chain(to.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        values(inner, from.get(name), to.get(name), changes);
    }
}

fn values(path: String, from: Option<&Value>, to: Option<&Value>, changes: &mut Vec<Change>) {
    let from = from.filter(|value| !value.is_null());
    let to = to.filter(|value| !value.is_null());
    match (from, to) {
        (Some(Value::Object(from)), Some(Value::Object(to))) => maps(&path, from, to, changes),
        (from, to) if from == to => {}
        (from, to) => changes.push(Change { path, from: from.cloned(), to: to.cloned() }),
    }
}
