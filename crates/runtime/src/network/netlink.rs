//! Links and addresses, through the kernel's own protocol: no program is needed for it.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;

use futures_util::TryStreamExt;
use futures_util::future::{Either, select};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::{Handle, LinkBridge, LinkUnspec, new_connection};

/// Does something with a connection to the kernel, in the network namespace of this thread.
pub(super) async fn with<T>(
    work: impl AsyncFnOnce(Handle) -> Result<T, rtnetlink::Error>,
) -> io::Result<T> {
    let (connection, handle, _) = new_connection()?;
    match select(pin!(connection), pin!(work(handle))).await {
        Either::Left(_) => Err(io::Error::other("the kernel closed the connection")),
        Either::Right((done, _)) => done.map_err(|error| match error {
            rtnetlink::Error::NetlinkError(error) => error.to_io(),
            error => io::Error::other(error),
        }),
    }
}

/// The number of a link; none when there is no such link.
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

/// Makes a bridge with an address, or what is missing of it.
pub(super) async fn bridge(name: &str, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
    with(async |handle| {
        if index(&handle, name).await?.is_none() {
            handle.link().add(LinkBridge::new(name).build()).execute().await?;
        }
        let index = index(&handle, name).await?.ok_or(rtnetlink::Error::RequestFailed)?;
        handle.address().add(index, IpAddr::V4(address), prefix).replace().execute().await?;
        up(&handle, index).await
    })
    .await
}

/// Removes a link. None there is fine.
pub(super) async fn remove(name: &str) -> io::Result<()> {
    with(async |handle| match index(&handle, name).await? {
        Some(index) => handle.link().del(index).execute().await,
        None => Ok(()),
    })
    .await
}

/// Makes a link known by its number be up.
pub(super) async fn up(handle: &Handle, index: u32) -> Result<(), rtnetlink::Error> {
    handle.link().set(LinkUnspec::new_with_index(index).up().build()).execute().await
}

/// The networks that this machine is in.
pub(super) async fn addresses() -> io::Result<Vec<(Ipv4Addr, u8)>> {
    with(async |handle| {
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
