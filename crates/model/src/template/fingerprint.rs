//! Fingerprints: SHA-256 hashes of structured data, in hex.

use std::fmt::Write;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Computes the fingerprint of a sequence of strings and values.
///
/// Every piece is prefixed with its length, so that different sequences never hash alike.
#[derive(Clone, Default)]
pub(super) struct Fingerprint {
    hash: Sha256,
    /// Bytes not hashed yet: hashing many short pieces at once is faster.
    buffer: Vec<u8>,
}

/// The number of bytes hashed at once.
const BLOCK: usize = 4096;

impl Fingerprint {
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len());
        self.bytes(text.as_bytes());
        self
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BLOCK {
            self.hash.update(&self.buffer);
            self.buffer.clear();
        }
    }

    pub(super) fn number(&mut self, number: usize) -> &mut Self {
        self.bytes(&(number as u64).to_le_bytes());
        self
    }

    /// Adds a value; the order of map keys does not matter.
    pub(super) fn value(&mut self, value: &Value) -> &mut Self {
        match value {
            Value::Array(items) => {
                self.text("list").number(items.len());
                for item in items {
                    self.value(item);
                }
            }
            Value::Object(map) => {
                self.map(map);
            }
            Value::String(text) => {
                self.text("text").text(text);
            }
            other => {
                self.text("other").text(&other.to_string());
            }
        }
        self
    }

    /// Adds a map; the order of its keys does not matter.
    pub(super) fn map(&mut self, map: &Map<String, Value>) -> &mut Self {
        let mut fields: Vec<(&String, &Value)> = map.iter().collect();
        fields.sort_unstable_by_key(|(name, _)| *name);
        self.text("map").number(fields.len());
        for (name, value) in fields {
            self.text(name).value(value);
        }
        self
    }

    pub(super) fn finish(mut self) -> String {
        self.hash.update(&self.buffer);
        let mut hex = String::with_capacity(64);
        for byte in self.hash.finalize() {
            write!(hex, "{byte:02x}").expect("writing to a String is infallible");
        }
        hex
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fingerprint(value: &Value) -> String {
        let mut fingerprint = Fingerprint::default();
        fingerprint.value(value);
        fingerprint.finish()
    }

    #[test]
    fn only_equal_values_have_equal_fingerprints() {
        let values = [
            json!(null),
            json!("null"),
            json!(1),
            json!("1"),
            json!([1]),
            json!([[1]]),
            json!([]),
            json!({}),
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": 1, "b": 2}),
            json!(["a", 1]),
            json!(["ab"]),
            json!(["a", "b"]),
        ];
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                assert_eq!(fingerprint(a) == fingerprint(b), i == j, "{a} {b}");
            }
        }
        assert_eq!(fingerprint(&json!({"b": 2, "a": 1})), fingerprint(&json!({"a": 1, "b": 2})));
    }
}
