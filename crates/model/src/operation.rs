//! Subjects of operations on external systems.

use std::fmt;

use crate::{ClusterId, ResourceId};

/// The subject of an operation, displayed as its unique id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A cluster that its provider creates.
    Cluster(ClusterId),
    /// A resource of an environment.
    Resource(ResourceId),
}

impl Subject {
    /// The encryption context of the subject's secrets, which can't be decrypted in another.
    pub fn purpose(self, name: &str) -> String {
        match self {
            Subject::Cluster(id) => format!("cluster/{id}/{name}"),
            Subject::Resource(id) => format!("resource/{id}/{name}"),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Cluster(id) => id.fmt(f),
            Subject::Resource(id) => id.fmt(f),
        }
    }
}

impl From<ClusterId> for Subject {
    fn from(id: ClusterId) -> Self {
        Subject::Cluster(id)
    }
}

impl From<ResourceId> for Subject {
    fn from(id: ResourceId) -> Self {
        Subject::Resource(id)
    }
}
