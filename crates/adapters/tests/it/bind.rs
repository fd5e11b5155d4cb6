//! The RFC 2136 adapter for a test's own BIND.

use std::net::SocketAddr;

use adapters::dns::rfc2136::{Key, Options, Rfc2136};
use testing::programs::ZONE;

use crate::patience;

/// The adapter with the settings of the server.
pub(crate) fn adapter(server: SocketAddr, key: &str) -> Rfc2136 {
    let options = Options { server, zone: ZONE.into(), key: self::key(key), ttl_s: 300 };
    Rfc2136::new(&options, patience::now, || 4711).unwrap()
}

/// Parses a key file.
pub(crate) fn key(text: &str) -> Key {
    Key::from_bind(text).unwrap()
}
