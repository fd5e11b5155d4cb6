//! The service about itself.

use std::borrow::Cow;

use model::Time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What runs here.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Info {
    /// Always `paddock`.
    pub name: Cow<'static, str>,
    /// The version of Paddock.
    pub version: Cow<'static, str>,
    /// The commit that it was built from, if that was known.
    pub commit: Cow<'static, str>,
    /// Since when this server runs.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Time,
    /// `sqlite` or `postgresql`.
    pub database: Cow<'static, str>,
    /// What runs containers here.
    pub runtime: String,
}

/// How it is doing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `healthy` or `unhealthy`.
    pub status: Cow<'static, str>,
    /// Each part; only with `type=detailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<HealthCheck>>,
}

/// How one part is doing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct HealthCheck {
    /// Which part: `database`, `work queue`, `agent`, or a foreign system.
    pub name: String,
    /// `healthy` or `unhealthy`.
    pub status: Cow<'static, str>,
    /// What was found, as a sentence.
    pub detail: String,
}

/// An answer to a ping.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Pong {
    /// Always `pong`.
    pub response: Cow<'static, str>,
    /// The server's time.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
}
