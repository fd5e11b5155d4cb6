//! Logs of deployments.

use model::Time;
use model::log::{Cursor, LogLine};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::variant;

/// A line of the log.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Line {
    /// Replica that wrote the line.
    pub replica: u32,
    /// Time when the line was written.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// `stdout` or `stderr`.
    pub source: String,
    /// Text of the line.
    pub text: String,
    /// Cursor after the line: pass it as `after` to continue.
    #[schema(value_type = String)]
    pub next: Cursor,
}

impl Line {
    /// Creates a line of one replica's log.
    pub fn new(replica: u32, line: LogLine) -> Self {
        Self {
            replica,
            at: line.at,
            source: variant(line.source),
            text: line.text,
            next: line.next,
        }
    }
}
