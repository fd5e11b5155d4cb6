//! The workers of deployments.

mod placement;

pub use placement::Placement;
