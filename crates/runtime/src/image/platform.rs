//! Which of an image's variants runs on this machine.

use oci_client::manifest::{ImageIndexEntry, OciImageIndex};

use crate::Error;

/// This machine, as images say it.
pub(super) fn here() -> (&'static str, &'static str) {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    };
    ("linux", architecture)
}

/// Does an image for `os` and `architecture` run here? The error says why not.
pub(super) fn check(name: &str, os: &str, architecture: &str) -> Result<(), Error> {
    let (our_os, ours) = here();
    if (os.is_empty() || os == our_os) && (architecture.is_empty() || architecture == ours) {
        return Ok(());
    }
    Err(Error::WrongPlatform(format!(
        "The image {name} is for {os}/{architecture}, but this machine is {our_os}/{ours}: use an \
         image that was built for it."
    )))
}

/// The digest of the variant for this machine.
pub(super) fn choose(name: &str, index: &OciImageIndex) -> Result<String, Error> {
    let (os, architecture) = here();
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
        "The image {name} has no variant for this machine, which is {os}/{architecture}; it is \
         offered for {}.",
        if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") }
    )))
}
