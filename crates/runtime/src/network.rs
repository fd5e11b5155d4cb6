//! Container network: a bridge per installation, a veth pair per container.
//!
//! Containers reach public addresses, with egress, and nothing else: not the host, no private or
//! link-local address, and not each other, since they may belong to different tenants. Bridge ports
//! are isolated, a firewall applies the policy (`policy.rs`), and there is no IPv6. If any of it
//! can't be set up, no container starts. The host reaches containers by their addresses; users
//! reach them through port forwarders on the host's loopback.

pub(crate) mod attach;
pub(crate) mod cidr;
pub(crate) mod firewall;
pub(crate) mod names;
pub(crate) mod netlink;
mod policy;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::dirs::{key, read_json, write_json};
use super::options::Options;
use super::plan::Link;
use crate::Error;
use cidr::Cidr;
use firewall::Program;
use policy::Policy;

/// Subnets are chosen from 10.64.0.0/10; each has some 4,000 addresses.
const FIRST: u32 = u32::from_be_bytes([10, 64, 0, 0]);
const PREFIX: u8 = 20;
const SIZE: u32 = 1 << (32 - PREFIX as u32);
const NETWORKS: u32 = 1 << (PREFIX as u32 - 10);

/// The network of this installation: its subnet and its allocated addresses.
pub(crate) struct Network {
    file: PathBuf,
    id: String,
    egress: bool,
    /// Private networks that containers may reach.
    allowed: Vec<Cidr>,
    firewall: Program,
    /// The policy that this process has applied.
    applied: Option<Policy>,
    /// A change of the firewall in progress.
    change: Option<JoinHandle<Result<(), String>>>,
    /// First address of the subnet.
    base: Option<u32>,
    /// State of the bridge, as far as this process knows.
    bridge: Bridge,
    allocated: BTreeSet<u32>,
}

/// A start can be cancelled at any point, so creation of the bridge may be incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bridge {
    Unknown,
    Creating,
    Ready,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    base: u32,
}

impl Network {
    /// Loads the persisted network. `links` are the attachments of existing containers.
    pub(crate) fn open<'a>(
        options: &Options,
        firewall: Program,
        links: impl Iterator<Item = &'a Link>,
    ) -> Self {
        let file = options.dir.join("network.json");
        Self {
            base: read_json(&file).map(|Saved { base }| base),
            file,
            id: key(&options.instance)[..8].to_owned(),
            egress: options.egress,
            allowed: options.egress_allow.clone(),
            firewall,
            applied: None,
            change: None,
            bridge: Bridge::Unknown,
            allocated: links.map(|link| u32::from(link.address) % SIZE).collect(),
        }
    }

    /// Allocates an address for a container, after ensuring the bridge.
    pub(crate) async fn allocate(&mut self) -> Result<Link, Error> {
        let base = self.ensure_bridge().await?;
        let host =
            (2..SIZE - 1).find(|host| !self.allocated.contains(host)).ok_or(Error::NetworkFull)?;
        self.allocated.insert(host);
        Ok(Link {
            bridge: self.bridge_name(),
            host_end: format!("pd{}{host:x}", &self.id[..6]),
            address: Ipv4Addr::from(base + host),
            prefix: PREFIX,
            gateway: Ipv4Addr::from(base + 1),
        })
    }

    /// Releases an address and removes the veth pair.
    pub(crate) async fn release(&mut self, link: &Link) {
        if let Err(error) = netlink::remove(&link.host_end).await {
            tracing::warn!(%error, link = link.host_end, "removing a veth pair failed");
        }
        self.allocated.remove(&(u32::from(link.address) % SIZE));
    }

    /// Removes the bridge if no container uses it.
    pub(crate) async fn remove_unused_bridge(&mut self) {
        if !self.allocated.is_empty() || self.bridge == Bridge::Unknown {
            return;
        }
        if let Err(error) = netlink::remove(&self.bridge_name()).await {
            tracing::warn!(%error, "removing the bridge failed");
            return;
        }
        (self.bridge, self.applied) = (Bridge::Unknown, None);
        let id = self.id.clone();
        let remove = move || {
            firewall::remove(&id);
            Ok(())
        };
        let _ = self.change_firewall(remove).await;
    }

    /// Creates the bridge unless it exists, for example after a reboot.
    pub(crate) async fn ensure_bridge(&mut self) -> Result<u32, Error> {
        let bridge = self.bridge_name();
        let failed = |error| Error::io("Creating the bridge failed", error);
        let base = match self.base {
            Some(base) => base,
            None => self.choose_subnet().await.map_err(failed)?,
        };
        if self.bridge == Bridge::Unknown {
            // The rules exist first; whatever exists is removed with the bridge.
            self.bridge = Bridge::Creating;
        }
        if let Err(error) = self.ensure_policy(base).await {
            // Running containers must not go on without it.
            self.bridge = Bridge::Creating;
            netlink::set_down(&bridge).await.map_err(failed)?;
            return Err(error);
        }
        if self.bridge == Bridge::Ready {
            return Ok(base);
        }
        self.bridge = Bridge::Creating;
        netlink::ensure_bridge(&bridge, Ipv4Addr::from(base + 1), PREFIX).await.map_err(failed)?;
        self.bridge = Bridge::Ready;
        Ok(base)
    }

    /// Applies the network policy, unless it is in force.
    async fn ensure_policy(&mut self, base: u32) -> Result<(), Error> {
        let policy = Policy {
            id: self.id.clone(),
            bridge: self.bridge_name(),
            subnet: Cidr::new(Ipv4Addr::from(base), PREFIX).expect("the prefix is at most 32"),
            egress: self.egress,
            allowed: self.allowed.clone(),
            resolvers: names::resolvers(),
        };
        let (firewall, is_same) = (self.firewall, self.applied.as_ref() == Some(&policy));
        let wanted = policy.clone();
        let work = move || {
            if is_same && firewall.is_in_force(&wanted) {
                return Ok(());
            }
            firewall.apply(&wanted)
        };
        self.change_firewall(work).await.map_err(Error::NotIsolated)?;
        self.applied = Some(policy);
        Ok(())
    }

    /// Runs a change of the firewall, after one that a cancelled call has begun.
    async fn change_firewall(
        &mut self,
        work: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<(), String> {
        let _ = self.finish_change().await;
        self.change = Some(tokio::task::spawn_blocking(work));
        self.finish_change().await
    }

    async fn finish_change(&mut self) -> Result<(), String> {
        let Some(change) = &mut self.change else { return Ok(()) };
        let done = change.await;
        self.change = None;
        done.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn bridge_name(&self) -> String {
        format!("pd-{}", self.id)
    }

    /// Chooses a subnet that this host does not use, and persists it.
    async fn choose_subnet(&mut self) -> std::io::Result<u32> {
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

/// Whether the subnet at `base` and another network have addresses in common.
fn overlap(base: u32, other: Ipv4Addr, prefix: u8) -> bool {
    let shorter = u32::from(PREFIX.min(prefix));
    let mask = u32::MAX.checked_shl(32 - shorter).unwrap_or(0);
    base & mask == u32::from(other) & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_networks_are_detected() {
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
