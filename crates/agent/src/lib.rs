//! The data-plane side: takes what shall be, makes it so, says what is.
//!
//! The agent knows nothing of the store or the API: it sees a [`Link`] to its control plane and a
//! [`Runtime`] on its machine. It never removes what has merely vanished from a list, only what it
//! is told shall be gone.

mod agent;
mod choose;
mod link;
mod probe;
mod runtime;

pub use agent::Agent;
pub use choose::{AnyRuntime, Choice, choose};
pub use link::{Link, LinkError};
pub use runtime::absent::Absent;
pub use runtime::credentials::Credentials;
pub use runtime::docker::{self, Docker};
pub use runtime::embedded::{self, Embedded};
pub use runtime::kubernetes::{self, Kubernetes};
pub use runtime::logs::{Cursor, LogLine, LogStream, LogsFrom, Source};
pub use runtime::simulated::{self, Simulated};
pub use runtime::{Condition, Runtime};
