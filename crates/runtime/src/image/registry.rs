//! Registry client: manifests, and blobs that are stored completely or not at all.

mod challenge;
mod client;
mod target;

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use model::address::Policy;
use oci_client::manifest::{
    IMAGE_MANIFEST_LIST_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE, OCI_IMAGE_INDEX_MEDIA_TYPE,
    OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest, OciManifest,
};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, RANGE};
use reqwest::{Response, StatusCode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use super::pace::{Meter, Pace};
use super::{Reference, hex_of, platform, reference};
use crate::dirs::sha256;
use crate::{Credentials, Error};
use client::{Client, Failure, read_document};
use target::Rules;

/// Maximum size of a manifest or an image configuration.
pub(super) const MAX_DOCUMENT: i64 = 4 << 20;

/// How a registry is accessed.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Access {
    pub(super) credentials: Option<Credentials>,
    /// Other hosts to which the registry may refer.
    pub(super) allowed_hosts: Vec<String>,
    /// Whether the settings name the registry.
    pub(super) is_named: bool,
    /// Permitted addresses of hosts that the settings don't name.
    pub(super) addresses: Policy,
}

/// A registry, and an image in it.
pub(super) struct Registry {
    client: Client,
    reference: Reference,
    name: String,
    pace: Pace,
}

/// Whether the registry is on this host; only then plain HTTP is allowed.
pub(super) fn is_loopback(registry: &str) -> bool {
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl Registry {
    pub(super) fn new(
        name: &str,
        access: &Access,
        read_timeout: Duration,
        pace: Pace,
    ) -> Result<Self, Error> {
        let reference = reference(name)?;
        let Access { credentials, allowed_hosts, is_named, addresses } = access.clone();
        let registry = reference.resolve_registry().to_owned();
        let rules = Rules { registry, allowed: allowed_hosts, is_named };
        let repository = reference.repository();
        let client = Client::new(rules, repository, credentials, &addresses, read_timeout)
            .map_err(|failure| convert(name, &reference, failure))?;
        Ok(Self { client, reference, name: name.to_owned(), pace })
    }

    /// The manifest for this host, and its digest.
    pub(super) async fn manifest(&self) -> Result<(OciImageManifest, String), Error> {
        let (manifest, digest) = self.pull_manifest(&self.reference).await?;
        let index = match manifest {
            OciManifest::Image(image) => return Ok((image, digest)),
            OciManifest::ImageIndex(index) => index,
        };
        let chosen = platform::choose(&index)?;
        match self.pull_manifest(&self.reference.clone_with_digest(chosen)).await? {
            (OciManifest::Image(image), digest) => Ok((image, digest)),
            _ => Err(Error::BadImage("image index refers to another index".to_owned())),
        }
    }

    async fn pull_manifest(&self, reference: &Reference) -> Result<(OciManifest, String), Error> {
        let version = reference.digest().or(reference.tag()).unwrap_or("latest");
        let kinds = [
            OCI_IMAGE_MEDIA_TYPE,
            OCI_IMAGE_INDEX_MEDIA_TYPE,
            IMAGE_MANIFEST_MEDIA_TYPE,
            IMAGE_MANIFEST_LIST_MEDIA_TYPE,
        ];
        let kinds = HeaderValue::from_str(&kinds.join(", ")).expect("media types are ASCII");
        let response = self.get(&format!("manifests/{version}"), (ACCEPT, kinds)).await?;
        let bytes = read_document(response).await.map_err(|failure| self.convert(failure))?;
        let digest = format!("sha256:{}", sha256(&bytes));
        if let Some(expected) = reference.digest().filter(|expected| *expected != digest) {
            return Err(wrong_digest(expected, &digest["sha256:".len()..]));
        }
        let manifest = serde_json::from_slice(&bytes)
            .map_err(|error| self.convert(Failure::Invalid(error.to_string())))?;
        Ok((manifest, digest))
    }

    /// Requests a path of the repository.
    async fn get(
        &self,
        path: &str,
        (name, value): (reqwest::header::HeaderName, HeaderValue),
    ) -> Result<Response, Error> {
        let headers = HeaderMap::from_iter([(name, value)]);
        self.client.get(path, headers).await.map_err(|failure| self.convert(failure))
    }

    /// Requests a blob, from a position. The registry may send the whole blob instead.
    async fn get_blob(&self, digest: &str, from: u64) -> Result<Response, Error> {
        let range = HeaderValue::from_str(&format!("bytes={from}-")).expect("digits are ASCII");
        self.get(&format!("blobs/{digest}"), (RANGE, range)).await
    }

    /// Pulls and verifies the image configuration.
    pub(super) async fn config(&self, descriptor: &OciDescriptor) -> Result<Vec<u8>, Error> {
        if !(1..=MAX_DOCUMENT).contains(&descriptor.size) {
            return Err(invalid("its configuration has an impossible size"));
        }
        let hex = hex_of(&descriptor.digest).ok_or_else(|| invalid("a digest is malformed"))?;
        let response = self.get_blob(&descriptor.digest, 0).await?;
        let bytes = read_document(response).await.map_err(|failure| self.convert(failure))?;
        let found = sha256(&bytes);
        if found != hex {
            return Err(wrong_digest(&descriptor.digest, &found));
        }
        Ok(bytes)
    }

    /// Pulls a blob into `directory`, resuming an interrupted pull.
    pub(super) async fn blob(
        &self,
        descriptor: &OciDescriptor,
        directory: &Path,
    ) -> Result<(), Error> {
        let hex = hex_of(&descriptor.digest).ok_or_else(|| invalid("a digest is malformed"))?;
        let (whole, part) = (directory.join(hex), directory.join(format!("{hex}.part")));
        if whole.exists() {
            return Ok(());
        }
        let size =
            u64::try_from(descriptor.size).map_err(|_| invalid("a layer has a negative size"))?;
        let found = self.download(descriptor, size, &part).await?;
        if found != hex {
            // A wrong digest stays wrong: resuming would never succeed.
            let _ = tokio::fs::remove_file(&part).await;
            return Err(wrong_digest(&descriptor.digest, &found));
        }
        tokio::fs::rename(&part, &whole).await.map_err(|error| self.not_stored(error))
    }

    /// Writes the blob to `part` and returns the digest of the whole file.
    async fn download(
        &self,
        descriptor: &OciDescriptor,
        size: u64,
        part: &Path,
    ) -> Result<String, Error> {
        let mut file = tokio::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(part)
            .await
            .map_err(|error| self.not_stored(error))?;
        let mut hash = Sha256::new();
        let mut have = rehash(&mut file, &mut hash, size).await.map_err(|e| self.not_stored(e))?;
        if have == size {
            return Ok(data_encoding::HEXLOWER.encode(&hash.finalize()));
        }
        let response = self.get_blob(&descriptor.digest, have).await?;
        if response.status() != StatusCode::PARTIAL_CONTENT {
            file.set_len(0).await.map_err(|error| self.not_stored(error))?;
            file.rewind().await.map_err(|error| self.not_stored(error))?;
            (hash, have) = (Sha256::new(), 0);
        }
        let mut stream = response.bytes_stream();
        let mut meter = Meter::new(self.pace);
        while let Some(chunk) = meter.next(&mut stream).await.map_err(|_| self.too_slow())? {
            let chunk = chunk.map_err(|error| self.interrupted(&error))?;
            have += chunk.len() as u64;
            if have > size {
                return Err(invalid("a layer is longer than announced"));
            }
            hash.update(&chunk);
            file.write_all(&chunk).await.map_err(|error| self.not_stored(error))?;
        }
        file.flush().await.map_err(|error| self.not_stored(error))?;
        if have < size {
            return Err(Error::RegistryUnavailable(format!(
                "registry {} closed the connection after {have} of {size} bytes of a layer",
                self.reference.resolve_registry()
            )));
        }
        Ok(data_encoding::HEXLOWER.encode(&hash.finalize()))
    }

    /// The registry sends, but too little.
    pub(super) fn too_slow(&self) -> Error {
        let registry = self.reference.resolve_registry();
        let kib = self.pace.min_bytes_per_sec.div_ceil(1024);
        Error::RegistryTimedOut(format!(
            "registry {registry} is too slow: less than {kib} KiB/s for {} s",
            self.pace.window.as_secs()
        ))
    }

    fn not_stored(&self, error: std::io::Error) -> Error {
        Error::io(format!("Storing image {} failed", self.name), error)
    }

    fn interrupted(&self, error: &reqwest::Error) -> Error {
        let registry = self.reference.resolve_registry();
        let cause = innermost(error);
        Error::RegistryUnavailable(format!("registry {registry} stopped responding: {cause}"))
    }

    fn convert(&self, failure: Failure) -> Error {
        convert(&self.name, &self.reference, failure)
    }
}

fn convert(name: &str, reference: &Reference, failure: Failure) -> Error {
    let image = name.to_owned();
    let registry = reference.resolve_registry().to_owned();
    match failure {
        Failure::Missing => Error::ImageNotFound { image, registry },
        Failure::Denied => Error::Unauthorised { image, registry },
        Failure::TimedOut => {
            Error::RegistryTimedOut(format!("registry {registry} did not respond in time"))
        }
        Failure::Unavailable(what) => {
            Error::RegistryUnavailable(format!("registry {registry} {what}"))
        }
        Failure::Refused(why) => Error::RegistryRefused(why),
        Failure::Invalid(why) => {
            let why = shorten(&why);
            Error::BadImage(format!("registry {registry} sent an invalid response: {why}"))
        }
    }
}

fn invalid(why: &str) -> Error {
    Error::BadImage(format!("image is invalid: {why}"))
}

pub(super) fn wrong_digest(expected: &str, found: &str) -> Error {
    Error::BadImage(format!(
        "image does not match its digest: expected {expected}, got sha256:{found}"
    ))
}

/// Hashes the bytes of a part file and returns their number. Truncates a file that is too long.
async fn rehash(file: &mut tokio::fs::File, hash: &mut Sha256, size: u64) -> std::io::Result<u64> {
    let have = file.metadata().await?.len();
    if have > size {
        file.set_len(0).await?;
        return Ok(0);
    }
    let mut buffer = vec![0; 128 << 10];
    loop {
        let n = file.read(&mut buffer).await?;
        if n == 0 {
            return Ok(have);
        }
        hash.update(&buffer[..n]);
    }
}

/// The innermost source of an error.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    shorten(&error.to_string())
}

/// Shortens a response: registries may send whole web pages.
fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
