//! Server information and health.

use std::borrow::Cow;

use model::Time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Server information.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Info {
    /// Always `paddock`.
    pub name: Cow<'static, str>,
    /// The version of Paddock.
    pub version: Cow<'static, str>,
    /// Commit that the server was built from, if known.
    pub commit: Cow<'static, str>,
    /// Time when the server started.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Time,
    /// `sqlite` or `postgresql`.
    pub database: Cow<'static, str>,
    /// Container runtime of the server.
    pub runtime: String,
}

/// Health of the server.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `healthy` or `unhealthy`.
    pub status: Cow<'static, str>,
    /// Components; only with `type=detailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<HealthCheck>>,
}

/// Health of one component.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct HealthCheck {
    /// Component: `database`, `work queue`, `agent`, or an external system.
    pub name: String,
    /// `healthy` or `unhealthy`.
    pub status: Cow<'static, str>,
    /// Result of the check.
    pub detail: String,
}

/// Response to a ping.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Pong {
    /// Always `pong`.
    pub response: Cow<'static, str>,
    /// Server time.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
}
