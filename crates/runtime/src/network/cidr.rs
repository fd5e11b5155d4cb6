//! IPv4 networks in CIDR notation.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// An IPv4 network, such as `10.20.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: Ipv4Addr,
    prefix: u8,
}

impl Cidr {
    /// The network of this prefix length that contains the address; none if it is above 32.
    pub fn new(address: Ipv4Addr, prefix: u8) -> Option<Self> {
        let mask = match prefix {
            0 => 0,
            1..=32 => u32::MAX << (32 - prefix),
            _ => return None,
        };
        Some(Self { address: Ipv4Addr::from_bits(address.to_bits() & mask), prefix })
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = text.split_once('/').unwrap_or((text, "32"));
        let network = address.parse().ok().zip(prefix.parse().ok());
        network
            .and_then(|(address, prefix)| Self::new(address, prefix))
            .ok_or_else(|| format!("{text:?} is not an IPv4 network, such as 10.20.0.0/16"))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_parsed_and_normalised() {
        for (text, expected) in [
            ("10.1.2.3/8", Ok("10.0.0.0/8")),
            ("10.1.2.3", Ok("10.1.2.3/32")),
            ("1.2.3.4/0", Ok("0.0.0.0/0")),
            ("10.0.0.0/33", Err(())),
            ("fd00::/8", Err(())),
            ("10.0.0.0/8; accept", Err(())),
            ("", Err(())),
        ] {
            let parsed = text.parse::<Cidr>().map(|cidr| cidr.to_string()).map_err(|_| ());
            assert_eq!(parsed, expected.map(str::to_owned), "{text}");
        }
    }
}
