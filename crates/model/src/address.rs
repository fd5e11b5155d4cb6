//! Addresses to which the server connects on behalf of users: their classes, and which of them are
//! permitted (SSRF protection). Pure.
//!
//! A user could name an address that only the server reaches: another program on its machine, a
//! private network, or a cloud's metadata service with its credentials.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Metadata and configuration services of clouds outside the link-local ranges.
const METADATA: [IpAddr; 3] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
];

/// What an address reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The internet.
    Public,
    /// The server's machine, also by the unspecified address.
    Loopback,
    /// A private, shared or reserved network.
    Private,
    /// The link, where clouds put their metadata services.
    LinkLocal,
    /// A cloud's metadata service outside the link-local ranges.
    Metadata,
    /// Several machines. Never permitted.
    Multicast,
}

impl Class {
    /// The class of an address. An IPv6 address that embeds an IPv4 address has the class of that.
    pub fn of(ip: IpAddr) -> Self {
        let ip = canonical(ip);
        if METADATA.contains(&ip) {
            return Class::Metadata;
        }
        match ip {
            IpAddr::V4(four) => Self::of_v4(four),
            IpAddr::V6(six) => Self::of_v6(six),
        }
    }

    fn of_v4(ip: Ipv4Addr) -> Self {
        let [a, b, c, _] = ip.octets();
        match (a, b, c) {
            _ if ip.is_broadcast() || ip.is_multicast() => Class::Multicast,
            _ if ip.is_link_local() => Class::LinkLocal,
            // The unspecified address reaches this machine.
            (0 | 127, ..) => Class::Loopback,
            // Carrier-grade NAT, protocol assignments, benchmarks, reserved.
            (100, 64..128, _) | (192, 0, 0) | (198, 18 | 19, _) | (240.., ..) => Class::Private,
            _ if ip.is_private() => Class::Private,
            _ => Class::Public,
        }
    }

    fn of_v6(ip: Ipv6Addr) -> Self {
        match ip.segments() {
            _ if ip.is_multicast() => Class::Multicast,
            _ if ip.is_unicast_link_local() => Class::LinkLocal,
            _ if ip.is_loopback() || ip.is_unspecified() => Class::Loopback,
            _ if ip.is_unique_local() => Class::Private,
            // Site-local; local NAT64 and Teredo, whose IPv4 address can't be told.
            [0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..] | [0x2001, 0, ..] => Class::Private,
            _ => Class::Public,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Class::Public => "a public address",
            Class::Loopback => "a loopback address",
            Class::Private => "a private address",
            Class::LinkLocal => "a link-local address",
            Class::Metadata => "a cloud's metadata address",
            Class::Multicast => "a multicast address",
        }
    }
}

/// The IPv4 address that an IPv6 address embeds (mapped, compatible, NAT64, 6to4), else itself.
fn canonical(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = ip.to_canonical() else { return ip.to_canonical() };
    let four = |a: u16, b: u16| Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b)).into();
    match six.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => four(a, b),
        [0, 0, 0, 0, 0, 0, a, b] if (a, b) > (0, 1) => four(a, b),
        _ => ip,
    }
}

/// A network in CIDR notation, such as `10.20.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    first: IpAddr,
    last: IpAddr,
    prefix: u8,
}

impl Network {
    /// Whether the network contains the address.
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.first.is_ipv4() == ip.is_ipv4() && self.first <= ip && ip <= self.last
    }

    /// Whether all of its addresses have this class.
    fn is_within(&self, class: Class) -> bool {
        Class::of(self.first) == class && Class::of(self.last) == class
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let (address, prefix) = match text.split_once('/') {
                Some((address, prefix)) => (address, Some(prefix.parse().ok()?)),
                None => (text, None),
            };
            match address.parse().ok()? {
                IpAddr::V4(four) => {
                    let prefix: u8 = prefix.unwrap_or(32);
                    let host = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
                    let (first, last) = (four.to_bits() & !host, four.to_bits() | host);
                    let ip = |bits| IpAddr::V4(Ipv4Addr::from_bits(bits));
                    (prefix <= 32).then(|| Self { first: ip(first), last: ip(last), prefix })
                }
                IpAddr::V6(six) => {
                    let prefix: u8 = prefix.unwrap_or(128);
                    let host = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
                    let (first, last) = (six.to_bits() & !host, six.to_bits() | host);
                    let ip = |bits| IpAddr::V6(Ipv6Addr::from_bits(bits));
                    (prefix <= 128).then(|| Self { first: ip(first), last: ip(last), prefix })
                }
            }
        };
        parsed().ok_or_else(|| {
            format!("{text:?} is not an address or a network, such as 10.20.0.7 or 10.20.0.0/16")
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

/// Which addresses are permitted; by default public ones only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Whether loopback and private addresses are permitted.
    pub allows_private: bool,
    /// Networks that are permitted as well. Link-local and metadata addresses are permitted only by
    /// a network that contains no others: `0.0.0.0/0` does not expose credentials.
    pub allowed: Vec<Network>,
}

impl Policy {
    /// Checks an address.
    pub fn check(&self, ip: IpAddr) -> Result<(), Class> {
        let (class, inner) = (Class::of(ip), canonical(ip));
        let mut matching =
            self.allowed.iter().filter(|network| network.contains(inner) || network.contains(ip));
        let is_permitted = match class {
            Class::Public => true,
            Class::Loopback | Class::Private => self.allows_private || matching.next().is_some(),
            Class::LinkLocal | Class::Metadata => matching.any(|network| network.is_within(class)),
            Class::Multicast => false,
        };
        if is_permitted { Ok(()) } else { Err(class) }
    }

    /// Checks a host that is an address; names are checked when they are resolved.
    pub fn check_literal(&self, host: &str) -> Result<(), Refused> {
        match host.trim_matches(['[', ']']).parse() {
            Ok(ip) => self.check(ip).map_err(|class| Refused::literal(host, class)),
            Err(_) => Ok(()),
        }
    }

    /// The same policy for a system that the server's settings name.
    pub fn for_named(&self) -> Self {
        Self { allows_private: true, ..self.clone() }
    }
}

/// A host to which the server does not connect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    host: String,
    class: Class,
    is_literal: bool,
}

impl Refused {
    fn literal(host: &str, class: Class) -> Self {
        Self { host: host.to_owned(), class, is_literal: true }
    }

    /// A name all of whose addresses are refused. The address is not shown: names of private
    /// networks are not public.
    pub fn name(host: &str, class: Class) -> Self {
        Self { host: host.to_owned(), class, is_literal: false }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, class, is_literal } = self;
        let verb = if *is_literal { "is" } else { "resolves to" };
        write!(f, "{host} is not permitted: it {verb} {}", class.describe())?;
        match class {
            Class::Multicast => Ok(()),
            _ => {
                f.write_str(". The platform administrator can permit it (setting `allow_address`)")
            }
        }
    }
}

#[cfg(test)]
mod tests;
