//! How what is found differs from what was made, or shall be. Pure.

use std::collections::BTreeMap;

use model::resource::Difference;
use port::{Observed, Task};
use serde_json::Value;

use super::batch::{Known, Values};
use super::place::MARK;
use super::seen::{Entry, Seen};

/// The most keys of others that are named.
const MAX_NAMED: usize = 100;
/// The most keys that are shown to differ.
const MAX_DIFFERENCES: usize = 50;
/// How much is shown of a value.
const MAX_SHOWN_BYTES: usize = 1024;
/// What is said in the place of a value that Paddock has not made.
const FOREIGN: &str = "(not made by Paddock)";

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
    if seen.is_anothers(task) {
        // What is there is not for the eyes of this one's users, not even by name.
        return Observed { drift: vec![unmarked(seen, task)], ..Observed::default() };
    }
    let own = seen.own(task).map(|(mark, index)| mark.clone().known(index));
    let ours = own.as_ref().map(|mark| mark.keys.clone()).unwrap_or_default();
    let is_touched = |name: &String| {
        let now = seen.entries.get(name).map(|entry| entry.changed);
        now.is_none() || now != ours.get(name).copied()
    };
    let is_ours = |name: &str| match &own {
        Some(mark) => mark.keys.contains_key(name),
        None => made.contains_key(name),
    };
    let touched = made.iter().filter(|(name, _)| is_touched(name));
    let touched = touched.filter_map(|(name, value)| differs(seen, is_ours, name, Some(value)));
    let extra = ours.keys().filter(|name| !made.contains_key(*name));
    let extra = extra.filter_map(|name| differs(seen, is_ours, name, None));
    let mut drift = if own.is_some() { Vec::new() } else { vec![unmarked(seen, task)] };
    drift.extend(first(touched.chain(extra)));
    let is_known = |name: &String| made.contains_key(name) || ours.contains_key(name);
    Observed { drift, unexpected: unexpected(seen, is_known), outcome: None }
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
pub(super) fn planned(
    seen: &Seen,
    known: &Known<'_>,
    wish: &BTreeMap<String, Value>,
) -> Vec<Difference> {
    let own = seen.own(known.task).map(|(mark, _)| mark);
    let is_ours = |name: &str| match own {
        Some(mark) => mark.keys.contains_key(name),
        None => known.made.contains_key(name),
    };
    let ours = own.map(|mark| mark.keys.clone()).unwrap_or_default();
    let leaving = ours.keys().filter(|name| !wish.contains_key(*name));
    let leaving = leaving.filter_map(|name| differs(seen, is_ours, name, None));
    let changed = wish.iter();
    let changed = changed.filter_map(|(name, value)| differs(seen, is_ours, name, Some(value)));
    first(changed.chain(leaving))
}

/// How a key differs. One that Paddock has not made always does: who may not see its value must not
/// find it out by guessing, either.
fn differs(
    seen: &Seen,
    is_ours: impl Fn(&str) -> bool,
    name: &str,
    made: Option<&Value>,
) -> Option<Difference> {
    let found = match seen.entries.get(name) {
        Some(_) if !is_ours(name) => Some(Value::from(FOREIGN)),
        Some(entry) if Some(&entry.value) == made.map(bytes).as_ref() => return None,
        Some(entry) => Some(short(shown(entry, made))),
        None if made.is_none() => return None,
        None => None,
    };
    Some(Difference { field: name.to_owned(), made: made.cloned().map(short), found })
}

/// As many differences as are shown, and how many more there are.
fn first(mut all: impl Iterator<Item = Difference>) -> Vec<Difference> {
    let mut shown: Vec<Difference> = all.by_ref().take(MAX_DIFFERENCES).collect();
    let rest = all.count();
    let words = || format!("{rest} more keys differ").into();
    let more = || Difference { field: "…".into(), made: None, found: Some(words()) };
    shown.extend((rest > 0).then(more));
    shown
}

/// A value, or its beginning if it is long.
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
    format!("{}… (cut; it has {} bytes)", &text[..end], text.len()).into()
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
