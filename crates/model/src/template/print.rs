//! Prints: what two equal things have in common, as SHA-256 in hex.

use std::fmt::Write;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Takes in texts and values, and gives their print.
///
/// Every piece has its length before it, so that no two sequences of pieces are taken for one another.
#[derive(Clone, Default)]
pub(super) struct Print {
    hash: Sha256,
    /// What was not taken in yet: many short pieces go faster together.
    rest: Vec<u8>,
}

/// So many bytes are taken in at once.
const TOGETHER: usize = 4096;

impl Print {
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len());
        self.bytes(text.as_bytes());
        self
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        if self.rest.len() >= TOGETHER {
            self.hash.update(&self.rest);
            self.rest.clear();
        }
    }

    pub(super) fn number(&mut self, number: usize) -> &mut Self {
        self.bytes(&(number as u64).to_le_bytes());
        self
    }

    /// A value; the order of the names in a map does not matter.
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

    /// Names and values, in any order.
    pub(super) fn map(&mut self, map: &Map<String, Value>) -> &mut Self {
        let mut fields: Vec<(&String, &Value)> = map.iter().collect();
        fields.sort_unstable_by_key(|(name, _)| *name);
        self.text("map").number(fields.len());
        for (name, value) in fields {
            self.text(name).value(value);
        }
        self
    }

    pub(super) fn done(mut self) -> String {
        self.hash.update(&self.rest);
        let mut hex = String::with_capacity(64);
        for byte in self.hash.finalize() {
            write!(hex, "{byte:02x}").expect("a string takes all that is written");
        }
        hex
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: &Value) -> String {
        let mut print = Print::default();
        print.value(value);
        print.done()
    }

    #[test]
    fn only_equal_values_have_equal_prints() {
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
                assert_eq!(of(a) == of(b), i == j, "{a} {b}");
            }
        }
        assert_eq!(of(&json!({"b": 2, "a": 1})), of(&json!({"a": 1, "b": 2})));
    }
}
