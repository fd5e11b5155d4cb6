//! Condition of a container.

use std::fmt::Display;

/// Condition of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Running.
    Running {
        /// Host address of each published port.
        endpoints: Vec<String>,
    },
    /// Exited; restarts after a backoff.
    Restarting {
        /// How it exited, and when it restarts.
        reason: String,
    },
    /// Exited with code 0.
    Completed,
    /// Failed; the message says why.
    Failed(String),
}

impl Condition {
    /// The condition after an attempt to start a container.
    pub fn after_start(started: Result<Vec<String>, impl Display>) -> Self {
        match started {
            Ok(endpoints) => Condition::Running { endpoints },
            Err(error) => Condition::Failed(error.to_string()),
        }
    }
}
