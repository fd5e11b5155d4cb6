//! Gives this process a network namespace of its own and a cable to the bridge.
//!
//! Done by the shim: the container inherits the namespace, and both ends of the cable vanish with
//! the last process in it. Nothing is left behind, whoever is killed.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

use nix::sched::{CloneFlags, unshare};
use rtnetlink::{LinkUnspec, LinkVeth, RouteMessageBuilder};

use super::netlink::{index, up, with};
use crate::Error;
use crate::plan::Link;

/// The container's end of its cable, as the container sees it.
const INSIDE: &str = "eth0";

/// Attaches this process. It must have no other thread.
pub(crate) fn attach(link: &Link) -> Result<(), Error> {
    let failed = |error| Error::io("The container got no network", error);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(plug(link)).map_err(failed)
}

/// A namespace of one's own, with nothing but its loopback in it.
pub(crate) fn isolate() -> std::io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWNET)?)
}

async fn plug(link: &Link) -> std::io::Result<()> {
    let peer = format!("{}p", link.host_end);
    with(async |host| {
        // Left by a container that was killed a moment ago, its namespace not quite gone.
        if let Some(stale) = index(&host, &link.host_end).await? {
            host.link().del(stale).execute().await?;
        }
        let bridge = index(&host, &link.bridge).await?.ok_or(rtnetlink::Error::RequestFailed)?;
        host.link().add(LinkVeth::new(&link.host_end, &peer).build()).execute().await?;
        let ours = index(&host, &link.host_end).await?.ok_or(rtnetlink::Error::RequestFailed)?;
        let plugged = LinkUnspec::new_with_index(ours).controller(bridge).up().build();
        host.link().set(plugged).execute().await?;
        separate(&link.host_end);
        let theirs = index(&host, &peer).await?.ok_or(rtnetlink::Error::RequestFailed)?;
        isolate().map_err(|_| rtnetlink::Error::RequestFailed)?;
        let here = File::open("/proc/self/ns/net").map_err(|_| rtnetlink::Error::RequestFailed)?;
        let moved = LinkUnspec::new_with_index(theirs).setns_by_fd(here.as_raw_fd()).build();
        host.link().set(moved).execute().await
    })
    .await?;
    with(async |inside| {
        if let Some(loopback) = index(&inside, "lo").await? {
            up(&inside, loopback).await?;
        }
        let cable = index(&inside, &peer).await?.ok_or(rtnetlink::Error::RequestFailed)?;
        let named = LinkUnspec::new_with_index(cable).name(INSIDE.to_owned());
        let named = named.address(hardware_address(link.address)).build();
        inside.link().set(named).execute().await?;
        let address = IpAddr::V4(link.address);
        inside.address().add(cable, address, link.prefix).execute().await?;
        up(&inside, cable).await?;
        let route = RouteMessageBuilder::<Ipv4Addr>::new().gateway(link.gateway).build();
        inside.route().add(route).execute().await
    })
    .await
}

/// The same for every container that gets this address: the machine still remembers it from the one
/// before, and would send to nobody.
fn hardware_address(address: Ipv4Addr) -> Vec<u8> {
    let [a, b, c, d] = address.octets();
    vec![0x02, 0x70, a, b, c, d]
}

/// Containers talk with the machine, not with each other.
fn separate(host_end: &str) {
    let _ = std::fs::write(format!("/sys/class/net/{host_end}/brport/isolated"), "1");
}
