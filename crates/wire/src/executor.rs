//! Executors: what can carry out resources on a server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All executors.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ExecutorList {
    /// The executors, in the order of their names.
    pub items: Vec<Executor>,
}

/// Somebody who carries out resources.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Executor {
    /// As templates name it.
    pub name: String,
    /// Can it be used on this server?
    pub available: bool,
    /// Which setting it lacks, if it can't.
    pub reason: Option<String>,
}
