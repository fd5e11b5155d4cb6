//! The port of HTTP health checks.

use super::PortFuture;

/// Probes URLs.
pub trait Probe: Send + Sync {
    /// The status of a GET request. Redirects are not followed.
    fn get<'a>(&'a self, url: &'a str) -> PortFuture<'a, u16>;
}
