//! The containers' network: a bridge per installation, a cable to each container.
//!
//! Containers reach the machine and, through it, the world, but not each other: they may belong to
//! different tenants. The machine reaches them by their addresses; users reach them through
//! porters on its loopback.

pub(crate) mod attach;
mod egress;
pub(crate) mod names;
pub(crate) mod netlink;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::dirs::{key, read_json, write_json};
use super::plan::Link;
use crate::Error;

/// Networks are taken from 10.64.0.0/10, each with room for some 4,000 containers.
const FIRST: u32 = u32::from_be_bytes([10, 64, 0, 0]);
const PREFIX: u8 = 20;
const SIZE: u32 = 1 << (32 - PREFIX as u32);
const NETWORKS: u32 = 1 << (PREFIX as u32 - 10);

/// The network of this installation: its plan on disk, and which places are taken.
pub(crate) struct Network {
    file: PathBuf,
    id: String,
    egress: bool,
    base: Option<u32>,
    /// Is the bridge there, as far as this process knows?
    bridge: Bridge,
    taken: BTreeSet<u32>,
}

/// A start can be given up at any point: what was begun is not yet done, and not nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bridge {
    Unknown,
    Begun,
    Ready,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    base: u32,
}

impl Network {
    /// The network of before, if there was one. `links` are the places of containers that exist.
    pub(crate) fn open(dir: &Path, instance: &str, egress: bool, links: &[Link]) -> Self {
        let file = dir.join("network.json");
        let base = read_json(&file).map(|Saved { base }| base);
        let id = key(instance)[..8].to_owned();
        let (bridge, taken) = (Bridge::Unknown, BTreeSet::new());
        let mut network = Self { file, id, egress, base, bridge, taken };
        for link in links {
            network.taken.insert(u32::from(link.address) % SIZE);
        }
        network
    }

    /// A place for one more container; the bridge is there when this returns.
    pub(crate) async fn take(&mut self) -> Result<Link, Error> {
        let base = self.ensure().await?;
        let place =
            (2..SIZE - 1).find(|place| !self.taken.contains(place)).ok_or(Error::NetworkFull)?;
        self.taken.insert(place);
        Ok(Link {
            bridge: self.bridge(),
            host_end: format!("pd{}{place:x}", &self.id[..6]),
            address: Ipv4Addr::from(base + place),
            prefix: PREFIX,
            gateway: Ipv4Addr::from(base + 1),
        })
    }

    /// Gives a place back.
    pub(crate) async fn give_back(&mut self, link: &Link) {
        if let Err(error) = netlink::remove(&link.host_end).await {
            tracing::warn!(%error, link = link.host_end, "a container's cable could not be removed");
        }
        self.taken.remove(&(u32::from(link.address) % SIZE));
    }

    /// Removes the bridge if no container uses it: what rests leaves no trace.
    pub(crate) async fn tidy(&mut self) {
        if !self.taken.is_empty() || self.bridge == Bridge::Unknown {
            return;
        }
        egress::forbid(&self.id).await;
        match netlink::remove(&self.bridge()).await {
            Ok(()) => self.bridge = Bridge::Unknown,
            Err(error) => tracing::warn!(%error, "the containers' bridge could not be removed"),
        }
    }

    /// Makes the bridge be there, also after a reboot.
    pub(crate) async fn ensure(&mut self) -> Result<u32, Error> {
        let bridge = self.bridge();
        let failed = |error| Error::io("The containers' bridge could not be made", error);
        let base = match self.base {
            Some(base) => base,
            None => self.choose().await.map_err(failed)?,
        };
        if self.bridge == Bridge::Ready {
            return Ok(base);
        }
        self.bridge = Bridge::Begun;
        netlink::bridge(&bridge, Ipv4Addr::from(base + 1), PREFIX).await.map_err(failed)?;
        if self.egress {
            egress::allow(&self.id, &bridge, Ipv4Addr::from(base), PREFIX).await;
        }
        self.bridge = Bridge::Ready;
        Ok(base)
    }

    fn bridge(&self) -> String {
        format!("pd-{}", self.id)
    }

    /// Chooses addresses that nothing on this machine uses, and remembers them.
    async fn choose(&mut self) -> std::io::Result<u32> {
        let used = netlink::addresses().await?;
        let start = u32::from_str_radix(&self.id, 16).unwrap_or(0);
        let base = (0..NETWORKS)
            .map(|step| FIRST + (start.wrapping_add(step) % NETWORKS) * SIZE)
            .find(|base| !used.iter().any(|(address, prefix)| overlap(*base, *address, *prefix)))
            .ok_or_else(|| std::io::Error::other("all of 10.64.0.0/10 is in use"))?;
        write_json(&self.file, &Saved { base })?;
        self.base = Some(base);
        Ok(base)
    }
}

/// Do our network at `base` and another one have addresses in common?
fn overlap(base: u32, other: Ipv4Addr, prefix: u8) -> bool {
    let shorter = u32::from(PREFIX.min(prefix));
    let mask = u32::MAX.checked_shl(32 - shorter).unwrap_or(0);
    base & mask == u32::from(other) & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_that_overlap() {
        let base = FIRST;
        for (other, prefix, expected) in [
            ([10, 64, 0, 1], 32, true),
            ([10, 64, 15, 255], 24, true),
            ([10, 64, 16, 1], 24, false),
            ([10, 0, 0, 1], 8, true),
            ([0, 0, 0, 0], 0, true),
            ([192, 168, 0, 1], 16, false),
        ] {
            assert_eq!(overlap(base, other.into(), prefix), expected, "{other:?}/{prefix}");
        }
    }
}
