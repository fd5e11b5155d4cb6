//! Executors: the backends that apply resources.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// List of executors.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ExecutorList {
    /// Executors, ordered by name.
    pub items: Vec<Executor>,
}

/// A backend that applies resources.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Executor {
    /// Name in templates.
    pub name: String,
    /// Whether the executor can be used on this server.
    pub available: bool,
    /// Missing setting, if the executor is not available.
    pub reason: Option<String>,
}
