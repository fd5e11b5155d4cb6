//! The downloader: a process that talks to a registry, confined before it connects. It has no
//! privileges and writes only to the directory of the pull.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use oci_client::manifest::OciImageManifest;

use super::describe::{Description, check_size};
use super::fetch::Request;
use super::hex_of;
use super::pace::Pace;
use super::registry::Registry;
use crate::Error;
use crate::confine::{self, Channel, Place, Process};

/// Number of layers pulled concurrently.
const CONCURRENT_LAYERS: usize = 3;
/// Timeout of manifest and configuration together, in timeouts of a read.
const DOCUMENT_READS: u32 = 4;

/// A downloader, seen from the fetcher.
pub(super) struct Downloader(Process);

impl Downloader {
    /// Starts a downloader that stores blobs in a directory.
    pub(super) fn start(request: &Request, directory: BorrowedFd<'_>) -> Result<Self, Error> {
        let min_pace = Pace {
            min_bytes_per_sec: request.min_bytes_per_sec,
            window: Duration::from_millis(request.speed_window_ms),
        };
        let timeout = Duration::from_millis(request.read_timeout_ms);
        // Before privileges are dropped: only root may be allowed to read the CA certificates.
        let registry = Registry::new(&request.image, &request.access, timeout, min_pace)?;
        let place = Place::Directory(directory);
        let process = Process::start("downloader", place, confine::NOTHING, &[], |channel| {
            run(&registry, request, channel)
        });
        process.map(Self)
    }

    /// Waits for the description of the image.
    pub(super) fn description(&mut self) -> Result<Description, Error> {
        self.0.receive()
    }

    /// Stores the blobs of the layers at these positions.
    pub(super) fn store(mut self, missing: &[usize]) -> Result<(), Error> {
        self.0.send(&missing)?;
        self.0.receive()
    }
}

/// In the downloader: sends the description and stores the blobs that the fetcher then asks for.
fn run(registry: &Registry, request: &Request, channel: &mut Channel) -> Result<(), Error> {
    let failed = |error: io::Error| Error::io("Starting the downloader failed", error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let pulled = runtime.block_on(pull(registry, request, channel));
    // A name lookup may take long.
    runtime.shutdown_background();
    pulled
}

async fn pull(registry: &Registry, request: &Request, channel: &mut Channel) -> Result<(), Error> {
    let documents = async {
        let (manifest, digest) = registry.manifest().await?;
        check_size(request.max_bytes, &manifest)?;
        let config = registry.config(&manifest.config).await?;
        Ok::<_, Error>((manifest, digest, config))
    };
    // Each read has a timeout; a few bytes at a time would never reach it.
    let timeout = Duration::from_millis(request.read_timeout_ms) * DOCUMENT_READS;
    let documents = tokio::time::timeout(timeout, documents).await;
    let (manifest, digest, config) = documents.unwrap_or_else(|_| Err(registry.too_slow()))?;
    let description = Description::new(digest, &config, blobs(&manifest)?)?;
    let lost = |error: io::Error| Error::io("Reporting to the fetcher failed", error);
    channel.send(&Ok::<_, Error>(description)).map_err(lost)?;
    let missing: Vec<usize> = channel.receive().map_err(lost)?;
    let missing = missing.into_iter().filter_map(|at| manifest.layers.get(at));
    stream::iter(missing.map(|layer| registry.blob(layer, Path::new("."))))
        .buffer_unordered(CONCURRENT_LAYERS)
        .try_collect()
        .await
}

/// Names of the files of the layers.
fn blobs(manifest: &OciImageManifest) -> Result<Vec<String>, Error> {
    let digests = manifest.layers.iter().map(|layer| hex_of(&layer.digest));
    let names = digests.map(|hex| hex.map(str::to_owned)).collect::<Option<_>>();
    names.ok_or_else(|| Error::BadImage("image is invalid: a digest is malformed".to_owned()))
}
