//! Which IP addresses are permitted. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Options;

/// Metadata and configuration services of clouds outside the link-local ranges.
const METADATA: [IpAddr; 3] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
];

/// An address that is not permitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Forbidden {
    /// On no server.
    #[error("{0} is not permitted: it is a link-local, multicast or cloud metadata address")]
    Never(IpAddr),
    /// Not on this server.
    #[error(
        "{0} is not permitted: it is a private address, and this server calls public ones only"
    )]
    Private(IpAddr),
}

/// Checks whether an address is permitted.
pub(super) fn check(options: Options, ip: IpAddr) -> Result<(), Forbidden> {
    let inner = embedded_v4(ip);
    if is_never(inner) {
        return Err(Forbidden::Never(ip));
    }
    if !options.allow_private && is_private(inner) {
        return Err(Forbidden::Private(ip));
    }
    Ok(())
}

/// The IPv4 address that an IPv6 address embeds, if it does.
fn embedded_v4(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = ip.to_canonical() else { return ip.to_canonical() };
    match six.segments() {
        // NAT64, or an IPv4-compatible address; 6to4 below.
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0, 0, 0, 0, 0, 0, a, b] if (a, b) > (0, 1) => {
            Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b)).into()
        }
        [0x2002, a, b, ..] => Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b)).into(),
        _ => ip,
    }
}

fn is_never(ip: IpAddr) -> bool {
    let is_special = match ip {
        IpAddr::V4(four) => four.is_link_local() || four.is_broadcast(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    is_special || ip.is_multicast() || METADATA.contains(&ip)
}

fn is_private(ip: IpAddr) -> bool {
    let is_special = match ip {
        IpAddr::V4(four) => {
            let [a, b, ..] = four.octets();
            // "This network", and carrier-grade NAT.
            four.is_private() || a == 0 || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(six) => six.is_unique_local(),
    };
    // The unspecified address reaches this machine.
    is_special || ip.is_loopback() || ip.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_permitted_addresses_pass() {
        let checked =
            |text: &str, allow_private| check(Options { allow_private }, text.parse().unwrap());
        for never in [
            "169.254.169.254",
            "169.254.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "::a9fe:a9fe",
            "fe80::1",
            "fd00:ec2::254",
            "100.100.100.200",
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "255.255.255.255",
            "224.0.0.1",
            "ff02::1",
        ] {
            assert!(matches!(checked(never, true), Err(Forbidden::Never(_))), "{never}");
            assert!(matches!(checked(never, false), Err(Forbidden::Never(_))), "{never}");
        }
        for private in [
            "127.0.0.1",
            "127.9.9.9",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "0.0.0.0",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "fd12::1",
        ] {
            assert_eq!(checked(private, true), Ok(()), "{private}");
            assert!(matches!(checked(private, false), Err(Forbidden::Private(_))), "{private}");
        }
        for public in
            ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808"]
        {
            assert_eq!(checked(public, false), Ok(()), "{public}");
        }
    }
}
