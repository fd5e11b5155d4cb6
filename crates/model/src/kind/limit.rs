//! Limits of an instance: shown in the API, passed to agents.

use serde::Deserialize;

use crate::Quantity;

/// A limit of a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The name in the API.
    pub name: String,
    /// The name in the capacity passed to third-party agents; omitted there if absent.
    pub agent: Option<String>,
    /// The value.
    pub value: LimitValue,
    /// The representation in instances.
    pub shown: Shown,
}

/// A limit's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitValue {
    /// A number of bytes.
    Quantity {
        /// The quantity as written in the file: `50Mi`.
        text: String,
        /// The number of bytes.
        bytes: i64,
    },
    /// A number.
    Number(i64),
    /// A string: `P14D`.
    Text(String),
}

/// The representation of a limit in instances; the list of instance types shows all limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Hidden.
    #[default]
    Hidden,
    /// The number, or the string from the file.
    Plain,
    /// An object `{bytes: …}`.
    Bytes,
}

/// The type of a limit's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Measure {
    Bytes,
    Number,
    Text,
}

impl Measure {
    /// Parses a value, or returns what is expected.
    pub(super) fn value(self, text: &str) -> Result<LimitValue, String> {
        match self {
            Measure::Bytes => bytes(text),
            Measure::Number => text
                .parse()
                .map(LimitValue::Number)
                .map_err(|_| "must be a whole number".to_owned()),
            Measure::Text if text.is_empty() => Err("must not be empty".to_owned()),
            Measure::Text => Ok(LimitValue::Text(text.to_owned())),
        }
    }
}

fn bytes(text: &str) -> Result<LimitValue, String> {
    let quantity: Quantity = text.parse().map_err(|e| format!("{e}"))?;
    if quantity.milli() % 1000 != 0 {
        return Err("must be a whole number of bytes, like 50Mi".to_owned());
    }
    Ok(LimitValue::Quantity { text: text.to_owned(), bytes: quantity.milli() / 1000 })
}
