//! The data-plane side: takes what shall be, makes it so, says what is.
//!
//! The agent knows nothing of the store or the API: it sees a [`Link`] to its control plane and a
//! [`Runtime`] on its machine. It never removes what has merely vanished from a list, only what it
//! is told shall be gone.

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
pub use self::runtime::{Doing, Runtime};
pub use agent::Agent;
pub use choose::{Choice, choose};
pub use error::Error;
pub use link::{Link, LinkError};
