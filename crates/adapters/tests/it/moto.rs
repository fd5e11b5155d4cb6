//! The Route 53 adapter for a test's own moto.

use std::net::SocketAddr;
use std::time::Duration;

use adapters::dns::route53::{AccessKey, Options, Route53};
use model::Secret;
use testing::programs::ZONE;

/// Options for this server.
pub(crate) fn options(endpoint: &str) -> Options {
    Options {
        zone: ZONE.into(),
        zone_id: None,
        credentials: AccessKey {
            id: "AKIATEST".into(),
            secret: Secret::new("hidden"),
            session: None,
        },
        region: "us-east-1".into(),
        endpoint: Some(endpoint.into()),
        ttl_s: 300,
        sync_timeout: Duration::from_secs(30),
    }
}

/// An adapter for this server.
pub(crate) fn adapter(server: SocketAddr) -> Route53 {
    Route53::new(options(&format!("http://{server}"))).unwrap()
}
