//! Logs of deployments.

use model::Time;
use model::log::{Cursor, LogLine};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::word;

/// A line of the log.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Line {
    /// Which replica said it.
    pub replica: u32,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// `stdout` or `stderr`.
    pub source: String,
    /// What.
    pub text: String,
    /// The place after it: give this as `after` to go on.
    #[schema(value_type = String)]
    pub next: Cursor,
}

impl Line {
    /// A line of one replica's log.
    pub fn new(replica: u32, line: LogLine) -> Self {
        Self { replica, at: line.at, source: word(line.source), text: line.text, next: line.next }
    }
}
