//! What is wrong with an input, field by field, in words that help to mend it.

use std::fmt;

use serde::Serialize;

/// One field and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// Where it is, as a path: `user.username`, `resource.cpu`, `ports[2]`.
    pub field: String,
    /// What is wrong and what is allowed, as a sentence.
    pub detail: String,
}

/// An input that breaks one rule or more.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct Invalid(pub Vec<FieldError>);

impl Invalid {
    /// One field, one sentence.
    pub fn new(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self(vec![FieldError { field: field.into(), detail: detail.into() }])
    }

    /// The same, with `parent.` before every field.
    pub fn within(mut self, parent: &str) -> Self {
        for error in &mut self.0 {
            error.field = format!("{parent}.{}", error.field);
        }
        self
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            let gap = if i == 0 { "" } else { "; " };
            write!(f, "{gap}{}: {}", error.field, error.detail)?;
        }
        Ok(())
    }
}

/// Collects what is wrong with several fields, so that a user hears of all at once.
#[derive(Debug, Default)]
pub struct Check(Invalid);

impl Check {
    /// Keeps the value, or notes what is wrong with it.
    pub fn field<T>(&mut self, result: Result<T, Invalid>) -> Option<T> {
        result.map_err(|invalid| self.0.0.extend(invalid.0)).ok()
    }

    /// Ok if nothing was wrong.
    pub fn done(self) -> Result<(), Invalid> {
        if self.0.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}
