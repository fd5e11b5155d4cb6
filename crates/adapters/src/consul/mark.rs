//! Whose a prefix is, and what of it was made: a key of ours below it.

use std::collections::BTreeMap;

use port::Task;
use serde::{Deserialize, Serialize};

/// What the key holds, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The resource that the prefix belongs to.
    pub(super) resource: String,
    /// The fence of the server that wrote last. One with an older fence writes nothing more.
    pub(super) fence: i64,
    /// For which change that was.
    pub(super) change: String,
    /// The keys that were made, by their names below the prefix, and the index with which each was
    /// last written. [`TOGETHER`] is that of the mark itself.
    pub(super) keys: BTreeMap<String, u64>,
}

/// Written in the same transaction as the mark, whose index is not known before.
pub(super) const TOGETHER: u64 = 0;

impl Mark {
    /// The mark of a task, with these keys.
    pub(super) fn of(task: &Task, keys: BTreeMap<String, u64>) -> Self {
        let (resource, change) = (task.id.to_string(), task.key.clone());
        Self { resource, fence: task.fence, change, keys }
    }

    /// The same, with the index of the mark where a key was written together with it.
    pub(super) fn known(mut self, index: u64) -> Self {
        for one in self.keys.values_mut().filter(|one| **one == TOGETHER) {
            *one = index;
        }
        self
    }

    /// As it is written.
    pub(super) fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers can be written as JSON")
    }

    /// As it was read; none if Paddock has not written that.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }
}

/// The most bytes that a mark of these keys may have.
pub(super) fn most_bytes<'a>(keys: impl Iterator<Item = &'a str>) -> usize {
    // An index has at most 20 digits; colon and comma.
    let listed: usize = keys.map(|key| quoted(key) + 22).sum();
    listed + 256
}

/// How many bytes a text has in JSON.
pub(super) fn quoted(text: &str) -> usize {
    text.chars().map(|c| if matches!(c, '"' | '\\') { 2 } else { c.len_utf8() }).sum::<usize>() + 2
}
