//! Organizations: who owns things.

use serde::Serialize;

use crate::{Invalid, OrganizationId, Time, name};

/// An organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Organization {
    /// Its id.
    pub id: OrganizationId,
    /// Its name, unique when case is ignored.
    pub name: String,
    /// How many deployments it has, deleted ones not counted.
    pub deployments: i64,
    /// Counts the changes of what users set.
    pub generation: i64,
    /// When it was made.
    pub created_at: Time,
}

/// Checks an organization's name.
pub fn name(field: &str, text: &str) -> Result<String, Invalid> {
    name::line(field, text, 100)
}
