//! Whose things a caller may see. There is no query of tenants' things without one.

use model::OrganizationId;

/// Whose things are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One organization's. Everything else does not exist.
    Organization(OrganizationId),
    /// Everybody's: for workers and the platform administrator.
    All,
}

impl Scope {
    /// The organization that is meant, if it is one.
    pub fn organization(self) -> Option<OrganizationId> {
        match self {
            Scope::Organization(id) => Some(id),
            Scope::All => None,
        }
    }
}
