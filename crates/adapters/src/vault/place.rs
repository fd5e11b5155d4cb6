//! Where a secret is, as a resource is told it: two fields of `with`, whatever the others are.

use model::template::with::VaultSecret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The mount of secrets for which none is named.
const MOUNT: &str = "secret";

/// A path of a mount.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct At {
    pub(super) mount: String,
    pub(super) path: String,
}

impl At {
    fn new(mount: Option<&str>, path: &str) -> Self {
        Self { mount: mount.unwrap_or(MOUNT).to_owned(), path: path.to_owned() }
    }

    /// The place that a resource is told.
    pub(super) fn of(told: &VaultSecret) -> Self {
        Self::new(told.mount.as_deref(), &told.path)
    }
}

/// The place that is told, where all else may still have expressions; none while itself has some.
pub(super) fn told(with: &Map<String, Value>) -> Option<At> {
    let mount = with.get("mount").filter(|mount| !mount.is_null());
    let mount = mount.map(|mount| mount.as_str().ok_or(())).transpose().ok()?;
    let at = At::new(mount, with.get("path")?.as_str()?);
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains("{{");
    let is_place = [&at.mount, &at.path].into_iter().all(|text| text.split('/').all(is_plain));
    is_place.then_some(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_is_told_whatever_else_is_not_filled_yet() {
        for (with, expected) in [
            (
                json!({"path": "a/b", "generate": {"x": {"length": "{{ n }}"}}}),
                Some(("secret", "a/b")),
            ),
            (json!({"path": "a", "mount": "kv", "more": 1}), Some(("kv", "a"))),
            (json!({"path": "a", "mount": null}), Some(("secret", "a"))),
            (json!({"path": "{{ environment.name }}/db"}), None),
            (json!({"path": "a", "mount": "{{ parameters.mount }}"}), None),
            (json!({"path": "a/../b"}), None),
            (json!({"path": ""}), None),
            (json!({"path": "a", "mount": 1}), None),
            (json!({}), None),
        ] {
            let expected = expected.map(|(mount, path)| At::new(Some(mount), path));
            assert_eq!(told(with.as_object().unwrap()), expected, "{with}");
        }
    }
}
