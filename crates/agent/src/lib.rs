//! Agent: the data plane. Fetches desired state, reconciles replicas and reports observed state.
//!
//! The agent has no access to the store or the API, only a [`Link`] to its control plane and a
//! container [`Runtime`]. It never removes a replica that is merely missing from a list, only one
//! that the control plane asks it to remove.

mod agent;
mod choose;
mod error;
mod link;
mod probe;
mod reason;
mod runtime;

pub use self::runtime::absent::Absent;
pub use self::runtime::docker::{self, Docker};
pub use self::runtime::kubernetes::{self, Kubernetes};
pub use self::runtime::simulated::{self, Simulated};
pub use self::runtime::{ImageResult, Images, ObservedFuture, Runtime};
pub use agent::Agent;
pub use choose::{RuntimeChoice, choose};
pub use error::Error;
pub use link::{Link, LinkError};
