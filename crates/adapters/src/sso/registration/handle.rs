//! What has to be kept to manage a registered client.

use model::Secret;
use port::Fault;
use serde::{Deserialize, Serialize};

/// Where a client is managed, and with which token. It can't be printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) uri: String,
    pub(super) token: String,
}

/// All that is kept of a client beside its id and secret.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Handle {
    /// What it was made as.
    pub(super) name: String,
    pub(super) key: Key,
    /// Former clients of the same name that could not be removed yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left: Vec<Key>,
}

impl Handle {
    pub(super) fn sealed(&self) -> Secret {
        Secret::new(serde_json::to_string(self).expect("texts can be written as JSON"))
    }

    pub(super) fn open(handle: &Secret) -> Result<Self, Fault> {
        // The parser's own words could repeat a part of the token.
        serde_json::from_str(handle.reveal()).map_err(|_| {
            Fault::Refused("what was kept about the client is not of this OpenID provider".into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_and_a_strange_one_is_refused_without_its_text() {
        let key = Key { uri: "https://sso/reg/1".into(), token: "t0ken".into() };
        let handle = Handle { name: "one".into(), key: key.clone(), left: vec![key.clone()] };
        let back = Handle::open(&handle.sealed()).unwrap();
        assert!(back.name == "one" && back.key == key && back.left == [key]);
        let refused = Handle::open(&Secret::new("t0ken")).err().expect("it is no JSON");
        assert!(matches!(&refused, Fault::Refused(why) if !why.contains("t0ken")), "{refused:?}");
    }
}
