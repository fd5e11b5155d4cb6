//! Fingerprints of values: they tell whether a value is the one that was generated, and nothing
//! else.
//!
//! Paddock, not Vault, stores their key: a reader of the custom metadata without access to the
//! secret can't guess short values.

use data_encoding::{BASE64, HEXLOWER};
use model::Secret;
use ring::hmac;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::encryption::local::Entropy;

/// Computes fingerprints with one key.
pub(super) struct Fingerprints {
    key: hmac::Key,
    /// The id of the key, so that fingerprints of different keys are not compared.
    pub(super) id: String,
}

/// A new key.
pub(super) fn new_key(entropy: &Entropy) -> Secret {
    let mut bytes = [0; 32];
    entropy(&mut bytes);
    Secret::new(BASE64.encode(&bytes))
}

impl Fingerprints {
    pub(super) fn new(key: &Secret) -> Self {
        let bytes = key.reveal().as_bytes();
        let id = HEXLOWER.encode(&Sha256::digest(bytes)[..8]);
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, bytes), id }
    }

    /// The fingerprint of a value and its name.
    pub(super) fn compute(&self, name: &str, value: &Value) -> String {
        let named = serde_json::to_vec(&(name, value)).expect("JSON can be written as JSON");
        HEXLOWER.encode(&hmac::sign(&self.key, &named).as_ref()[..16])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fingerprint_depends_on_the_key_the_name_and_the_value() {
        let fingerprints = Fingerprints::new(&Secret::new("one"));
        let print = fingerprints.compute("password", &json!("x"));
        let same = Fingerprints::new(&Secret::new("one"));
        assert_eq!(print, same.compute("password", &json!("x")));
        let other = Fingerprints::new(&Secret::new("two"));
        for different in [
            fingerprints.compute("user", &json!("x")),
            fingerprints.compute("password", &json!("y")),
            other.compute("password", &json!("x")),
        ] {
            assert_ne!(print, different);
        }
        assert_ne!(fingerprints.id, other.id);
    }
}
