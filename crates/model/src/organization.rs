//! Organizations, which own all other objects.

pub mod quota;

use serde::Serialize;

use crate::{Invalid, OrganizationId, Time, name};

/// An organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Organization {
    /// The id.
    pub id: OrganizationId,
    /// The name, unique without regard to case.
    pub name: String,
    /// Number of deployments, without deleted ones.
    pub deployments: i64,
    /// Incremented with every change by users.
    pub generation: i64,
    /// Time of creation.
    pub created_at: Time,
}

/// Checks an organization's name.
pub fn name(field: &str, text: &str) -> Result<String, Invalid> {
    name::line(field, text, 100)
}
