//! Selects the variant of an image for this host's platform.

use oci_client::manifest::{ImageIndexEntry, OciImageIndex};

use crate::Error;

/// Platform of this host, in OCI terms.
pub(crate) fn host() -> (&'static str, &'static str) {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    };
    ("linux", architecture)
}

/// Checks that an image for `os` and `architecture` runs on this host.
pub(super) fn check(os: &str, architecture: &str) -> Result<(), Error> {
    let (our_os, ours) = host();
    if (os.is_empty() || os == our_os) && (architecture.is_empty() || architecture == ours) {
        return Ok(());
    }
    Err(Error::WrongPlatform(format!(
        "image is for {os}/{architecture}, this host is {our_os}/{ours}"
    )))
}

/// Digest of the variant for this host.
pub(crate) fn choose(index: &OciImageIndex) -> Result<String, Error> {
    let (os, architecture) = host();
    let fits = |entry: &&ImageIndexEntry| {
        entry.platform.as_ref().is_some_and(|platform| {
            platform.os.to_string() == os && platform.architecture.to_string() == architecture
        })
    };
    if let Some(entry) = index.manifests.iter().find(fits) {
        return Ok(entry.digest.clone());
    }
    let mut offered: Vec<String> = index
        .manifests
        .iter()
        .filter_map(|entry| entry.platform.as_ref())
        .map(|platform| format!("{}/{}", platform.os, platform.architecture))
        .take(8)
        .collect();
    offered.dedup();
    Err(Error::WrongPlatform(format!(
        "image has no variant for {os}/{architecture}; available: {}",
        if offered.is_empty() { "none".to_owned() } else { offered.join(", ") }
    )))
}
