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
    /// The highest priority of its deployments; the server's setting if none.
    pub max_priority: Option<i64>,
    /// Its weight in fair shares of shared clusters.
    pub weight: i64,
    /// Incremented with every change by users.
    pub generation: i64,
    /// Time of creation.
    pub created_at: Time,
}

/// Maximum weight of an organization.
pub const MAX_WEIGHT: i64 = 1000;

/// Checks an organization's weight.
pub fn check_weight(weight: i64) -> Result<(), Invalid> {
    if (1..=MAX_WEIGHT).contains(&weight) {
        return Ok(());
    }
    Err(Invalid::new("weight", format!("must be from 1 to {MAX_WEIGHT}, not {weight}")))
}

/// Checks an organization's name.
pub fn name(field: &str, text: &str) -> Result<String, Invalid> {
    name::line(field, text, 100)
}
