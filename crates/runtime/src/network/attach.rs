//! Moves this process into a new network namespace and connects that to the bridge.
//!
//! Called by the shim: the container inherits the namespace, and the veth pair vanishes with its
//! last process. Nothing remains, even if the shim is killed.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

use nix::sched::{CloneFlags, unshare};
use rtnetlink::{LinkBridgePort, LinkUnspec, LinkVeth, RouteMessageBuilder};

use super::netlink::{disable_ipv6, index, mac_address, up, with_connection};
use crate::Error;
use crate::plan::Link;
use crate::userns::Namespaces;

/// Name of the veth end inside the container.
const CONTAINER_END: &str = "eth0";

/// Attaches this process, which must be single-threaded. Its network namespace is one of these, or
/// a new one.
pub(crate) fn attach(link: &Link, namespaces: Option<&Namespaces>) -> Result<(), Error> {
    let failed = |error| Error::io("Attaching the container to the network failed", error);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(connect(link, namespaces)).map_err(failed)
}

/// Moves this process into a new network namespace, which has only a loopback.
pub(crate) fn new_network_namespace() -> std::io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWNET)?)
}

async fn connect(link: &Link, namespaces: Option<&Namespaces>) -> std::io::Result<()> {
    let peer = format!("{}p", link.host_end);
    with_connection(async |host| {
        // Left by a container that was just killed, its namespace not yet removed.
        if let Some(stale) = index(&host, &link.host_end).await? {
            host.link().del(stale).execute().await?;
        }
        let bridge = index(&host, &link.bridge).await?.ok_or(rtnetlink::Error::RequestFailed)?;
        host.link().add(LinkVeth::new(&link.host_end, &peer).build()).execute().await?;
        let ours = index(&host, &link.host_end).await?.ok_or(rtnetlink::Error::RequestFailed)?;
        let attached = LinkUnspec::new_with_index(ours).controller(bridge).build();
        host.link().set(attached).execute().await?;
        // Isolated ports reach the host, not each other.
        let isolated = LinkBridgePort::new(ours).isolated(true).build();
        host.link().set_port(isolated).execute().await?;
        up(&host, ours).await?;
        let theirs = index(&host, &peer).await?.ok_or(rtnetlink::Error::RequestFailed)?;
        let entered = namespaces.map_or_else(new_network_namespace, Namespaces::enter_network);
        entered.map_err(|_| rtnetlink::Error::RequestFailed)?;
        let here = File::open("/proc/self/ns/net").map_err(|_| rtnetlink::Error::RequestFailed)?;
        let moved = LinkUnspec::new_with_index(theirs).setns_by_fd(here.as_raw_fd()).build();
        host.link().set(moved).execute().await
    })
    .await?;
    disable_ipv6(&peer)?;
    with_connection(async |inside| {
        if let Some(loopback) = index(&inside, "lo").await? {
            up(&inside, loopback).await?;
        }
        let veth = index(&inside, &peer).await?.ok_or(rtnetlink::Error::RequestFailed)?;
        let named = LinkUnspec::new_with_index(veth).name(CONTAINER_END.to_owned());
        let named = named.address(mac_address(link.address)).build();
        inside.link().set(named).execute().await?;
        let address = IpAddr::V4(link.address);
        inside.address().add(veth, address, link.prefix).execute().await?;
        up(&inside, veth).await?;
        let route = RouteMessageBuilder::<Ipv4Addr>::new().gateway(link.gateway).build();
        inside.route().add(route).execute().await
    })
    .await
}
