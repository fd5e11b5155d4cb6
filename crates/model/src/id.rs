//! Ids: 12 bytes, ordered by time, written as 20 characters that are safe in URLs, host names and
//! Kubernetes names (the xid format).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
const TEXT_LEN: usize = 20;

/// Twelve bytes: seconds, five bytes that identify the generator, and a counter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid([u8; 12]);

/// The text is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an id: 20 characters from 0-9 and a-v")]
pub struct InvalidId;

impl Xid {
    /// Composes an id. Ids of one `maker` sort by `seconds`, then by `counter`.
    pub fn new(seconds: u32, maker: [u8; 5], counter: u32) -> Self {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4..9].copy_from_slice(&maker);
        bytes[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
        Self(bytes)
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; TEXT_LEN];
        for (i, slot) in text.iter_mut().enumerate() {
            *slot = ALPHABET[usize::from(five_bits(&self.0, i * 5))];
        }
        f.write_str(std::str::from_utf8(&text).expect("the alphabet is ASCII"))
    }
}

/// Five bits of `bytes` from bit `at` on; zero past the end.
fn five_bits(bytes: &[u8; 12], at: usize) -> u8 {
    let high = u16::from(bytes[at / 8]) << 8;
    let low = u16::from(bytes.get(at / 8 + 1).copied().unwrap_or(0));
    u8::try_from((high | low) >> (11 - at % 8) & 0x1f).expect("five bits fit")
}

impl fmt::Debug for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Xid {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if text.len() != TEXT_LEN {
            return Err(InvalidId);
        }
        let mut bits: u128 = 0;
        for c in text.bytes() {
            let digit = match c {
                b'0'..=b'9' => c - b'0',
                b'a'..=b'v' => c - b'a' + 10,
                _ => return Err(InvalidId),
            };
            bits = bits << 5 | u128::from(digit);
        }
        // 20 characters hold 100 bits, an id has 96: one spelling per id, so the rest must be zero.
        if bits & 0xf != 0 {
            return Err(InvalidId);
        }
        let mut bytes = [0; 12];
        bytes.copy_from_slice(&(bits >> 4).to_be_bytes()[4..]);
        Ok(Self(bytes))
    }
}

impl Serialize for Xid {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Xid {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Xid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.parse().map(Self)
            }
        }

        impl From<Xid> for $name {
            fn from(id: Xid) -> Self {
                Self(id)
            }
        }
    )*};
}

ids! {
    /// Id of an organization.
    OrganizationId;
    /// Id of a user.
    UserId;
    /// Id of an invite (not its code).
    InviteId;
    /// Id of a token (not its secret).
    TokenId;
    /// Id of a cluster.
    ClusterId;
    /// Id of a deployment.
    DeploymentId;
    /// Id of an instance.
    InstanceId;
    /// Id of one version of a template.
    TemplateId;
    /// Id of an environment.
    EnvironmentId;
    /// Id of a resource of an environment.
    ResourceId;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_round_trips(seconds: u32, maker: [u8; 5], counter in 0u32..1 << 24) {
            let id = Xid::new(seconds, maker, counter);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn text_sorts_like_bytes(a: (u32, [u8; 5], u32), b: (u32, [u8; 5], u32)) {
            let (a, b) = (Xid::new(a.0, a.1, a.2), Xid::new(b.0, b.1, b.2));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }

        #[test]
        fn every_id_has_one_spelling(text in "[0-9a-v]{20}") {
            if let Ok(id) = text.parse::<Xid>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn text_matches_the_xid_specification() {
        // The example of the xid specification.
        let bytes = [0x4d, 0x88, 0xe1, 0x5b, 0x60, 0xf4, 0x86, 0xe4, 0x28, 0x41, 0x2d, 0xc9];
        assert_eq!(Xid(bytes).to_string(), "9m4e2mr0ui3e8a215n4g");
    }

    #[test]
    fn invalid_text_is_refused() {
        for text in ["", "1", "9m4e2mr0ui3e8a215n4", "9M4E2MR0UI3E8A215N4G", "9m4e2mr0ui3e8a215n4z"]
        {
            assert_eq!(text.parse::<Xid>(), Err(InvalidId), "{text}");
        }
    }
}
