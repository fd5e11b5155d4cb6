//! One key of a key file, and how it is written there.

use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest, Sha256};

use super::Entropy;

const KEY_BYTES: usize = 32;
const ID_BYTES: usize = 4;

/// A key; its id is made from it, so that a damaged line does not go unnoticed. It can't be printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key([u8; KEY_BYTES]);

impl Key {
    pub(super) fn random(entropy: &Entropy) -> Self {
        let mut bytes = [0; KEY_BYTES];
        entropy(&mut bytes);
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> [u8; KEY_BYTES] {
        self.0
    }

    pub(super) fn id(&self) -> String {
        let hash = Sha256::new_with_prefix("paddock key id").chain_update(self.0).finalize();
        HEXLOWER.encode(&hash[..ID_BYTES])
    }

    /// The line of this key.
    pub(super) fn line(&self) -> String {
        format!("{} {}\n", self.id(), BASE64.encode(&self.0))
    }

    /// The key of a line, or what is wrong with it.
    pub(super) fn parse(line: &str) -> Result<Self, &'static str> {
        let (id, text) = line.split_once(' ').ok_or("is not an id and a key")?;
        let bytes = BASE64.decode(text.as_bytes()).map_err(|_| "has a key that is no base64")?;
        let key = Self(bytes.try_into().map_err(|_| "has a key that is not of 32 bytes")?);
        if key.id() == id {
            Ok(key)
        } else {
            Err("has an id and a key that are not of one another")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_and_a_damaged_one_does_not() {
        let key = Key([7; KEY_BYTES]);
        let line = key.line();
        assert!(Key::parse(line.trim_end()) == Ok(key));
        let swapped = line.trim_end().replacen("Bwc", "Bwd", 1);
        for (bad, why) in [
            ("", "is not an id and a key"),
            ("12345678 !", "has a key that is no base64"),
            ("12345678 Bwc=", "has a key that is not of 32 bytes"),
            (&swapped, "has an id and a key that are not of one another"),
        ] {
            assert_eq!(Key::parse(bad).err(), Some(why), "{bad}");
        }
    }
}
