//! How a container is doing.

use std::fmt::Display;

/// How a container is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It runs.
    Running {
        /// Where each of its ports can be reached.
        endpoints: Vec<String>,
    },
    /// It ended and will be started again.
    Restarting {
        /// How it ended and when it is tried again, as a sentence.
        reason: String,
    },
    /// It ended as it should.
    Completed,
    /// It ended as it should not; why, as a sentence.
    Failed(String),
}

impl Condition {
    /// The condition of a container after an attempt to start it.
    pub fn after_start(started: Result<Vec<String>, impl Display>) -> Self {
        match started {
            Ok(endpoints) => Condition::Running { endpoints },
            Err(error) => Condition::Failed(error.to_string()),
        }
    }
}
