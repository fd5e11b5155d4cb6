//! The place of a resource's keys: a prefix in a datacenter, with its mark.

use model::template::configuration::{self, ConsulKv};
use port::Task;
use serde::{Deserialize, Serialize};

/// The name of the mark: the key below a prefix that names its owner.
pub(super) const MARK: &str = ".paddock";

/// A prefix of a datacenter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    /// The prefix of every key; ends with `/`.
    pub(super) prefix: String,
    /// The datacenter, if not that of the agent.
    pub(super) datacenter: Option<String>,
}

impl Place {
    /// The full key of the mark.
    pub(super) fn mark(&self) -> String {
        self.key(MARK)
    }

    /// The full key of a name below the prefix.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The marks of the folders around it.
    pub(super) fn marks_above(&self) -> Vec<String> {
        let inside = self.prefix.trim_end_matches('/');
        inside.match_indices('/').map(|(at, _)| format!("{}{MARK}", &inside[..=at])).collect()
    }
}

/// The folder of a mark.
pub(super) fn folder_of(mark: &str) -> &str {
    mark.strip_suffix(MARK).unwrap_or(mark)
}

/// Whether a key is a mark.
pub(super) fn is_mark(key: &str) -> bool {
    key == MARK || key.strip_suffix(MARK).is_some_and(|folder| folder.ends_with('/'))
}

/// The place in the desired state of a resource; none while that contains expressions.
pub(super) fn desired(task: &Task, datacenter: Option<&str>) -> Option<Place> {
    let spec: ConsulKv = configuration::read(&task.with).ok()?;
    let place = of_spec(&spec, datacenter);
    let texts = [Some(&place.prefix), place.datacenter.as_ref()];
    let is_filled = !texts.into_iter().flatten().any(|text| text.contains("{{"));
    is_filled.then_some(place)
}

/// The place in a spec; `datacenter` is the default.
pub(super) fn of_spec(spec: &ConsulKv, datacenter: Option<&str>) -> Place {
    let datacenter = spec.datacenter.as_deref().or(datacenter).map(str::to_owned);
    Place { prefix: spec.prefix.clone(), datacenter }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_above_are_those_of_the_parent_folders() {
        let above = |prefix: &str| Place { prefix: prefix.into(), datacenter: None }.marks_above();
        assert_eq!(above("a/"), Vec::<String>::new());
        assert_eq!(above("a/b/c/"), ["a/.paddock", "a/b/.paddock"]);
    }

    #[test]
    fn marks_are_recognized() {
        for (key, is) in [(".paddock", true), ("a/.paddock", true), ("a.paddock", false)] {
            assert_eq!(is_mark(key), is, "{key}");
        }
        assert_eq!(folder_of("a/b/.paddock"), "a/b/");
    }
}
