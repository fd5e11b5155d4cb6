//! Computes the next transaction at a place. Pure.
//!
//! Every transaction also writes the mark, and succeeds only if the mark is unchanged since the
//! snapshot: it commits as a whole or not at all, and only for the server that holds the fence.

use std::collections::{BTreeMap, BTreeSet};

use port::{Fault, Task};

use super::api::Op;
use super::mark::{self, Mark, TOGETHER};
use super::snapshot::{Entry, Snapshot, named};

/// The maximum number of operations of a Consul transaction.
const MAX_OPS: usize = 64;
/// The maximum size of a Consul transaction, as JSON with values in base64.
pub(super) const MAX_BYTES: usize = 512 << 10;
/// The size of an operation without its key and value.
const OP_BYTES: usize = 96;

/// Values by the names of their keys below the prefix.
pub(super) type Values = BTreeMap<String, Vec<u8>>;

/// What a transaction depends on besides the snapshot.
pub(super) struct Context<'a> {
    pub(super) task: &'a Task,
    /// The values that were last applied at this place.
    pub(super) applied: Values,
    /// Whether existing keys may be adopted.
    pub(super) adopts: bool,
}

/// A transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) ops: Vec<Op>,
    /// Log lines about its changes.
    pub(super) log: Vec<String>,
}

/// The next transaction towards these values; none if all are as desired.
pub(super) fn apply(
    snapshot: &Snapshot,
    desired: &Values,
    context: &Context<'_>,
) -> Result<Option<Batch>, Fault> {
    let ours = ours(snapshot, context, desired);
    let theirs = desired.keys().filter(|key| !ours.contains_key(*key));
    let theirs: Vec<&Entry> = theirs.filter_map(|key| snapshot.entries.get(key)).collect();
    if !theirs.is_empty() {
        return Err(already_exist(snapshot, &theirs));
    }
    let Some((now, index)) = snapshot.own(context.task) else {
        // Others must see the mark before any other key is written.
        return Ok(Some(claim(snapshot, &Mark::new(context.task, ours))));
    };
    let mut keys = ours.clone();
    let mut packed = Packed::new(ours.keys().chain(desired.keys()));
    let (mut log, mut written, mut deleted) = (Vec::new(), 0, 0);
    for (name, value) in desired {
        let entry = snapshot.entries.get(name);
        if let Some(entry) = entry.filter(|entry| entry.value == *value) {
            keys.insert(name.clone(), entry.changed);
            continue;
        }
        let key = snapshot.place.key(name);
        let op = Op::Set { key, value: value.clone(), index: entry.map_or(0, |one| one.changed) };
        if packed.add(op) {
            log.extend(overwritten(name, entry, &ours));
            keys.insert(name.clone(), TOGETHER);
            written += 1;
        }
    }
    for name in ours.keys().filter(|name| !desired.contains_key(*name)) {
        let entry = snapshot.entries.get(name).expect("what is ours was found");
        if packed.add(Op::Delete { key: entry.key.clone(), index: entry.changed }) {
            keys.remove(name);
            deleted += 1;
        }
    }
    let next = Mark::new(context.task, keys);
    if next == now.clone().with_index(index) {
        return Ok(None);
    }
    if written + deleted > 0 {
        log.push(format!("{}: {written} keys written, {deleted} deleted.", snapshot.place.prefix));
    }
    let mark = Op::Set { key: snapshot.place.mark(), value: next.to_bytes(), index };
    Ok(Some(Batch { ops: [vec![mark], packed.ops].concat(), log }))
}

/// The next transaction towards deleting all of our keys; none if nothing is left.
pub(super) fn clear(snapshot: &Snapshot, context: &Context<'_>) -> Result<Option<Batch>, Fault> {
    let own = match (&snapshot.mark, snapshot.own(context.task)) {
        // The mark was deleted by others, and another resource claimed the prefix.
        (Some(found), None) if found.mark.is_some() => return Ok(None),
        (Some(found), _) => {
            found.check_owner(context.task)?;
            snapshot.own(context.task)
        }
        (None, _) => None,
    };
    let mut left = match own {
        Some(_) => ours(snapshot, context, &Values::new()),
        // Without a mark the owner of a key is unknown; a key with the applied value is ours.
        None => {
            let applied = context.applied.iter();
            applied.filter_map(|(name, value)| unchanged(snapshot, name, value)).collect()
        }
    };
    if own.is_none() && left.is_empty() {
        return Ok(None);
    }
    let mut packed = Packed::new(left.keys());
    for name in left.keys().cloned().collect::<Vec<_>>() {
        let entry = snapshot.entries.get(&name).expect("what is ours was found");
        if packed.add(Op::Delete { key: entry.key.clone(), index: entry.changed }) {
            left.remove(&name);
        }
    }
    let log = vec![format!("{}: {} keys deleted.", snapshot.place.prefix, packed.ops.len())];
    let mark = match own {
        None => Op::Absent { key: snapshot.place.mark() },
        Some((_, index)) if left.is_empty() => Op::Delete { key: snapshot.place.mark(), index },
        Some((_, index)) => {
            let next = Mark::new(context.task, left);
            Op::Set { key: snapshot.place.mark(), value: next.to_bytes(), index }
        }
    };
    Ok(Some(Batch { ops: [vec![mark], packed.ops].concat(), log }))
}

/// Our existing keys, with the index of our last write of each.
fn ours(snapshot: &Snapshot, context: &Context<'_>, desired: &Values) -> BTreeMap<String, u64> {
    let mut ours = match snapshot.own(context.task) {
        Some((mark, index)) => mark.clone().with_index(index).keys,
        None => context.applied.keys().filter_map(|name| found(snapshot, name)).collect(),
    };
    if context.adopts {
        for (name, index) in desired.keys().filter_map(|name| found(snapshot, name)) {
            ours.entry(name).or_insert(index);
        }
    }
    ours.retain(|name, _| snapshot.entries.contains_key(name));
    ours
}

fn found(snapshot: &Snapshot, name: &str) -> Option<(String, u64)> {
    snapshot.entries.get(name).map(|entry| (name.to_owned(), entry.changed))
}

fn unchanged(snapshot: &Snapshot, name: &str, value: &[u8]) -> Option<(String, u64)> {
    found(snapshot, name)
        .filter(|_| snapshot.entries.get(name).is_some_and(|one| one.value == value))
}

fn claim(snapshot: &Snapshot, mark: &Mark) -> Batch {
    let log = vec![format!("Claimed {} for this resource.", snapshot.place.prefix)];
    Batch {
        ops: vec![Op::Set { key: snapshot.place.mark(), value: mark.to_bytes(), index: 0 }],
        log,
    }
}

/// A log line for a key of ours that others changed.
fn overwritten(name: &str, entry: Option<&Entry>, ours: &BTreeMap<String, u64>) -> Option<String> {
    let (entry, ours) = (entry?, ours.get(name)?);
    (entry.changed != *ours).then(|| {
        let now = entry.changed;
        format!("Overwriting {name}, which others changed (index {ours} → {now}).")
    })
}

fn already_exist(snapshot: &Snapshot, theirs: &[&Entry]) -> Fault {
    let prefix = &snapshot.place.prefix;
    Fault::Refused(format!(
        "{} below {prefix} and were not created by Paddock. Choose another prefix, delete them, \
         or adopt “{prefix}”",
        named("already exist", theirs.iter().map(|entry| entry.key.as_str()))
    ))
}

/// Operations that fit into one transaction.
struct Packed {
    ops: Vec<Op>,
    bytes: usize,
}

impl Packed {
    /// Reserves space for a mark of these keys.
    fn new<'a>(keys: impl Iterator<Item = &'a String>) -> Self {
        let keys: BTreeSet<&str> = keys.map(String::as_str).collect();
        let bytes = in_base64(mark::most_bytes(keys.into_iter())) + OP_BYTES + 1024;
        Self { ops: Vec::new(), bytes }
    }

    /// Adds an operation, if it fits.
    fn add(&mut self, op: Op) -> bool {
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

/// The length of so many bytes in base64.
pub(super) const fn in_base64(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

#[cfg(test)]
mod tests;
