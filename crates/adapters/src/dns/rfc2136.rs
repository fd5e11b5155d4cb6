//! Dynamic DNS updates (RFC 2136), signed with a shared key (TSIG, RFC 8945), over TCP.
//!
//! Queries are signed like updates, and a response without a valid signature is never trusted.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use domain::tsig;
use model::Time;
use port::{Dns, Fault, PortFuture};

use super::zone::{self, FullName, Zone};

mod answer;
mod connection;
mod key;
mod message;

pub use key::{Algorithm, Key};

/// The zone in which records are created, and the key for it.
#[derive(Debug, Clone)]
pub struct Options {
    /// The zone's primary server.
    pub server: SocketAddr,
    /// The zone, for example `kafka.example.com`.
    pub zone: String,
    /// The shared TSIG key.
    pub key: Key,
    /// TTL of records, in seconds.
    pub ttl_s: u32,
}

/// A zone on a server that accepts dynamic updates.
pub struct Rfc2136 {
    server: SocketAddr,
    zone: Zone,
    key: Arc<tsig::Key>,
    ttl_s: u32,
    now: Box<dyn Fn() -> Time + Send + Sync>,
    noise: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Rfc2136 {
    /// Checks the options; sends nothing. `now` returns the time, which is part of every signature,
    /// and `noise` returns random numbers for message ids.
    pub fn new(
        options: &Options,
        now: impl Fn() -> Time + Send + Sync + 'static,
        noise: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<Self, Fault> {
        Ok(Self {
            server: options.server,
            zone: Zone::new(&options.zone)?,
            key: Arc::new(options.key.checked()?),
            ttl_s: options.ttl_s,
            now: Box::new(now),
            noise: Box::new(noise),
        })
    }

    async fn set_cname(&self, name: &str, target: &str) -> Result<(), Fault> {
        let (name, target) = (self.zone.below(name)?, zone::parse(target)?);
        let mut connection = self.connect().await?;
        self.update(&mut connection, &name, Some(&target)).await?;
        // A server silently ignores an alias next to records of other types.
        match self.query(&mut connection, &name).await? {
            Some(found) if found == target => Ok(()),
            Some(found) => Err(Fault::Unavailable(format!(
                "{name} was made an alias of {target}, but {} returns {found}",
                self.server()
            ))),
            None => Err(Fault::Refused(format!(
                "{name} cannot be an alias of {target}: it has records of other types. Delete \
                 them from the zone {}",
                self.zone.name()
            ))),
        }
    }

    async fn delete_cname(&self, name: &str) -> Result<(), Fault> {
        let name = self.zone.below(name)?;
        let mut connection = self.connect().await?;
        self.update(&mut connection, &name, None).await?;
        match self.query(&mut connection, &name).await? {
            None => Ok(()),
            Some(found) => Err(Fault::Unavailable(format!(
                "{name} was deleted, but {} still returns {found}",
                self.server()
            ))),
        }
    }

    async fn find_target(&self, name: &str) -> Result<Option<String>, Fault> {
        let name = self.zone.below(name)?;
        let target = self.query(&mut self.connect().await?, &name).await?;
        Ok(target.map(|target| target.to_string()))
    }

    fn server(&self) -> String {
        format!("the DNS server {}", self.server)
    }
}

impl Dns for Rfc2136 {
    fn set_cname<'a>(&'a self, name: &'a str, target: &'a str) -> PortFuture<'a, ()> {
        Box::pin(self.set_cname(name, target))
    }

    fn delete_cname<'a>(&'a self, name: &'a str) -> PortFuture<'a, ()> {
        Box::pin(self.delete_cname(name))
    }

    fn get_cname<'a>(&'a self, name: &'a str) -> PortFuture<'a, Option<String>> {
        Box::pin(self.find_target(name))
    }
}

impl fmt::Debug for Rfc2136 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Rfc2136");
        shown.field("server", &self.server).field("zone", &self.zone).finish_non_exhaustive()
    }
}
