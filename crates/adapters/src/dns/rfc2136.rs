//! Dynamic updates (RFC 2136), signed with a shared key (TSIG, RFC 8945), over TCP.
//!
//! Questions are signed like updates, and an answer without the right signature is never believed.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use domain::tsig;
use model::Time;
use port::{Answer, Dns, Fault};

use super::zone::{self, FullName, Zone};

mod answer;
mod key;
mod line;
mod message;

pub use key::{Algorithm, Key};

/// Where names are made, and with which key.
#[derive(Debug, Clone)]
pub struct Options {
    /// The zone's primary server.
    pub server: SocketAddr,
    /// The zone, for example `kafka.example.com`.
    pub zone: String,
    /// What both sides know.
    pub key: Key,
    /// For how long others may remember a name, in seconds.
    pub ttl_s: u32,
}

/// A zone at a server that takes dynamic updates.
pub struct Rfc2136 {
    server: SocketAddr,
    zone: Zone,
    key: Arc<tsig::Key>,
    ttl_s: u32,
    now: Box<dyn Fn() -> Time + Send + Sync>,
    noise: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Rfc2136 {
    /// Checks the options; asks nobody. `now` tells the time, which is part of every signature, and
    /// `noise` gives random numbers for messages.
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

    async fn have_point_to(&self, name: &str, target: &str) -> Result<(), Fault> {
        let (name, target) = (self.zone.below(name)?, zone::parse(target)?);
        let mut line = self.connect().await?;
        self.update(&mut line, &name, Some(&target)).await?;
        // A server leaves out an alias beside other records, and says that all is well.
        match self.look(&mut line, &name).await? {
            Some(found) if found == target => Ok(()),
            Some(found) => Err(Fault::Unavailable(format!(
                "{name} was made an alias of {target}, but {} says {found}",
                self.server()
            ))),
            None => Err(Fault::Refused(format!(
                "{name} can't be an alias of {target}: it has records of other types; remove them from the zone {}",
                self.zone.name()
            ))),
        }
    }

    async fn have_gone(&self, name: &str) -> Result<(), Fault> {
        let name = self.zone.below(name)?;
        let mut line = self.connect().await?;
        self.update(&mut line, &name, None).await?;
        match self.look(&mut line, &name).await? {
            None => Ok(()),
            Some(found) => Err(Fault::Unavailable(format!(
                "{name} was removed, but {} still says {found}",
                self.server()
            ))),
        }
    }

    async fn find_target(&self, name: &str) -> Result<Option<String>, Fault> {
        let name = self.zone.below(name)?;
        let target = self.look(&mut self.connect().await?, &name).await?;
        Ok(target.map(|target| target.to_string()))
    }

    fn server(&self) -> String {
        format!("the DNS server {}", self.server)
    }
}

impl Dns for Rfc2136 {
    fn point<'a>(&'a self, name: &'a str, target: &'a str) -> Answer<'a, ()> {
        Box::pin(self.have_point_to(name, target))
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        Box::pin(self.have_gone(name))
    }

    fn find<'a>(&'a self, name: &'a str) -> Answer<'a, Option<String>> {
        Box::pin(self.find_target(name))
    }
}

impl fmt::Debug for Rfc2136 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Rfc2136");
        shown.field("server", &self.server).field("zone", &self.zone).finish_non_exhaustive()
    }
}
