//! A snapshot of a place, and its owner.

use std::collections::BTreeMap;

use port::{Fault, Task};

use super::mark::Mark;
use super::place::{Place, folder_of, is_mark};

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Vec<u8>,
    /// The index of its creation.
    pub(super) created: u64,
    /// The index of its last write.
    pub(super) changed: u64,
}

/// A mark that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundMark {
    /// Its folder.
    folder: String,
    /// None if it is invalid.
    pub(super) mark: Option<Mark>,
    created: u64,
    /// The index of its last write.
    pub(super) changed: u64,
}

/// A consistent snapshot of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) place: Place,
    /// The mark of the place.
    pub(super) mark: Option<FoundMark>,
    /// The marks of folders around and below it.
    others: Vec<FoundMark>,
    /// All keys below it except its mark, by their names below it.
    pub(super) entries: BTreeMap<String, Entry>,
}

impl Snapshot {
    /// Classifies the keys that were read.
    pub(super) fn new(place: Place, found: Vec<Entry>) -> Self {
        let (own, above) = (place.mark(), place.marks_above());
        let (mut mark, mut others, mut entries) = (None, Vec::new(), BTreeMap::new());
        for entry in found {
            let name = entry.key.strip_prefix(&place.prefix);
            if entry.key == own {
                mark = Some(FoundMark::new(&entry));
                continue;
            }
            if above.contains(&entry.key) || name.is_some_and(is_mark) {
                others.push(FoundMark::new(&entry));
            }
            if let Some(name) = name {
                entries.insert(name.to_owned(), entry);
            }
        }
        Self { place, mark, others, entries }
    }

    /// The mark, if it belongs to the task's resource.
    pub(super) fn own(&self, task: &Task) -> Option<(&Mark, u64)> {
        let found = self.mark.as_ref()?;
        let mark = found.mark.as_ref().filter(|mark| mark.resource == task.id.to_string())?;
        Some((mark, found.changed))
    }

    /// Whether another resource owns the place.
    pub(super) fn is_owned_by_other(&self, task: &Task) -> bool {
        self.mark.is_some() && self.own(task).is_none()
    }

    /// Logs the keys that are not deleted.
    pub(super) fn log_remaining(&self, task: &Task) {
        if self.is_owned_by_other(task) {
            // Users of this resource may not see the keys of another.
            task.log.append(format!("{} belongs to another resource now.", self.place.prefix));
        } else if !self.entries.is_empty() {
            let keys = self.entries.values().map(|entry| entry.key.as_str());
            task.log.append(format!("{}: others created them.", named("remain", keys)));
        }
    }

    /// Checks that the task's resource may write here. Of two resources that claimed overlapping
    /// prefixes, the one with the older mark wins.
    pub(super) fn check_owner(&self, task: &Task) -> Result<(), Fault> {
        if let Some(found) = &self.mark {
            found.check_owner(task)?;
        }
        let since = self.mark.as_ref().map_or(u64::MAX, |own| own.created);
        let mut rivals = self.others.iter().filter(|other| !other.is_of(task));
        match rivals.find(|rival| rival.created < since) {
            Some(rival) => Err(rival.refusal(&self.place.prefix)),
            None => Ok(()),
        }
    }
}

impl FoundMark {
    fn new(entry: &Entry) -> Self {
        let (folder, mark) = (folder_of(&entry.key).to_owned(), Mark::read(&entry.value));
        Self { folder, mark, created: entry.created, changed: entry.changed }
    }

    fn is_of(&self, task: &Task) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.resource == task.id.to_string())
    }

    /// Checks that the task's server may change the folder of this mark.
    pub(super) fn check_owner(&self, task: &Task) -> Result<(), Fault> {
        match &self.mark {
            Some(mark) if self.is_of(task) && mark.fence > task.fence => {
                Err(Fault::Refused(format!(
                    "{} was taken over by another server: its fencing token is {}, ours is {}",
                    self.folder, mark.fence, task.fence
                )))
            }
            Some(_) if self.is_of(task) => Ok(()),
            _ => Err(self.refusal(&self.folder)),
        }
    }

    fn refusal(&self, prefix: &str) -> Fault {
        let folder = &self.folder;
        let whose = if folder == prefix {
            folder.clone()
        } else if prefix.starts_with(folder.as_str()) {
            format!("{folder}, which contains {prefix},")
        } else {
            format!("{folder}, which is below {prefix},")
        };
        Fault::Refused(match &self.mark {
            Some(mark) => format!(
                "{whose} belongs to the resource {}. Choose another prefix, or delete the key \
                 {folder}.paddock if that resource no longer exists",
                mark.resource
            ),
            None => format!(
                "the owner of {whose} is unknown: its key {folder}.paddock is invalid. Delete the \
                 key if the prefix is not in use"
            ),
        })
    }
}

/// A few keys by name, and how many more: `a, b and 3 more already exist`.
pub(super) fn named<'a>(verb: &str, mut keys: impl ExactSizeIterator<Item = &'a str>) -> String {
    let first: Vec<&str> = keys.by_ref().take(5).collect();
    match keys.len() {
        0 => format!("{} {verb}", first.join(", ")),
        more => format!("{} and {more} more {verb}", first.join(", ")),
    }
}
