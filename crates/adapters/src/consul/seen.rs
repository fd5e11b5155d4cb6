//! What is found at a place, and whose it is.

use std::collections::BTreeMap;

use port::{Fault, Task};

use super::mark::Mark;
use super::place::{Place, folder_of, is_mark};

/// A key as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Vec<u8>,
    /// The index with which it was made.
    pub(super) created: u64,
    /// The index with which it was last written.
    pub(super) changed: u64,
}

/// A mark that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The folder that it is for.
    folder: String,
    /// None if it can't be read.
    pub(super) mark: Option<Mark>,
    created: u64,
    /// The index with which it was last written.
    pub(super) changed: u64,
}

/// What is at a place, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) place: Place,
    /// Whose it is.
    pub(super) mark: Option<Found>,
    /// Whose the folders around it and in it are.
    others: Vec<Found>,
    /// All keys below it but its mark, by their names below it.
    pub(super) entries: BTreeMap<String, Entry>,
}

impl Seen {
    /// Sorts what was found.
    pub(super) fn new(place: Place, found: Vec<Entry>) -> Self {
        let (own, above) = (place.mark(), place.marks_above());
        let (mut mark, mut others, mut entries) = (None, Vec::new(), BTreeMap::new());
        for entry in found {
            let name = entry.key.strip_prefix(&place.prefix);
            if entry.key == own {
                mark = Some(Found::new(&entry));
                continue;
            }
            if above.contains(&entry.key) || name.is_some_and(is_mark) {
                others.push(Found::new(&entry));
            }
            if let Some(name) = name {
                entries.insert(name.to_owned(), entry);
            }
        }
        Self { place, mark, others, entries }
    }

    /// The mark, if it is that of the task's resource.
    pub(super) fn own(&self, task: &Task) -> Option<(&Mark, u64)> {
        let found = self.mark.as_ref()?;
        let mark = found.mark.as_ref().filter(|mark| mark.resource == task.id.to_string())?;
        Some((mark, found.changed))
    }

    /// Whether another resource has come here.
    pub(super) fn is_anothers(&self, task: &Task) -> bool {
        self.mark.is_some() && self.own(task).is_none()
    }

    /// Says what is here that nobody takes away.
    pub(super) fn say_what_stays(&self, task: &Task) {
        if self.is_anothers(task) {
            // What is there is not for the eyes of this one's users.
            task.log.say(format!("{} belongs to another resource by now.", self.place.prefix));
        } else if !self.entries.is_empty() {
            let keys = self.entries.values().map(|entry| entry.key.as_str());
            task.log.say(format!("{}: others have made them.", named("stay", keys)));
        }
    }

    /// May the task's resource make something here? Of two that came at the same time, the one whose
    /// mark is older stays.
    pub(super) fn may_make(&self, task: &Task) -> Result<(), Fault> {
        if let Some(found) = &self.mark {
            found.may_change(task)?;
        }
        let since = self.mark.as_ref().map_or(u64::MAX, |own| own.created);
        let mut rivals = self.others.iter().filter(|other| !other.is_of(task));
        match rivals.find(|rival| rival.created < since) {
            Some(rival) => Err(rival.refusal(&self.place.prefix)),
            None => Ok(()),
        }
    }
}

impl Found {
    fn new(entry: &Entry) -> Self {
        let (folder, mark) = (folder_of(&entry.key).to_owned(), Mark::read(&entry.value));
        Self { folder, mark, created: entry.created, changed: entry.changed }
    }

    fn is_of(&self, task: &Task) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.resource == task.id.to_string())
    }

    /// May the task's server change what this mark is for?
    pub(super) fn may_change(&self, task: &Task) -> Result<(), Fault> {
        match &self.mark {
            Some(mark) if self.is_of(task) && mark.fence > task.fence => {
                Err(Fault::Refused(format!(
                    "another server has taken over {}: its fence is {}, that of this one {}",
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
            format!("{folder}, which {prefix} is in,")
        } else {
            format!("{folder}, which is in {prefix},")
        };
        Fault::Refused(match &self.mark {
            Some(mark) => format!(
                "{whose} belongs to the resource {}: choose another prefix, or delete the key \
                 {folder}.paddock if that resource is no more",
                mark.resource
            ),
            None => format!(
                "{whose} belongs to somebody, but its key {folder}.paddock can't be read: delete the \
                 key if nobody uses the prefix"
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
