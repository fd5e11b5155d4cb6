//! The workers of deployments. What runs where is decided by [`crate::placement`].

mod ending;

pub use ending::Ending;
