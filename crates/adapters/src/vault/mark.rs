//! The mark of a secret: its owner, and how its values were created.
//!
//! In version 1 of the KV engine the mark is a field of the secret. In version 2 it is custom
//! metadata, which survives versions that are written by hand. Custom metadata has no
//! check-and-set: each fencing token has its own keys, and the mark with the highest one counts, so
//! that a server that lost its fence can't overwrite the mark of its successor.

use std::collections::{BTreeMap, BTreeSet};

use model::Time;
use port::Task;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fingerprint::Fingerprints;

/// The field of the mark in version 1.
pub(super) const FIELD: &str = ".paddock";
/// The prefix of its keys in custom metadata.
const PREFIX: &str = "paddock-";
/// The maximum length of a part; Vault permits 512 bytes per key.
const MAX_PART_BYTES: usize = 500;

/// A mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The owning resource.
    pub(super) owner: String,
    /// Its environment, for operators who find the secret.
    pub(super) environment: String,
    pub(super) fence: i64,
    /// The last change.
    pub(super) key: String,
    /// The id of the fingerprint key.
    pub(super) prints_by: String,
    /// Generated values, by name.
    #[serde(default)]
    pub(super) made: BTreeMap<String, Made>,
    /// Names of specified values.
    #[serde(default)]
    pub(super) values: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) certificate: Option<Issued>,
    /// Certificates to be revoked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) former: Vec<Former>,
}

/// The rule of a generated value, and its fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) spec: String,
    pub(super) print: String,
}

/// An issued certificate.
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

/// A replaced certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Former {
    pub(super) mount: String,
    pub(super) serial: String,
}

impl Mark {
    /// The mark of a resource that has created nothing yet.
    pub(super) fn new(task: &Task, fingerprints: &Fingerprints) -> Self {
        Self {
            owner: task.id.to_string(),
            environment: task.environment.as_ref().map(|of| of.id.to_string()).unwrap_or_default(),
            fence: task.fence,
            key: task.key.clone(),
            prints_by: fingerprints.id.clone(),
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

    /// The mark as custom metadata.
    pub(super) fn to_metadata(&self) -> Map<String, Value> {
        let parts = parts(&self.text()).into_iter().enumerate();
        parts.map(|(i, part)| (format!("{PREFIX}{}-{i}", self.fence), part.into())).collect()
    }

    /// The mark with the highest fencing token in custom metadata.
    pub(super) fn from_metadata(metadata: &Map<String, Value>) -> Option<Self> {
        let mut texts: BTreeMap<i64, BTreeMap<usize, &str>> = BTreeMap::new();
        for (key, value) in metadata {
            if let (Some((fence, part)), Some(text)) = (numbers(key), value.as_str()) {
                texts.entry(fence).or_default().insert(part, text);
            }
        }
        let (_, parts) = texts.pop_last()?;
        Self::read(&parts.into_values().collect::<String>())
    }
}

/// Whether a mark with this fencing token replaces a key of custom metadata.
pub(super) fn is_replaced(key: &str, by: i64) -> bool {
    numbers(key).is_some_and(|(fence, _)| fence <= by)
}

/// The fencing token and the part number of a key of custom metadata.
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
    fn mark_of_any_length_is_found_in_custom_metadata() {
        for keys in [0, 1, 10, 100] {
            let mut metadata = mark(3, keys).to_metadata();
            metadata.insert("team".into(), json!("shop"));
            metadata.insert("paddock-x".into(), json!("{}"));
            assert_eq!(Mark::from_metadata(&metadata), Some(mark(3, keys)));
            assert!(metadata.len() <= 64, "{} entries are more than Vault takes", metadata.len());
            assert!(metadata.values().all(|text| text.as_str().unwrap().len() <= 512));
        }
        assert_eq!(Mark::from_metadata(&Map::new()), None);
    }

    #[test]
    fn mark_with_the_highest_fencing_token_counts() {
        let mut metadata = mark(10, 1).to_metadata();
        metadata.extend(mark(9, 20).to_metadata());
        assert_eq!(Mark::from_metadata(&metadata), Some(mark(10, 1)));
        let replaced = |by| metadata.keys().filter(|key| is_replaced(key, by)).count();
        assert_eq!((replaced(8), replaced(10)), (0, metadata.len()));
        assert!(replaced(9) > 1 && replaced(9) < metadata.len());
    }
}
