//! Registry client: manifests, and blobs that are stored completely or not at all.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::manifest::{OciDescriptor, OciImageManifest, OciManifest};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, client::BlobResponse};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use super::pace::{Meter, Pace};
use super::{Reference, hex_of, platform, reference};
use crate::Error;

/// Maximum size of an image configuration.
pub(super) const MAX_DOCUMENT: i64 = 4 << 20;

/// A registry, and an image in it.
pub(super) struct Registry {
    client: Client,
    auth: RegistryAuth,
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
        auth: RegistryAuth,
        read_timeout: Duration,
        pace: Pace,
    ) -> Result<Self, Error> {
        let reference = reference(name)?;
        let registry = reference.resolve_registry();
        let protocol = if is_loopback(registry) {
            ClientProtocol::HttpsExcept(vec![registry.to_owned()])
        } else {
            ClientProtocol::Https
        };
        let client = Client::new(ClientConfig {
            protocol,
            read_timeout: Some(read_timeout),
            connect_timeout: Some(read_timeout.min(Duration::from_secs(10))),
            user_agent: "paddock",
            ..ClientConfig::default()
        });
        Ok(Self { client, auth, reference, name: name.to_owned(), pace })
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
        let pulled = self.client.pull_manifest(reference, &self.auth).await;
        pulled.map_err(|error| self.convert(&error))
    }

    /// Pulls and verifies the image configuration.
    pub(super) async fn config(&self, descriptor: &OciDescriptor) -> Result<Vec<u8>, Error> {
        if !(1..=MAX_DOCUMENT).contains(&descriptor.size) {
            return Err(invalid("its configuration has an impossible size"));
        }
        let mut bytes = Vec::new();
        let mut stream = self
            .client
            .pull_blob_stream(&self.reference, descriptor.digest.as_str())
            .await
            .map_err(|error| self.convert(&error))?
            .stream;
        while let Some(chunk) = stream.next().await {
            bytes.extend_from_slice(&chunk.map_err(|error| self.interrupted(&error))?);
            if i64::try_from(bytes.len()).unwrap_or(i64::MAX) > descriptor.size {
                return Err(invalid("its configuration is longer than announced"));
            }
        }
        let found = super::super::dirs::sha256(&bytes);
        if Some(found.as_str()) != hex_of(&descriptor.digest) {
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
        let response = self
            .client
            .pull_blob_stream_partial(&self.reference, descriptor.digest.as_str(), have, None)
            .await;
        let mut stream = match response {
            Ok(BlobResponse::Partial(sized)) => sized.stream,
            Ok(BlobResponse::Full(sized)) => {
                file.set_len(0).await.map_err(|error| self.not_stored(error))?;
                file.rewind().await.map_err(|error| self.not_stored(error))?;
                (hash, have) = (Sha256::new(), 0);
                sized.stream
            }
            Err(error) => return Err(self.convert(&error)),
        };
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

    /// Converts an error of a stream; the client reports its own digest check the same way.
    fn interrupted(&self, error: &std::io::Error) -> Error {
        let text = error.to_string();
        if text.contains("digest") {
            return invalid(&format!("the registry sent other content ({text})"));
        }
        let registry = self.reference.resolve_registry();
        Error::RegistryUnavailable(format!("registry {registry} stopped responding: {text}"))
    }

    fn convert(&self, error: &OciDistributionError) -> Error {
        use OciDistributionError as Oci;
        let image = self.name.clone();
        let registry = self.reference.resolve_registry().to_owned();
        let unavailable =
            |what: String| Error::RegistryUnavailable(format!("registry {registry} {what}"));
        match error {
            Oci::ImageManifestNotFoundError(_) | Oci::ServerError { code: 404, .. } => {
                Error::ImageNotFound { image, registry }
            }
            Oci::RegistryError { envelope, .. }
                if envelope.errors.iter().any(|error| is_missing(&error.code)) =>
            {
                Error::ImageNotFound { image, registry }
            }
            Oci::UnauthorizedError { .. } | Oci::AuthenticationFailure(_) => {
                Error::Unauthorised { image, registry }
            }
            Oci::DigestError(error) => {
                Error::BadImage(format!("image does not match its digest: {error}"))
            }
            Oci::RequestError(error) if error.is_timeout() => {
                Error::RegistryTimedOut(format!("registry {registry} did not respond in time"))
            }
            Oci::RequestError(error) if error.is_connect() => {
                unavailable(format!("is unreachable: {}", innermost(error)))
            }
            Oci::RequestError(error) => unavailable(format!("failed: {}", innermost(error))),
            Oci::ServerError { code, .. } => unavailable(format!("failed with status {code}")),
            error => Error::BadImage(format!(
                "registry {registry} sent an invalid response: {}",
                shorten(&error.to_string())
            )),
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

fn is_missing(code: &OciErrorCode) -> bool {
    use OciErrorCode::{BlobUnknown, ManifestUnknown, NameUnknown, NotFound};
    matches!(code, ManifestUnknown | NameUnknown | BlobUnknown | NotFound)
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
