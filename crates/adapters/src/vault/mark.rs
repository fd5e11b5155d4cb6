//! The mark that Paddock leaves at a secret: whose it is, and how its values were made.
//!
//! Version 1 of the KV engine has no place beside a secret, so that the mark is a field of it. In
//! version 2 it is custom metadata, where it stays when somebody writes a version by hand. Those can't
//! be written with check-and-set: each fence has keys of its own, and the mark with the highest fence
//! counts, so that a server that was taken over can't undo the mark of the one that took over.

use std::collections::{BTreeMap, BTreeSet};

use model::Time;
use port::Task;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::prints::Prints;

/// The field of the mark in version 1.
pub(super) const FIELD: &str = ".paddock";
/// What keys of custom metadata begin with.
const PREFIX: &str = "paddock-";
/// Vault takes 512 bytes per key.
const MAX_PART_BYTES: usize = 500;

/// A mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The resource.
    pub(super) owner: String,
    /// Its environment, for people who find this.
    pub(super) environment: String,
    pub(super) fence: i64,
    /// The change that was made last.
    pub(super) key: String,
    /// Which key prints were made with.
    pub(super) prints_by: String,
    /// Values that were generated, by their names.
    #[serde(default)]
    pub(super) made: BTreeMap<String, Made>,
    /// Names of values that were told.
    #[serde(default)]
    pub(super) values: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) certificate: Option<Issued>,
    /// Certificates that are still to be revoked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) former: Vec<Former>,
}

/// How a value was made, and its print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) spec: String,
    pub(super) print: String,
}

/// A certificate that was issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Issued {
    pub(super) spec: String,
    pub(super) print: String,
    pub(super) mount: String,
    pub(super) serial: String,
    pub(super) common_name: String,
    pub(super) since: Time,
    pub(super) until: Time,
}

/// A certificate that shall be good no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Former {
    pub(super) mount: String,
    pub(super) serial: String,
}

impl Mark {
    /// The mark of a resource that has made nothing yet.
    pub(super) fn new(task: &Task, prints: &Prints) -> Self {
        Self {
            owner: task.id.to_string(),
            environment: task.environment.as_ref().map(|of| of.id.to_string()).unwrap_or_default(),
            fence: task.fence,
            key: task.key.clone(),
            prints_by: prints.id.clone(),
            made: BTreeMap::new(),
            values: BTreeSet::new(),
            certificate: None,
            former: Vec::new(),
        }
    }

    pub(super) fn is_of(&self, task: &Task) -> bool {
        self.owner == task.id.to_string()
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers can be written as JSON")
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// As custom metadata.
    pub(super) fn notes(&self) -> Map<String, Value> {
        let parts = parts(&self.text()).into_iter().enumerate();
        parts.map(|(i, part)| (format!("{PREFIX}{}-{i}", self.fence), part.into())).collect()
    }

    /// The mark with the highest fence among custom metadata.
    pub(super) fn among(notes: &Map<String, Value>) -> Option<Self> {
        let mut texts: BTreeMap<i64, BTreeMap<usize, &str>> = BTreeMap::new();
        for (key, value) in notes {
            if let (Some((fence, part)), Some(text)) = (numbers(key), value.as_str()) {
                texts.entry(fence).or_default().insert(part, text);
            }
        }
        let (_, parts) = texts.pop_last()?;
        Self::read(&parts.into_values().collect::<String>())
    }
}

/// Is this key of custom metadata part of a mark that one with this fence replaces?
pub(super) fn is_replaced(key: &str, by: i64) -> bool {
    numbers(key).is_some_and(|(fence, _)| fence <= by)
}

/// The fence and the part that a key of custom metadata is for.
fn numbers(key: &str) -> Option<(i64, usize)> {
    let (fence, part) = key.strip_prefix(PREFIX)?.rsplit_once('-')?;
    Some((fence.parse().ok()?, part.parse().ok()?))
}

fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in text.chars() {
        if parts.last().is_some_and(|part| part.len() + c.len_utf8() > MAX_PART_BYTES) {
            parts.push(String::new());
        }
        parts.last_mut().expect("there is one from the beginning").push(c);
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mark(fence: i64, keys: usize) -> Mark {
        let one = |i| (format!("ключ-{i}"), Made { spec: "s".into(), print: "p".repeat(32) });
        let (owner, environment, key) = ("r".into(), "e".into(), "k".into());
        let (values, prints_by) = (BTreeSet::new(), "id".into());
        let made = (0..keys).map(one).collect();
        let (certificate, former) = (None, Vec::new());
        Mark { owner, environment, fence, key, prints_by, made, values, certificate, former }
    }

    #[test]
    fn a_mark_of_any_length_is_found_again_among_other_notes() {
        for keys in [0, 1, 10, 100] {
            let mut notes = mark(3, keys).notes();
            notes.insert("team".into(), json!("shop"));
            notes.insert("paddock-x".into(), json!("{}"));
            assert_eq!(Mark::among(&notes), Some(mark(3, keys)));
            assert!(notes.len() <= 64, "{} notes are more than Vault takes", notes.len());
            assert!(notes.values().all(|text| text.as_str().unwrap().len() <= 512));
        }
        assert_eq!(Mark::among(&Map::new()), None);
    }

    #[test]
    fn the_mark_with_the_highest_fence_counts() {
        let mut notes = mark(10, 1).notes();
        notes.extend(mark(9, 20).notes());
        assert_eq!(Mark::among(&notes), Some(mark(10, 1)));
        let replaced = |by| notes.keys().filter(|key| is_replaced(key, by)).count();
        assert_eq!((replaced(8), replaced(10)), (0, notes.len()));
        assert!(replaced(9) > 1 && replaced(9) < notes.len());
    }
}
