//! Prints of values: they tell whether a value is the one that was made, and nothing else of it.
//!
//! Their key is kept by Paddock, not by Vault: who may read what is written beside a secret, but not
//! the secret, can't try out short values.

use data_encoding::{BASE64, HEXLOWER};
use model::Secret;
use ring::hmac;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::seal::local::Entropy;

/// Makes prints with one key.
pub(super) struct Prints {
    key: hmac::Key,
    /// Which key that is, so that prints of another one are not compared.
    pub(super) id: String,
}

/// A new key.
pub(super) fn new_key(entropy: &Entropy) -> Secret {
    let mut bytes = [0; 32];
    entropy(&mut bytes);
    Secret::new(BASE64.encode(&bytes))
}

impl Prints {
    pub(super) fn new(key: &Secret) -> Self {
        let bytes = key.reveal().as_bytes();
        let id = HEXLOWER.encode(&Sha256::digest(bytes)[..8]);
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, bytes), id }
    }

    /// The print of a value under its name.
    pub(super) fn of(&self, name: &str, value: &Value) -> String {
        let named = serde_json::to_vec(&(name, value)).expect("JSON can be written as JSON");
        HEXLOWER.encode(&hmac::sign(&self.key, &named).as_ref()[..16])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_print_depends_on_the_key_the_name_and_the_value() {
        let prints = Prints::new(&Secret::new("one"));
        let print = prints.of("password", &json!("x"));
        assert_eq!(print, Prints::new(&Secret::new("one")).of("password", &json!("x")));
        for other in [
            prints.of("user", &json!("x")),
            prints.of("password", &json!("y")),
            Prints::new(&Secret::new("two")).of("password", &json!("x")),
        ] {
            assert_ne!(print, other);
        }
        assert_ne!(prints.id, Prints::new(&Secret::new("two")).id);
    }
}
