//! Images that are stored on this host.

pub(crate) mod archive;
pub(crate) mod describe;
mod download;
pub(crate) mod fetch;
pub(crate) mod load;
mod local;
mod pace;
pub(crate) mod platform;
mod registry;
pub(crate) mod repack;
pub(crate) mod store;

pub(crate) use local::is_local_reference;
pub use local::{is_local, local_name};
pub use oci_client::Reference;
use serde::{Deserialize, Serialize};

use crate::Error;

/// An unpacked image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Image {
    /// Its reference.
    pub(crate) name: String,
    /// Digest of its manifest; of its configuration if it was loaded without a manifest.
    pub(crate) digest: String,
    /// Chain ids of its layers, lowest first.
    pub(crate) layers: Vec<String>,
    /// Its default configuration.
    pub(crate) config: Config,
}

/// An OCI image configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImageConfig {
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) config: Option<Config>,
    pub(crate) rootfs: RootFs,
}

/// Digests of the uncompressed layers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RootFs {
    pub(crate) diff_ids: Vec<String>,
}

/// Default configuration of an image's containers. Registries write `null` for absent fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Config {
    pub(crate) user: Option<String>,
    pub(crate) env: Option<Vec<String>>,
    pub(crate) entrypoint: Option<Vec<String>>,
    pub(crate) cmd: Option<Vec<String>>,
    pub(crate) working_dir: Option<String>,
}

/// Parses an image reference.
pub fn reference(image: &str) -> Result<Reference, Error> {
    let invalid = |cause: String| Error::InvalidImageName { image: image.to_owned(), cause };
    image.parse().map_err(|error: oci_client::ParseError| invalid(error.to_string()))
}

/// The hexadecimal part of a digest. Anything else must not become a file name.
pub(crate) fn hex_of(digest: &str) -> Option<&str> {
    let hex = digest.strip_prefix("sha256:")?;
    let good = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    (hex.len() == 64 && hex.chars().all(good)).then_some(hex)
}

/// Chain ids of layers: each identifies a layer and all those below it.
pub(crate) fn chain_ids(diff_ids: &[String]) -> Option<Vec<String>> {
    let mut chains: Vec<String> = Vec::with_capacity(diff_ids.len());
    for diff_id in diff_ids {
        let hex = hex_of(diff_id)?;
        chains.push(match chains.last() {
            None => hex.to_owned(),
            Some(below) => super::dirs::sha256(format!("sha256:{below} {diff_id}").as_bytes()),
        });
    }
    Some(chains)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_that_could_be_paths_are_rejected() {
        let good = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(hex_of(&good), Some(&good[7..]));
        for bad in ["sha256:../../etc/passwd", "sha512:aa", "", &good.to_uppercase(), &good[..70]] {
            assert_eq!(hex_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn chain_ids_depend_on_the_layers_below() {
        let [a, b] = ["aa", "bb"].map(|x| format!("sha256:{}", x.repeat(32)));
        let ab = chain_ids(&[a.clone(), b.clone()]).unwrap();
        let ba = chain_ids(&[b, a.clone()]).unwrap();
        assert_eq!(ab[0], a[7..]);
        assert_ne!(ab[1], ba[1]);
    }
}
