//! The port of HTTP health checks.

use model::OrganizationId;

use super::PortFuture;

/// Probes URLs.
pub trait Probe: Send + Sync {
    /// The status of a GET request on behalf of an organization. Redirects are not followed.
    fn get<'a>(&'a self, organization: OrganizationId, url: &'a str) -> PortFuture<'a, u16>;
}

/// The endpoints of deployments on the server's machine.
pub trait Endpoints: Send + Sync {
    /// Whether a deployment of the organization is published at this `ADDRESS:PORT`.
    fn is_own<'a>(
        &'a self,
        organization: OrganizationId,
        endpoint: &'a str,
    ) -> PortFuture<'a, bool>;
}
