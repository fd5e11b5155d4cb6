//! The differences between two versions of a template, by names instead of list positions.

use serde::Serialize;
use serde_json::{Map, Value};

use super::Template;

/// A changed field.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The path of the field: `resources.web.with.image`.
    pub path: String,
    /// The old value; none if the field is new.
    pub from: Option<Value>,
    /// The new value; none if the field was removed.
    pub to: Option<Value>,
}

/// The changes from `from` to `to`, ordered by path. The version itself is not compared.
pub fn diff(from: &Template, to: &Template) -> Vec<Change> {
    let mut changes = Vec::new();
    diff_map("", &by_names(from), &by_names(to), &mut changes);
    changes
}

/// A template as JSON, with lists of named entries as maps.
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

fn diff_map(path: &str, from: &Map<String, Value>, to: &Map<String, Value>, out: &mut Vec<Change>) {
    let mut names: Vec<&String> = from.keys().chain(to.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        diff_value(inner, from.get(name), to.get(name), out);
    }
}

fn diff_value(path: String, from: Option<&Value>, to: Option<&Value>, out: &mut Vec<Change>) {
    let from = from.filter(|value| !value.is_null());
    let to = to.filter(|value| !value.is_null());
    match (from, to) {
        (Some(Value::Object(from)), Some(Value::Object(to))) => diff_map(&path, from, to, out),
        (from, to) if from == to => {}
        (from, to) => out.push(Change { path, from: from.cloned(), to: to.cloned() }),
    }
}
