//! Visibility of subjects. Every query of tenants' subjects has a scope.

use model::OrganizationId;

/// Which subjects are visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those of one organization. Others don't exist for the caller.
    Organization(OrganizationId),
    /// All: for workers and the platform administrator.
    All,
}

impl Scope {
    /// The organization, unless the scope is all.
    pub fn organization(self) -> Option<OrganizationId> {
        match self {
            Scope::Organization(id) => Some(id),
            Scope::All => None,
        }
    }
}
