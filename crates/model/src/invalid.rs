//! Validation errors, field by field.

use std::fmt;

use serde::Serialize;

/// A validation error of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// The path of the field: `user.username`, `resource.cpu`, `ports[2]`.
    pub field: String,
    /// What is wrong and what is allowed.
    pub detail: String,
}

/// One or more validation errors of an input.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct Invalid(pub Vec<FieldError>);

impl Invalid {
    /// An error of one field.
    pub fn new(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self(vec![FieldError { field: field.into(), detail: detail.into() }])
    }

    /// Prefixes every field with `parent.`.
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

/// Collects errors of several fields, so that users see all of them at once.
#[derive(Debug, Default)]
pub struct Check(Invalid);

impl Check {
    /// Returns the value, or records its errors.
    pub fn field<T>(&mut self, result: Result<T, Invalid>) -> Option<T> {
        result.map_err(|invalid| self.0.0.extend(invalid.0)).ok()
    }

    /// Fails if any error was recorded.
    pub fn done(self) -> Result<(), Invalid> {
        if self.0.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}
