//! Differences between the observed keys and the applied or desired ones. Pure.

use std::collections::BTreeMap;

use model::resource::Difference;
use port::{Observed, Task};
use serde_json::Value;

use super::batch::{Context, Values};
use super::place::MARK;
use super::snapshot::{Entry, Snapshot};

/// The maximum number of unexpected keys listed.
const MAX_NAMED: usize = 100;
/// The maximum number of differences listed.
const MAX_DIFFERENCES: usize = 50;
/// The maximum length of a value shown.
const MAX_SHOWN_BYTES: usize = 1024;
/// Stands for a value that Paddock did not create.
const NOT_OURS: &str = "(not created by Paddock)";

/// A value as bytes: strings as they are, others as JSON.
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

/// The drift from the applied values. A key whose index is that of our last write is unchanged; for
/// others the value decides.
pub(super) fn observed(
    snapshot: &Snapshot,
    task: &Task,
    applied: &BTreeMap<String, Value>,
) -> Observed {
    if snapshot.is_owned_by_other(task) {
        // Users of this resource may not see the keys of another, not even their names.
        return Observed { drift: vec![unmarked(snapshot, task)], ..Observed::default() };
    }
    let own = snapshot.own(task).map(|(mark, index)| mark.clone().with_index(index));
    let ours = own.as_ref().map(|mark| mark.keys.clone()).unwrap_or_default();
    let is_changed = |name: &String| {
        let now = snapshot.entries.get(name).map(|entry| entry.changed);
        now.is_none() || now != ours.get(name).copied()
    };
    let is_ours = |name: &str| match &own {
        Some(mark) => mark.keys.contains_key(name),
        None => applied.contains_key(name),
    };
    let changed = applied.iter().filter(|(name, _)| is_changed(name));
    let changed = changed.filter_map(|(name, value)| differs(snapshot, is_ours, name, Some(value)));
    let extra = ours.keys().filter(|name| !applied.contains_key(*name));
    let extra = extra.filter_map(|name| differs(snapshot, is_ours, name, None));
    let mut drift = if own.is_some() { Vec::new() } else { vec![unmarked(snapshot, task)] };
    drift.extend(first(changed.chain(extra)));
    let is_known = |name: &String| applied.contains_key(name) || ours.contains_key(name);
    Observed { drift, unexpected: unexpected(snapshot, is_known), outcome: None }
}

/// The keys of others, up to a limit.
fn unexpected(snapshot: &Snapshot, is_ours: impl Fn(&String) -> bool) -> Vec<String> {
    let others: Vec<&String> = snapshot.entries.keys().filter(|name| !is_ours(name)).collect();
    let rest = others.len().saturating_sub(MAX_NAMED);
    let named = others.into_iter().take(MAX_NAMED).map(|name| snapshot.place.key(name));
    let more = (rest > 0).then(|| format!("and {rest} more"));
    named.chain(more).collect()
}

/// The changes of an apply.
pub(super) fn planned(
    snapshot: &Snapshot,
    context: &Context<'_>,
    desired: &BTreeMap<String, Value>,
) -> Vec<Difference> {
    let own = snapshot.own(context.task).map(|(mark, _)| mark);
    let is_ours = |name: &str| match own {
        Some(mark) => mark.keys.contains_key(name),
        None => context.applied.contains_key(name),
    };
    let ours = own.map(|mark| mark.keys.clone()).unwrap_or_default();
    let removed = ours.keys().filter(|name| !desired.contains_key(*name));
    let removed = removed.filter_map(|name| differs(snapshot, is_ours, name, None));
    let changed = desired.iter();
    let changed = changed.filter_map(|(name, value)| differs(snapshot, is_ours, name, Some(value)));
    first(changed.chain(removed))
}

/// The difference of a key. A key that Paddock did not create always differs: users who may not see
/// its value must not find it out by guessing.
fn differs(
    snapshot: &Snapshot,
    is_ours: impl Fn(&str) -> bool,
    name: &str,
    expected: Option<&Value>,
) -> Option<Difference> {
    let found = match snapshot.entries.get(name) {
        Some(_) if !is_ours(name) => Some(Value::from(NOT_OURS)),
        Some(entry) if Some(&entry.value) == expected.map(bytes).as_ref() => return None,
        Some(entry) => Some(short(shown(entry, expected))),
        None if expected.is_none() => return None,
        None => None,
    };
    Some(Difference { field: name.to_owned(), made: expected.cloned().map(short), found })
}

/// The first differences, and how many more there are.
fn first(mut all: impl Iterator<Item = Difference>) -> Vec<Difference> {
    let mut shown: Vec<Difference> = all.by_ref().take(MAX_DIFFERENCES).collect();
    let rest = all.count();
    let message = || format!("{rest} more keys differ").into();
    let more = || Difference { field: "…".into(), made: None, found: Some(message()) };
    shown.extend((rest > 0).then(more));
    shown
}

/// A value, truncated if it is long.
fn short(value: Value) -> Value {
    let text = match &value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.len() <= MAX_SHOWN_BYTES {
        return value;
    }
    let ends = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_SHOWN_BYTES);
    let end = ends.last().unwrap_or_default();
    format!("{}… (truncated; {} bytes)", &text[..end], text.len()).into()
}

/// The mark of this resource is missing, or belongs to another.
fn unmarked(snapshot: &Snapshot, task: &Task) -> Difference {
    let owner = snapshot.mark.as_ref().map(|found| match &found.mark {
        Some(mark) => Value::from(mark.resource.clone()),
        None => Value::from("(invalid mark)"),
    });
    Difference { field: MARK.into(), made: Some(task.id.to_string().into()), found: owner }
}

/// The value of a key: as JSON where JSON was applied.
fn shown(entry: &Entry, expected: Option<&Value>) -> Value {
    let is_text = expected.is_none_or(Value::is_string);
    let json = if is_text { None } else { serde_json::from_slice(&entry.value).ok() };
    json.unwrap_or_else(|| String::from_utf8_lossy(&entry.value).into())
}
