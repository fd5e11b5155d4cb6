//! The adapter for a moto of the test's own.

use std::net::SocketAddr;
use std::time::Duration;

use adapters::dns::route53::{Keys, Options, Route53};
use model::Secret;
use testing::programs::ZONE;

/// Options of an adapter that finds its server there.
pub(crate) fn options(endpoint: &str) -> Options {
    Options {
        zone: ZONE.into(),
        zone_id: None,
        keys: Keys { id: "AKIATEST".into(), secret: Secret::new("hidden"), session: None },
        region: "us-east-1".into(),
        endpoint: Some(endpoint.into()),
        ttl_s: 300,
        sync_for: Duration::from_secs(30),
    }
}

/// An adapter that finds its server there.
pub(crate) fn adapter(server: SocketAddr) -> Route53 {
    Route53::new(options(&format!("http://{server}"))).unwrap()
}
