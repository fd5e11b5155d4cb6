//! How what is found differs from what was made, or shall be. Pure.

use std::collections::BTreeMap;

use engine::port::{Observed, Task};
use model::resource::Difference;
use serde_json::Value;

use super::batch::Values;
use super::place::MARK;
use super::seen::{Entry, Seen};

/// The most keys of others that are named.
const MAX_NAMED: usize = 100;

/// A value as bytes: text as it is, all else as JSON.
pub(super) fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

/// All values as bytes.
pub(super) fn all_bytes(values: &BTreeMap<String, Value>) -> Values {
    values.iter().map(|(name, value)| (name.clone(), bytes(value))).collect()
}

/// What is not as it was made. A key whose index is still that of our last write was touched by
/// nobody; of others, the value decides.
pub(super) fn observed(seen: &Seen, task: &Task, made: &BTreeMap<String, Value>) -> Observed {
    let own = seen.own(task).map(|(mark, index)| mark.clone().known(index));
    let ours = own.as_ref().map(|mark| mark.keys.clone()).unwrap_or_default();
    let is_touched = |name: &String| {
        let now = seen.entries.get(name).map(|entry| entry.changed);
        now.is_none() || now != ours.get(name).copied()
    };
    let mut drift = if own.is_some() { Vec::new() } else { vec![unmarked(seen, task)] };
    let touched = made.iter().filter(|(name, _)| is_touched(name));
    drift.extend(touched.filter_map(|(name, value)| differs(seen, name, Some(value))));
    let extra = ours.keys().filter(|name| !made.contains_key(*name));
    drift.extend(extra.filter_map(|name| differs(seen, name, None)));
    let is_ours = |name: &String| made.contains_key(name) || ours.contains_key(name);
    let unexpected = if seen.is_anothers(task) { Vec::new() } else { unexpected(seen, is_ours) };
    Observed { drift, unexpected }
}

/// The keys of others, by name as long as they are not too many.
fn unexpected(seen: &Seen, is_ours: impl Fn(&String) -> bool) -> Vec<String> {
    let others: Vec<&String> = seen.entries.keys().filter(|name| !is_ours(name)).collect();
    let rest = others.len().saturating_sub(MAX_NAMED);
    let named = others.into_iter().take(MAX_NAMED).map(|name| seen.place.key(name));
    let more = (rest > 0).then(|| format!("and {rest} more"));
    named.chain(more).collect()
}

/// What would change.
pub(super) fn planned(seen: &Seen, task: &Task, wish: &BTreeMap<String, Value>) -> Vec<Difference> {
    let ours = seen.own(task).map(|(mark, _)| mark.keys.clone()).unwrap_or_default();
    let leaving = ours.keys().filter(|name| !wish.contains_key(*name));
    let leaving = leaving.filter_map(|name| differs(seen, name, None));
    wish.iter()
        .filter_map(|(name, value)| differs(seen, name, Some(value)))
        .chain(leaving)
        .collect()
}

fn differs(seen: &Seen, name: &str, made: Option<&Value>) -> Option<Difference> {
    let entry = seen.entries.get(name);
    if entry.map(|entry| entry.value.clone()) == made.map(bytes) {
        return None;
    }
    let found = entry.map(|entry| shown(entry, made));
    Some(Difference { field: name.to_owned(), made: made.cloned(), found })
}

/// The mark of this resource is gone, or another's.
fn unmarked(seen: &Seen, task: &Task) -> Difference {
    let whose = seen.mark.as_ref().map(|found| match &found.mark {
        Some(mark) => Value::from(mark.resource.clone()),
        None => Value::from("something that can't be read"),
    });
    Difference { field: MARK.into(), made: Some(task.id.to_string().into()), found: whose }
}

/// The value of a key: as JSON where JSON was written.
fn shown(entry: &Entry, made: Option<&Value>) -> Value {
    let is_text = made.is_none_or(Value::is_string);
    let json = if is_text { None } else { serde_json::from_slice(&entry.value).ok() };
    json.unwrap_or_else(|| String::from_utf8_lossy(&entry.value).into())
}
