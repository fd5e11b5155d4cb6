//! Limits that the users of an instance meet: shown in the API, handed to agents.

use serde::Deserialize;

use crate::Quantity;

/// What an instance of a size allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Its name in the API.
    pub name: String,
    /// Its name in the capacity that foreign agents are handed; without one they don't see it.
    pub agent: Option<String>,
    /// Its value.
    pub value: LimitValue,
    /// How an instance shows it.
    pub shown: Shown,
}

/// A limit's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitValue {
    /// An amount of bytes, and how it was written.
    Quantity {
        /// As in the file: `50Mi`.
        text: String,
        /// The same in bytes.
        bytes: i64,
    },
    /// A number.
    Number(i64),
    /// Anything else: `P14D`.
    Text(String),
}

/// How an instance shows a limit; the list of instance types shows all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Not at all.
    #[default]
    Hidden,
    /// The number, or the text as in the file.
    Plain,
    /// As an object `{bytes: …}`.
    Bytes,
}

/// What a limit's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Measure {
    Bytes,
    Number,
    Text,
}

impl Measure {
    /// Reads a value of this measure, or says what is expected.
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
