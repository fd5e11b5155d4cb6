//! One key of a key file, and its line there.

use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest, Sha256};

use super::Entropy;

const KEY_BYTES: usize = 32;
const ID_BYTES: usize = 4;

/// A key. Its id is derived from it, so that a damaged line is noticed. Not printable.
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

    /// Parses a line, or says what is wrong with it.
    pub(super) fn parse(line: &str) -> Result<Self, &'static str> {
        let (id, text) = line.split_once(' ').ok_or("is not an id and a key")?;
        let bytes = BASE64.decode(text.as_bytes()).map_err(|_| "has a key that is not base64")?;
        let key = Self(bytes.try_into().map_err(|_| "has a key that is not 32 bytes long")?);
        if key.id() == id { Ok(key) } else { Err("has an id that does not match its key") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_round_trips_and_damaged_line_is_rejected() {
        let key = Key([7; KEY_BYTES]);
        let line = key.line();
        assert!(Key::parse(line.trim_end()) == Ok(key));
        let swapped = line.trim_end().replacen("Bwc", "Bwd", 1);
        for (bad, why) in [
            ("", "is not an id and a key"),
            ("12345678 !", "has a key that is not base64"),
            ("12345678 Bwc=", "has a key that is not 32 bytes long"),
            (&swapped, "has an id that does not match its key"),
        ] {
            assert_eq!(Key::parse(bad).err(), Some(why), "{bad}");
        }
    }
}
