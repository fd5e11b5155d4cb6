//! Where a resource's keys are: a prefix of a datacenter, and the key in it that says whose it is.

use model::template::with::{self, ConsulKv};
use port::Task;
use serde::{Deserialize, Serialize};

/// The key below a prefix that says whose the prefix is.
pub(super) const MARK: &str = ".paddock";

/// A prefix of a datacenter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    /// What every key begins with; it ends with `/`.
    pub(super) prefix: String,
    /// The datacenter, if not that of the agent.
    pub(super) datacenter: Option<String>,
}

impl Place {
    /// The key that says whose it is.
    pub(super) fn mark(&self) -> String {
        self.key(MARK)
    }

    /// The whole name of a key below it.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The keys that say whose the folders around it are.
    pub(super) fn marks_above(&self) -> Vec<String> {
        let inside = self.prefix.trim_end_matches('/');
        inside.match_indices('/').map(|(at, _)| format!("{}{MARK}", &inside[..=at])).collect()
    }
}

/// The folder that a mark is for.
pub(super) fn folder_of(mark: &str) -> &str {
    mark.strip_suffix(MARK).unwrap_or(mark)
}

/// Is this the name of a mark?
pub(super) fn is_mark(key: &str) -> bool {
    key == MARK || key.strip_suffix(MARK).is_some_and(|folder| folder.ends_with('/'))
}

/// The place in what the resource shall be; none while that has expressions.
pub(super) fn told(task: &Task, datacenter: Option<&str>) -> Option<Place> {
    let wish: ConsulKv = with::read(&task.with).ok()?;
    let place = of(&wish, datacenter);
    let texts = [Some(&place.prefix), place.datacenter.as_ref()];
    let is_filled = !texts.into_iter().flatten().any(|text| text.contains("{{"));
    is_filled.then_some(place)
}

/// The place that a resource is told; `datacenter` if it names none.
pub(super) fn of(wish: &ConsulKv, datacenter: Option<&str>) -> Place {
    let datacenter = wish.datacenter.as_deref().or(datacenter).map(str::to_owned);
    Place { prefix: wish.prefix.clone(), datacenter }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_around_a_prefix() {
        let above = |prefix: &str| Place { prefix: prefix.into(), datacenter: None }.marks_above();
        assert_eq!(above("a/"), Vec::<String>::new());
        assert_eq!(above("a/b/c/"), ["a/.paddock", "a/b/.paddock"]);
    }

    #[test]
    fn what_is_a_mark() {
        for (key, is) in [(".paddock", true), ("a/.paddock", true), ("a.paddock", false)] {
            assert_eq!(is_mark(key), is, "{key}");
        }
        assert_eq!(folder_of("a/b/.paddock"), "a/b/");
    }
}
