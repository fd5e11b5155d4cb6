//! Links and addresses, through netlink and sysctls: no external program is needed.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;

use futures_util::TryStreamExt;
use futures_util::future::{Either, select};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::{Handle, LinkBridge, LinkUnspec, new_connection};

/// Runs a function with a netlink connection, in the network namespace of this thread.
pub(super) async fn with_connection<T>(
    work: impl AsyncFnOnce(Handle) -> Result<T, rtnetlink::Error>,
) -> io::Result<T> {
    let (connection, handle, _) = new_connection()?;
    match select(pin!(connection), pin!(work(handle))).await {
        Either::Left(_) => Err(io::Error::other("netlink connection closed")),
        Either::Right((done, _)) => done.map_err(|error| match error {
            rtnetlink::Error::NetlinkError(error) => error.to_io(),
            error => io::Error::other(error),
        }),
    }
}

/// Index of a link; none if it does not exist.
pub(super) async fn index(handle: &Handle, name: &str) -> Result<Option<u32>, rtnetlink::Error> {
    let found = handle.link().get().match_name(name.to_owned()).execute().try_next().await;
    match found {
        Ok(link) => Ok(link.map(|link| link.header.index)),
        Err(rtnetlink::Error::NetlinkError(error))
            if error.to_io().raw_os_error() == Some(libc::ENODEV) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Derives a MAC address from an IP address: ARP caches stay valid when another container gets the
/// same IP address.
pub(super) fn mac_address(address: Ipv4Addr) -> Vec<u8> {
    let [a, b, c, d] = address.octets();
    vec![0x02, 0x70, a, b, c, d]
}

/// Creates a bridge with an address and without IPv6, or what is missing of it.
///
/// Without a MAC address of its own, it takes the lowest of its ports: a new container could change
/// it, and the others would send to the old one until their ARP entries expire.
pub(super) async fn ensure_bridge(name: &str, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
    with_connection(async |handle| {
        let mac = mac_address(address);
        match index(&handle, name).await? {
            None => handle.link().add(LinkBridge::new(name).address(mac).build()).execute().await,
            // Older versions created it without one.
            Some(index) => {
                let fixed = LinkUnspec::new_with_index(index).address(mac).build();
                handle.link().set(fixed).execute().await
            }
        }
    })
    .await?;
    disable_ipv6(name)?;
    with_connection(async |handle| {
        let index = index(&handle, name).await?.ok_or(rtnetlink::Error::RequestFailed)?;
        handle.address().add(index, IpAddr::V4(address), prefix).replace().execute().await?;
        up(&handle, index).await
    })
    .await
}

/// Disables IPv6 on a link of this network namespace: the network policy is for IPv4.
pub(super) fn disable_ipv6(name: &str) -> io::Result<()> {
    match std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1") {
        // The kernel, or this link, has no IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Deletes a link. A missing link is not an error.
pub(super) async fn remove(name: &str) -> io::Result<()> {
    with_connection(async |handle| match index(&handle, name).await? {
        Some(index) => handle.link().del(index).execute().await,
        None => Ok(()),
    })
    .await
}

/// Sets a link down. A missing link is not an error.
pub(super) async fn set_down(name: &str) -> io::Result<()> {
    with_connection(async |handle| match index(&handle, name).await? {
        Some(index) => {
            let down = LinkUnspec::new_with_index(index).down().build();
            handle.link().set(down).execute().await
        }
        None => Ok(()),
    })
    .await
}

/// Sets a link up.
pub(super) async fn up(handle: &Handle, index: u32) -> Result<(), rtnetlink::Error> {
    handle.link().set(LinkUnspec::new_with_index(index).up().build()).execute().await
}

/// The IPv4 networks of this host.
pub(super) async fn addresses() -> io::Result<Vec<(Ipv4Addr, u8)>> {
    with_connection(async |handle| {
        let mut all = Vec::new();
        let mut messages = handle.address().get().execute();
        while let Some(message) = messages.try_next().await? {
            if message.header.family != AddressFamily::Inet {
                continue;
            }
            for attribute in message.attributes {
                if let AddressAttribute::Address(IpAddr::V4(address)) = attribute {
                    all.push((address, message.header.prefix_len));
                }
            }
        }
        Ok(all)
    })
    .await
}
