//! Plans: an instance type and one of its sizes, written `standard.x1`.

use super::{InstanceType, Kind, Size};

/// Why a plan is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Not of the form `type.size`.
    #[error("a plan is an instance type and a size, like standard.x1")]
    Malformed,
    /// Unknown instance type.
    #[error("unknown instance type \"{}\"", .0.escape_default())]
    UnknownType(String),
    /// Unknown size.
    #[error("the instance type has no size \"{}\"", .0.escape_default())]
    UnknownSize(String),
}

/// Splits a plan into type and size without checking that they exist.
pub(crate) fn halves(plan: &str) -> Result<(&str, &str), PlanError> {
    match plan.trim().split_once('.') {
        Some((kind, size)) if !kind.is_empty() && !size.is_empty() && !size.contains('.') => {
            Ok((kind, size))
        }
        _ => Err(PlanError::Malformed),
    }
}

impl Kind {
    /// The type and the size of a plan.
    pub fn plan(&self, plan: &str) -> Result<(&InstanceType, &Size), PlanError> {
        let (kind, size) = halves(plan)?;
        let kind =
            self.instance_type(kind).ok_or_else(|| PlanError::UnknownType(kind.to_owned()))?;
        let size = kind.size(size).ok_or_else(|| PlanError::UnknownSize(size.to_owned()))?;
        Ok((kind, size))
    }
}
