//! What has to be done next at a place: one transaction. Pure.
//!
//! Every transaction writes the mark, too, and holds only if the mark is what was seen: so it holds
//! wholly or not at all, and only for the server whose turn it is.

use std::collections::{BTreeMap, BTreeSet};

use port::{Fault, Task};

use super::api::Op;
use super::mark::{self, Mark, TOGETHER};
use super::seen::{Entry, Seen, named};

/// The most operations that a transaction of Consul has.
const MAX_OPS: usize = 64;
/// The most bytes that a transaction of Consul has, as JSON with values in base64.
pub(super) const MAX_BYTES: usize = 512 << 10;
/// What an operation takes beside its key and its value.
const OP_BYTES: usize = 96;

/// Values by the names of their keys below the prefix.
pub(super) type Values = BTreeMap<String, Vec<u8>>;

/// What is known of a resource beside what is found.
pub(super) struct Known<'a> {
    pub(super) task: &'a Task,
    /// What was last made at this place.
    pub(super) made: Values,
    /// May what is there already be taken over?
    pub(super) adopts: bool,
}

/// A transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) ops: Vec<Op>,
    /// What it does, for the log.
    pub(super) words: Vec<String>,
}

/// The next transaction on the way to these values; none if all is as it should be.
pub(super) fn make(seen: &Seen, wish: &Values, known: &Known<'_>) -> Result<Option<Batch>, Fault> {
    let ours = ours(seen, known, wish);
    let foreign = wish.keys().filter(|key| !ours.contains_key(*key));
    let foreign: Vec<&Entry> = foreign.filter_map(|key| seen.entries.get(key)).collect();
    if !foreign.is_empty() {
        return Err(exist(seen, &foreign));
    }
    let Some((now, index)) = seen.own(known.task) else {
        // Others must see it before anything else is written.
        return Ok(Some(claim(seen, &Mark::of(known.task, ours))));
    };
    let mut keys = ours.clone();
    let mut packed = Packed::new(ours.keys().chain(wish.keys()));
    let (mut words, mut written, mut deleted) = (Vec::new(), 0, 0);
    for (name, value) in wish {
        let entry = seen.entries.get(name);
        if let Some(entry) = entry.filter(|entry| entry.value == *value) {
            keys.insert(name.clone(), entry.changed);
            continue;
        }
        let key = seen.place.key(name);
        let op = Op::Set { key, value: value.clone(), index: entry.map_or(0, |one| one.changed) };
        if packed.take(op) {
            words.extend(overwritten(name, entry, &ours));
            keys.insert(name.clone(), TOGETHER);
            written += 1;
        }
    }
    for name in ours.keys().filter(|name| !wish.contains_key(*name)) {
        let entry = seen.entries.get(name).expect("what is ours was found");
        if packed.take(Op::Delete { key: entry.key.clone(), index: entry.changed }) {
            keys.remove(name);
            deleted += 1;
        }
    }
    let next = Mark::of(known.task, keys);
    if next == now.clone().known(index) {
        return Ok(None);
    }
    if written + deleted > 0 {
        words.push(format!("{}: {written} keys written, {deleted} deleted.", seen.place.prefix));
    }
    let mark = Op::Set { key: seen.place.mark(), value: next.text(), index };
    Ok(Some(Batch { ops: [vec![mark], packed.ops].concat(), words }))
}

/// The next transaction on the way to nothing of ours; none if nothing is left.
pub(super) fn clear(seen: &Seen, known: &Known<'_>) -> Result<Option<Batch>, Fault> {
    let own = match (&seen.mark, seen.own(known.task)) {
        // Somebody has taken the mark away, and another resource has come since.
        (Some(found), None) if found.mark.is_some() => return Ok(None),
        (Some(found), _) => {
            found.may_change(known.task)?;
            seen.own(known.task)
        }
        (None, _) => None,
    };
    let mut left = match own {
        Some(_) => ours(seen, known, &Values::new()),
        // Without a mark nobody can say whose a key is; one that is as we made it is ours.
        None => known.made.iter().filter_map(|(name, value)| same(seen, name, value)).collect(),
    };
    if own.is_none() && left.is_empty() {
        return Ok(None);
    }
    let mut packed = Packed::new(left.keys());
    for name in left.keys().cloned().collect::<Vec<_>>() {
        let entry = seen.entries.get(&name).expect("what is ours was found");
        if packed.take(Op::Delete { key: entry.key.clone(), index: entry.changed }) {
            left.remove(&name);
        }
    }
    let words = vec![format!("{}: {} keys deleted.", seen.place.prefix, packed.ops.len())];
    let mark = match own {
        None => Op::Absent { key: seen.place.mark() },
        Some((_, index)) if left.is_empty() => Op::Delete { key: seen.place.mark(), index },
        Some((_, index)) => {
            let next = Mark::of(known.task, left);
            Op::Set { key: seen.place.mark(), value: next.text(), index }
        }
    };
    Ok(Some(Batch { ops: [vec![mark], packed.ops].concat(), words }))
}

/// The keys of ours that are there, and the index with which each was last written by us.
fn ours(seen: &Seen, known: &Known<'_>, wish: &Values) -> BTreeMap<String, u64> {
    let mut ours = match seen.own(known.task) {
        Some((mark, index)) => mark.clone().known(index).keys,
        None => known.made.keys().filter_map(|name| found(seen, name)).collect(),
    };
    if known.adopts {
        for (name, index) in wish.keys().filter_map(|name| found(seen, name)) {
            ours.entry(name).or_insert(index);
        }
    }
    ours.retain(|name, _| seen.entries.contains_key(name));
    ours
}

fn found(seen: &Seen, name: &str) -> Option<(String, u64)> {
    seen.entries.get(name).map(|entry| (name.to_owned(), entry.changed))
}

fn same(seen: &Seen, name: &str, value: &[u8]) -> Option<(String, u64)> {
    found(seen, name).filter(|_| seen.entries.get(name).is_some_and(|one| one.value == value))
}

fn claim(seen: &Seen, mark: &Mark) -> Batch {
    let words = vec![format!("{} belongs to this resource now.", seen.place.prefix)];
    Batch { ops: vec![Op::Set { key: seen.place.mark(), value: mark.text(), index: 0 }], words }
}

/// Says so when somebody has written a key of ours.
fn overwritten(name: &str, entry: Option<&Entry>, ours: &BTreeMap<String, u64>) -> Option<String> {
    let (entry, made) = (entry?, ours.get(name)?);
    (entry.changed != *made).then(|| {
        let now = entry.changed;
        format!("{name} was changed by somebody else (index {made} → {now}) and is overwritten.")
    })
}

fn exist(seen: &Seen, foreign: &[&Entry]) -> Fault {
    let prefix = &seen.place.prefix;
    Fault::Refused(format!(
        "{} below {prefix} and not made by Paddock: choose another prefix, delete them, or adopt \
         “{prefix}” to have them taken over",
        named("already exist", foreign.iter().map(|entry| entry.key.as_str()))
    ))
}

/// Operations that still fit into a transaction.
struct Packed {
    ops: Vec<Op>,
    bytes: usize,
}

impl Packed {
    /// With room for a mark of these keys.
    fn new<'a>(keys: impl Iterator<Item = &'a String>) -> Self {
        let keys: BTreeSet<&str> = keys.map(String::as_str).collect();
        let bytes = in_base64(mark::most_bytes(keys.into_iter())) + OP_BYTES + 1024;
        Self { ops: Vec::new(), bytes }
    }

    /// Takes an operation, if it fits.
    fn take(&mut self, op: Op) -> bool {
        let bytes = self.bytes + bytes_of(&op);
        let fits = self.ops.len() + 1 < MAX_OPS && bytes <= MAX_BYTES;
        if fits {
            self.bytes = bytes;
            self.ops.push(op);
        }
        fits
    }
}

fn bytes_of(op: &Op) -> usize {
    OP_BYTES
        + match op {
            Op::Set { key, value, .. } => mark::quoted(key) + in_base64(value.len()),
            Op::Delete { key, .. } | Op::Absent { key } => mark::quoted(key),
        }
}

/// How many bytes so many have in base64.
pub(super) const fn in_base64(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

#[cfg(test)]
mod tests;
