//! The place of a secret in a spec: two fields of `with`, whatever the others contain.

use model::template::configuration::VaultSecret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The default mount of secrets.
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

    /// The place in a spec.
    pub(super) fn of_spec(spec: &VaultSecret) -> Self {
        Self::new(spec.mount.as_deref(), &spec.path)
    }
}

/// The place in a desired state; none while it contains expressions. Other fields may contain some.
pub(super) fn desired(with: &Map<String, Value>) -> Option<At> {
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
    fn place_is_known_while_other_fields_contain_expressions() {
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
            assert_eq!(desired(with.as_object().unwrap()), expected, "{with}");
        }
    }
}
