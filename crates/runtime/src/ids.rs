//! Ranges of user and group ids. The containers of each owner run in a range of their own, so that
//! a process that leaves its container has no rights on files and processes of others.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::dirs::{read_json, write_json};

/// Number of ids in a range: all that images use.
pub(crate) const RANGE: u32 = 65_536;
/// First id of all ranges, above those of users and system services. The first range belongs to
/// the runtime's own helper processes.
const FIRST: u32 = 1_000_000;
/// Number of ranges. The highest ids are reserved by the kernel.
const RANGES: u32 = (u32::MAX - 1 - FIRST) / RANGE;

/// Id of helper processes that need no rights at all.
pub(crate) const HELPER_ID: u32 = FIRST;

/// The ranges of this machine, as they are stored.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ids {
    #[serde(skip)]
    path: PathBuf,
    /// First id by owner.
    owners: BTreeMap<String, u32>,
}

impl Ids {
    /// Reads the stored ranges. Those of existing containers are added: the file may be lost.
    pub(crate) fn open(path: PathBuf, used: impl IntoIterator<Item = (String, u32)>) -> Self {
        let stored: Self = read_json(&path).unwrap_or_default();
        let mut ids = Self { path, ..stored };
        for (owner, first) in used {
            ids.owners.entry(owner).or_insert(first);
        }
        ids
    }

    /// First id of an owner's range, allocated at its first use and then never changed.
    ///
    /// When no range is left, those that `in_use` does not name are given to other owners. It
    /// returns none while files of removed containers remain.
    pub(crate) fn range(
        &mut self,
        owner: &str,
        in_use: impl FnOnce() -> Option<BTreeSet<u32>>,
    ) -> io::Result<u32> {
        if let Some(first) = self.owners.get(owner) {
            return Ok(*first);
        }
        let reserved = subordinate_ranges();
        let first = match self.free(&reserved) {
            Some(first) => first,
            None => {
                if let Some(in_use) = in_use() {
                    self.owners.retain(|_, first| in_use.contains(first));
                }
                self.free(&reserved).ok_or_else(|| io::Error::other("every id range is in use"))?
            }
        };
        self.owners.insert(owner.to_owned(), first);
        if let Err(error) = write_json(&self.path, self) {
            self.owners.remove(owner);
            return Err(error);
        }
        Ok(first)
    }

    fn free(&self, reserved: &[(u64, u64)]) -> Option<u32> {
        let taken: BTreeSet<u32> = self.owners.values().copied().collect();
        let is_reserved = |first: u32| {
            let (first, end) = (u64::from(first), u64::from(first) + u64::from(RANGE));
            reserved.iter().any(|(from, to)| first < *to && *from < end)
        };
        (1..RANGES)
            .map(|number| FIRST + number * RANGE)
            .find(|first| !taken.contains(first) && !is_reserved(*first))
    }
}

/// Ranges that this host's users may use in their own user namespaces.
fn subordinate_ranges() -> Vec<(u64, u64)> {
    let files = ["/etc/subuid", "/etc/subgid"].into_iter();
    let text: String = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    text.lines().filter_map(subordinate_range).collect()
}

fn subordinate_range(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split(':').skip(1).map(|field| field.trim().parse::<u64>());
    let (first, count) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some((first, first.checked_add(count)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_owner_retains_a_range_of_its_own() {
        let dir = std::env::temp_dir().join(format!("paddock-ids-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("ids.json");
        let mut ids = Ids::open(path.clone(), []);
        let [a, b] = ["a", "b"].map(|owner| ids.range(owner, || None).unwrap());
        assert!(a > HELPER_ID && a.abs_diff(b) >= RANGE, "{a} {b}");
        let mut ids = Ids::open(path.clone(), []);
        assert_eq!(["b", "a"].map(|owner| ids.range(owner, || None).unwrap()), [b, a]);
        // Lost, but a container has the range.
        std::fs::remove_file(&path).unwrap();
        let mut ids = Ids::open(path, [("a".to_owned(), a)]);
        let c = ids.range("c", || None).unwrap();
        assert_ne!(c, a);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn exhausted_ranges_are_reused_only_without_containers() {
        let path = std::env::temp_dir().join(format!("paddock-ids-full-{}", std::process::id()));
        let all = (1..RANGES).map(|number| (number.to_string(), FIRST + number * RANGE));
        let mut ids = Ids::open(path.clone(), all);
        assert!(ids.range("new", || None).is_err());
        let in_use = (2..RANGES).map(|number| FIRST + number * RANGE).collect();
        assert_eq!(ids.range("new", || Some(in_use)).unwrap(), FIRST + RANGE);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn ranges_of_other_users_are_recognised() {
        assert_eq!(subordinate_range("web:100000:65536"), Some((100_000, 165_536)));
        assert_eq!(subordinate_range("# nothing"), None);
        let ids = Ids::default();
        let reserved = [(FIRST + RANGE + 1, FIRST + RANGE + 2)];
        let reserved = reserved.map(|(from, to)| (u64::from(from), u64::from(to)));
        assert_eq!(ids.free(&reserved), Some(FIRST + 2 * RANGE));
    }
}
