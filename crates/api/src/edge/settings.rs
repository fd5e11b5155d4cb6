//! Settings of the HTTP edge.

use std::time::Duration;

use super::host::AllowedHosts;
use super::proxy::Network;

/// Settings of the HTTP edge. A limit of 0 is none.
#[derive(Debug, Clone)]
pub struct EdgeSettings {
    /// Hosts under which the server may be called.
    pub hosts: AllowedHosts,
    /// Proxies whose `X-Forwarded-For` or `Forwarded` header counts.
    pub trusted_proxies: Vec<Network>,
    /// Maximum number of open connections.
    pub max_connections: usize,
    /// Maximum number of open connections of one address.
    pub max_connections_per_address: usize,
    /// Requests per second; four times as many at once.
    pub requests_per_second: Limit<u32>,
    /// Maximum number of open streams: events, and logs.
    pub max_streams: Limit<usize>,
    /// Time after which a stream ends; its client resumes it.
    pub stream_life: Duration,
    /// Interval in which the caller of an open stream is checked, in addition to every change.
    pub stream_check: Duration,
    /// Whether limits per address and of requests apply to clients on this machine.
    pub limit_loopback: bool,
}

/// A limit for each user, organization and address.
#[derive(Debug, Clone, Copy)]
pub struct Limit<T> {
    /// Limit of one user.
    pub user: T,
    /// Limit of one organization.
    pub organization: T,
    /// Limit of one address.
    pub address: T,
}

impl Default for EdgeSettings {
    fn default() -> Self {
        Self {
            hosts: AllowedHosts::default(),
            trusted_proxies: Vec::new(),
            max_connections: 10_000,
            max_connections_per_address: 1000,
            requests_per_second: Limit { user: 500, organization: 2000, address: 1000 },
            max_streams: Limit { user: 100, organization: 500, address: 500 },
            stream_life: Duration::from_hours(1),
            stream_check: Duration::from_secs(30),
            limit_loopback: false,
        }
    }
}
