//! The mark: a key below the prefix that names its owner and lists the keys that Paddock created.

use std::collections::BTreeMap;

use port::Task;
use serde::{Deserialize, Serialize};

/// The value of the key, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The resource that owns the prefix.
    pub(super) resource: String,
    /// The fencing token of the last writer. A server with an older one must not write.
    pub(super) fence: i64,
    /// The change of the last write.
    pub(super) change: String,
    /// The created keys, by their names below the prefix, with the index of their last write.
    /// [`TOGETHER`] stands for the index of the mark itself.
    pub(super) keys: BTreeMap<String, u64>,
}

/// The index of keys written in the same transaction as the mark, which is unknown before.
pub(super) const TOGETHER: u64 = 0;

impl Mark {
    /// The mark of a task with these keys.
    pub(super) fn new(task: &Task, keys: BTreeMap<String, u64>) -> Self {
        let (resource, change) = (task.id.to_string(), task.key.clone());
        Self { resource, fence: task.fence, change, keys }
    }

    /// Replaces [`TOGETHER`] by the index of the mark.
    pub(super) fn with_index(mut self, index: u64) -> Self {
        for one in self.keys.values_mut().filter(|one| **one == TOGETHER) {
            *one = index;
        }
        self
    }

    /// The serialized mark.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers can be written as JSON")
    }

    /// Parses a mark; none if Paddock did not write it.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }
}

/// The maximum size of a mark with these keys.
pub(super) fn most_bytes<'a>(keys: impl Iterator<Item = &'a str>) -> usize {
    // An index has at most 20 digits; colon and comma.
    let listed: usize = keys.map(|key| quoted(key) + 22).sum();
    listed + 256
}

/// The length of a text as a JSON string.
pub(super) fn quoted(text: &str) -> usize {
    text.chars().map(|c| if matches!(c, '"' | '\\') { 2 } else { c.len_utf8() }).sum::<usize>() + 2
}
