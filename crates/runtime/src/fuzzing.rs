//! Entry points of the fuzz targets: parsers of hostile input that are private otherwise.
//!
//! Nothing else may call them. The runtime parses images in a helper process, with a memory limit.

use std::io::Cursor;
use std::path::Path;

use oci_client::manifest::OciManifest;

use crate::Error;
use crate::image::archive::Files;
use crate::image::{describe, platform};
use crate::unpack::{self, Budget};

/// Applies a layer, compressed or not, to a directory, as far as the budget permits.
pub fn layer(into: &Path, blob: &[u8], max_bytes: u64, max_entries: u64) {
    let mut budget = Budget::new(max_bytes, max_entries);
    // The digest never matches; it is compared when everything is unpacked.
    let _ = unpack::fill(into, Cursor::new(blob.to_vec()), "", &mut budget);
}

/// Parses a manifest or an index. Returns the number of layers, or the digest of the variant for
/// this host.
pub fn manifest(document: &[u8], max_bytes: u64) -> Result<(usize, Option<String>), Error> {
    let invalid = |error: serde_json::Error| Error::BadImage(error.to_string());
    match serde_json::from_slice(document).map_err(invalid)? {
        OciManifest::Image(image) => {
            describe::check_size(max_bytes, &image)?;
            Ok((image.layers.len(), None))
        }
        OciManifest::ImageIndex(index) => Ok((0, Some(platform::choose(&index)?))),
    }
}

/// Parses an image configuration. Returns the chain ids of its layers.
pub fn config(document: &[u8], layers: usize) -> Result<Vec<String>, Error> {
    describe::describe("image", String::new(), document, layers).map(|(image, _)| image.layers)
}

/// Extracts an archive (`docker save` or OCI layout) to a directory. Returns the number of its
/// images, each described by its configuration.
pub fn archive(archive: &[u8], into: &Path, max_bytes: u64) -> Result<usize, Error> {
    let extracted = Files::extract(Cursor::new(archive.to_vec()), into, max_bytes);
    let images = extracted.map_err(|error| Error::BadImage(error.to_string()))?.images()?;
    for image in &images {
        let layers = image.layers.len();
        describe::describe("image", image.digest.clone(), &image.config, layers)?;
    }
    Ok(images.len())
}
