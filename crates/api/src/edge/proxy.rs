//! Client addresses of requests that come through trusted proxies.
//!
//! Every hop appends the address that it saw. Entries are read from the right, as long as the
//! address that reported them is trusted: whatever a client wrote itself is never reached.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::{HeaderMap, StatusCode, header};

use crate::Problem;

/// A network: an address and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Text that is not a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a network, such as 10.0.0.0/8, or an address")]
pub struct InvalidNetwork;

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork)?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(longest), str::parse).map_err(|_| InvalidNetwork)?;
        if prefix > longest { Err(InvalidNetwork) } else { Ok(Self { address, prefix }) }
    }
}

impl Network {
    /// Whether the network contains the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.prefix);
                let [own, other] = [own, other].map(|ip| u64::from(ip.to_bits()));
                own >> shift == other >> shift
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.prefix);
                let network = |bits: u128| bits.checked_shr(shift).unwrap_or_default();
                network(own.to_bits()) == network(other.to_bits())
            }
            _ => false,
        }
    }
}

/// Returns the client of a request that `peer` sent: the first address from the right that is not a
/// trusted proxy.
pub(super) fn client(
    peer: IpAddr,
    headers: &HeaderMap,
    trusted: &[Network],
) -> Result<IpAddr, Problem> {
    let peer = peer.to_canonical();
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    if !is_trusted(peer) {
        return Ok(peer);
    }
    let walk = |hops: Vec<Option<IpAddr>>| {
        let mut client = peer;
        for hop in hops.into_iter().rev() {
            match hop {
                Some(address) if is_trusted(client) => client = address,
                _ => break,
            }
        }
        client
    };
    let listed = |name| list(headers, name);
    match (listed("x-forwarded-for"), listed(header::FORWARDED.as_str())) {
        (None, None) => Ok(peer),
        (Some(plain), None) => Ok(walk(plain.iter().map(|text| address(text)).collect())),
        (None, Some(forwarded)) => {
            Ok(walk(forwarded.iter().map(|text| forwarded_for(text)).collect()))
        }
        // The proxy writes one of them and passes on the other as the client wrote it.
        (Some(_), Some(_)) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "The request has the headers X-Forwarded-For and Forwarded; the proxy must send one and \
             remove the other.",
        )),
    }
}

/// Elements of a header that may be repeated; `None` if it is missing.
fn list(headers: &HeaderMap, name: &str) -> Option<Vec<String>> {
    let values = headers.get_all(name).iter();
    let texts = values.map(|value| value.to_str().unwrap_or_default());
    let elements: Vec<String> =
        texts.flat_map(|text| text.split(',')).map(|text| text.trim().to_owned()).collect();
    (!elements.is_empty()).then_some(elements)
}

/// The address of an element of `Forwarded`, such as `for="[2001:db8::1]:80";proto=https`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let is_for = |pair: &&str| pair.trim().get(..4).is_some_and(|k| k.eq_ignore_ascii_case("for="));
    let pair = element.split(';').find(is_for)?;
    address(pair.trim()[4..].trim_matches('"'))
}

/// An address, perhaps in brackets and with a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None if text.matches(':').count() == 1 => text.split_once(':')?.0,
        None => text,
    };
    bare.parse().ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn client_of(peer: &str, headers: &[(&'static str, &'static str)]) -> Option<String> {
        let trusted: Vec<Network> =
            ["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().unwrap()).into();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let client = client(peer.parse().unwrap(), &map, &trusted);
        client.ok().map(|address| address.to_string())
    }

    #[test]
    fn client_is_the_last_address_that_no_trusted_proxy_has() {
        let xff = "x-forwarded-for";
        for (peer, headers, client) in [
            ("127.0.0.1", &[][..], "127.0.0.1"),
            ("127.0.0.1", &[(xff, "192.0.2.1")], "192.0.2.1"),
            ("::ffff:127.0.0.1", &[(xff, "192.0.2.1:4711")], "192.0.2.1"),
            // An untrusted peer writes what it likes.
            ("192.0.2.9", &[(xff, "192.0.2.1")], "192.0.2.9"),
            // The client's own entries are on the left.
            ("127.0.0.1", &[(xff, "127.0.0.1, 8.8.8.8, 192.0.2.1, 10.0.0.7")], "192.0.2.1"),
            ("127.0.0.1", &[(xff, "8.8.8.8"), (xff, "192.0.2.1")], "192.0.2.1"),
            ("127.0.0.1", &[(xff, "8.8.8.8, unknown")], "127.0.0.1"),
            ("127.0.0.1", &[(xff, "")], "127.0.0.1"),
            (
                "127.0.0.1",
                &[("forwarded", "for=8.8.8.8, For=\"[2001:db9::1]:80\";proto=https")],
                "2001:db9::1",
            ),
            ("127.0.0.1", &[("forwarded", "proto=https")], "127.0.0.1"),
            ("2001:db8::5", &[("forwarded", "for=192.0.2.1:80")], "192.0.2.1"),
        ] {
            assert_eq!(client_of(peer, headers).as_deref(), Some(client), "{peer} {headers:?}");
        }
        assert_eq!(
            client_of("127.0.0.1", &[(xff, "192.0.2.1"), ("forwarded", "for=8.8.8.8")]),
            None
        );
    }

    #[test]
    fn network_contains_its_addresses() {
        for (network, address, is_inside) in [
            ("0.0.0.0/0", "192.0.2.1", true),
            ("192.0.2.0/24", "192.0.2.255", true),
            ("192.0.2.0/24", "192.0.3.0", false),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "192.0.2.1", false),
            ("2001:db8::/33", "2001:db8:8000::", false),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(
                network.contains(address.parse().unwrap()),
                is_inside,
                "{network:?} {address}"
            );
        }
        for text in ["", "a", "1.2.3.4/33", "::/129", "1.2.3.4/", "1.2.3.4/-1"] {
            assert_eq!(text.parse::<Network>(), Err(InvalidNetwork), "{text}");
        }
    }
}
