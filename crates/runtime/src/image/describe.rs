//! Descriptions of images: what a confined process has read from a manifest and a configuration.

use oci_client::manifest::OciImageManifest;
use serde::{Deserialize, Serialize};

use super::{Config, Image, ImageConfig, chain_ids, hex_of, platform};
use crate::{Error, message};

/// Maximum number of layers: overlay options must fit into a page.
pub(super) const MAX_LAYERS: usize = 128;

/// An image, as a confined process describes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) digest: String,
    pub(super) config: Config,
    pub(super) layers: Vec<Layer>,
}

/// A layer of an image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Layer {
    pub(super) diff_id: String,
    /// Name of its file.
    pub(super) blob: String,
}

/// An image whose description was checked.
pub(super) struct Described {
    pub(super) image: Image,
    pub(super) layers: Vec<Layer>,
}

impl Description {
    /// Describes an image by its configuration and the files of its layers.
    pub(super) fn new(digest: String, config: &[u8], blobs: Vec<String>) -> Result<Self, Error> {
        let (image, diff_ids) = describe("", digest, config, blobs.len())?;
        let layers = diff_ids.into_iter().zip(blobs);
        let layers = layers.map(|(diff_id, blob)| Layer { diff_id, blob }).collect();
        Ok(Self { digest: image.digest, config: image.config, layers })
    }

    /// Checks everything that becomes a path: the process may have been taken over.
    pub(super) fn check(self, name: &str) -> Result<Described, Error> {
        let Self { digest, config, layers } = self;
        let is_name = |blob: &str| {
            (1..=64).contains(&blob.len()) && blob.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let diff_ids: Vec<_> = layers.iter().map(|layer| layer.diff_id.clone()).collect();
        let is_valid = hex_of(&digest).is_some()
            && layers.len() <= MAX_LAYERS
            && layers.iter().all(|layer| is_name(&layer.blob));
        let chains = chain_ids(&diff_ids).filter(|_| is_valid);
        let chains = chains.ok_or_else(|| invalid("its description is malformed"))?;
        let image = Image { name: name.to_owned(), digest, layers: chains, config };
        Ok(Described { image, layers })
    }
}

fn invalid(why: &str) -> Error {
    Error::BadImage(format!("image is invalid: {why}"))
}

pub(crate) fn check_size(max_bytes: u64, manifest: &OciImageManifest) -> Result<(), Error> {
    let count = manifest.layers.len();
    if count > MAX_LAYERS {
        return Err(Error::ImageTooLarge(format!(
            "image has {count} layers, maximum is {MAX_LAYERS}"
        )));
    }
    let sum = manifest.layers.iter().try_fold(0u64, |sum, layer| {
        u64::try_from(layer.size).ok().and_then(|size| sum.checked_add(size))
    });
    match sum {
        Some(sum) if sum <= max_bytes => Ok(()),
        _ => Err(Error::ImageTooLarge(format!(
            "image exceeds the maximum image size of {}",
            message::bytes(i64::try_from(max_bytes).unwrap_or(i64::MAX))
        ))),
    }
}

pub(crate) fn describe(
    name: &str,
    digest: String,
    config: &[u8],
    layers: usize,
) -> Result<(Image, Vec<String>), Error> {
    let config: ImageConfig = serde_json::from_slice(config)
        .map_err(|error| invalid(&format!("{error} in its configuration")))?;
    platform::check(&config.os, &config.architecture)?;
    let diff_ids = config.rootfs.diff_ids;
    let chains = chain_ids(&diff_ids).filter(|chains| chains.len() == layers);
    let layers = chains.ok_or_else(|| invalid("its configuration does not match its layers"))?;
    let config = config.config.unwrap_or_default();
    Ok((Image { name: name.to_owned(), digest, layers, config }, diff_ids))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_that_could_lead_to_other_files_are_rejected() {
        let hex = "0a".repeat(32);
        let digest = format!("sha256:{hex}");
        let layer = |diff_id: &str, blob: &str| Layer {
            diff_id: diff_id.to_owned(),
            blob: blob.to_owned(),
        };
        let check = |digest: &str, layers: Vec<Layer>| {
            let config = Config::default();
            Description { digest: digest.to_owned(), config, layers }.check("web:1").is_ok()
        };
        assert!(check(&digest, vec![layer(&digest, &hex), layer(&digest, "7")]));
        assert!(!check("sha256:../../x", vec![]));
        for bad in [layer("sha256:../x", &hex), layer(&digest, "../x"), layer(&digest, "")] {
            assert!(!check(&digest, vec![bad.clone()]), "{bad:?}");
        }
        assert!(!check(&digest, vec![layer(&digest, &hex); MAX_LAYERS + 1]));
    }
}
