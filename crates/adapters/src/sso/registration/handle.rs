//! What is stored to manage a registered client.

use model::Secret;
use port::Fault;
use serde::{Deserialize, Serialize};

/// The management URL of a client, and its token. Not printable.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) uri: String,
    pub(super) token: String,
}

/// What is stored of a client in addition to its id and secret.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Handle {
    /// Its name at creation.
    pub(super) name: String,
    pub(super) key: Key,
    /// Replaced clients of the same name that could not be deleted yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left: Vec<Key>,
}

impl Handle {
    pub(super) fn to_secret(&self) -> Secret {
        Secret::new(serde_json::to_string(self).expect("texts can be written as JSON"))
    }

    pub(super) fn parse(handle: &Secret) -> Result<Self, Fault> {
        // The parser's error could repeat a part of the token.
        serde_json::from_str(handle.reveal()).map_err(|_| {
            Fault::Refused("the stored client data does not belong to this OpenID provider".into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handle_round_trips_and_invalid_one_is_refused_without_its_text() {
        let key = Key { uri: "https://sso/reg/1".into(), token: "t0ken".into() };
        let handle = Handle { name: "one".into(), key: key.clone(), left: vec![key.clone()] };
        let back = Handle::parse(&handle.to_secret()).unwrap();
        assert!(back.name == "one" && back.key == key && back.left == [key]);
        let refused = Handle::parse(&Secret::new("t0ken")).err().expect("it is not JSON");
        assert!(matches!(&refused, Fault::Refused(why) if !why.contains("t0ken")), "{refused:?}");
    }
}
