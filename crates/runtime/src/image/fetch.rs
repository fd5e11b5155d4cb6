//! Pulls, verifies and unpacks an image, in a helper process.

use std::fs::File;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use oci_client::manifest::{OciDescriptor, OciImageManifest};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use super::pace::Pace;
use super::registry::{Access, Registry, is_loopback};
use super::{Image, ImageConfig, chain_ids, platform, reference};
use crate::child::Task;
use crate::dirs::{self, Dirs};
use crate::message;
use crate::options::Options;
use crate::unpack;
use crate::usage::lock_layer;
use crate::{Credentials, Error};

/// Maximum number of layers: overlay options must fit into a page.
pub(super) const MAX_LAYERS: usize = 128;
/// Number of layers pulled concurrently.
const CONCURRENT_LAYERS: usize = 3;
/// Timeout of manifest and configuration together, in timeouts of a read.
const DOCUMENT_READS: u32 = 4;
/// Address space limit of the fetcher.
const MAX_ADDRESS_SPACE: u64 = 2 << 30;

/// Request to the fetcher.
#[derive(Serialize, Deserialize)]
struct Request {
    dir: PathBuf,
    image: String,
    /// Key under which the image is stored.
    key: String,
    max_bytes: u64,
    max_entries: u64,
    read_timeout_ms: u64,
    min_bytes_per_sec: u64,
    speed_window_ms: u64,
    access: Access,
}

/// Response of the fetcher.
type Response = Result<Image, Error>;

/// Runs a fetcher for the image, with the owner's credentials or the platform's. Dropping the future
/// kills the fetcher.
pub(crate) async fn fetch(
    options: &Options,
    image: &str,
    key: &str,
    own: Option<&Credentials>,
) -> Result<Image, Error> {
    let reference = reference(image)?;
    let registry = reference.resolve_registry();
    let request = Request {
        dir: options.dir.clone(),
        image: image.to_owned(),
        key: key.to_owned(),
        max_bytes: options.max_image_bytes,
        max_entries: options.max_image_entries,
        read_timeout_ms: millis(options.read_timeout),
        min_bytes_per_sec: options.min_pull_bytes_per_sec,
        speed_window_ms: millis(options.pull_speed_window),
        access: Access {
            credentials: own.or_else(|| options.registries.credentials_for(&reference)).cloned(),
            allowed_hosts: options.registries.realms.iter().map(ToString::to_string).collect(),
            is_named: options.registries.is_named(&reference),
            addresses: options.registries.addresses.clone(),
        },
    };
    let response = tokio::time::timeout(options.pull_timeout, call(options, &request, registry));
    match response.await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => Err(Error::Helper(format!("Fetching image {image} failed: {error}."))),
        Err(_) => Err(Error::RegistryTimedOut(format!(
            "timed out after {} s; registry {registry} hangs or is slow",
            options.pull_timeout.as_secs_f32()
        ))),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

async fn call(options: &Options, request: &Request, registry: &str) -> std::io::Result<Response> {
    let mut command = tokio::process::Command::new(&options.program);
    command
        .arg(Task::Fetch.argument())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir("/")
        .kill_on_drop(true);
    if is_loopback(registry) {
        for proxy in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy"] {
            command.env_remove(proxy);
        }
    }
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&serde_json::to_vec(request)?).await?;
    }
    let output = child.wait_with_output().await?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| std::io::Error::other(format!("fetcher failed: {}", output.status)))
}

/// Entry point of the helper process.
pub(crate) fn child() -> ExitCode {
    let response = match serde_json::from_reader(std::io::stdin().lock()) {
        Ok(request) => run(&request),
        Err(error) => Err(Error::io("Invalid request to the fetcher", error)),
    };
    match serde_json::to_writer(std::io::stdout().lock(), &response) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(request: &Request) -> Response {
    let dirs = Dirs(request.dir.clone());
    let fetched = prepare().and_then(|()| pull_and_unpack(request, &dirs));
    // A partial pull is retained only if a retry can resume it.
    if !matches!(
        fetched,
        Err(Error::RegistryUnavailable(_) | Error::RegistryTimedOut(_) | Error::Io { .. })
    ) {
        let _ = base::tree::remove(&dirs.pull(&request.key));
    }
    fetched
}

/// Limits the memory of the process, against documents that never end.
pub(super) fn limit_memory() -> Result<(), Error> {
    let limit = Some(MAX_ADDRESS_SPACE);
    let limit = rustix::process::Rlimit { current: limit, maximum: limit };
    rustix::process::setrlimit(rustix::process::Resource::As, limit)
        .map_err(|error| Error::io("Limiting the fetcher's memory failed", error))
}

/// Sets up the process, before any thread exists.
pub(super) fn prepare() -> Result<(), Error> {
    limit_memory()?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    unpack::overlay::new_mount_namespace()
        .map_err(|error| Error::io("Creating a mount namespace failed", error))
}

fn pull_and_unpack(request: &Request, dirs: &Dirs) -> Result<Image, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::io("Starting the fetcher failed", error))?;
    let Pulled { image, diff_ids, layers, mut locks } = runtime.block_on(pull(request, dirs))?;
    drop(runtime);
    let pulled = dirs.pull(&request.key);
    let mut budget = unpack::Budget::new(request.max_bytes, request.max_entries);
    for (at, layer) in layers.iter().enumerate() {
        let blob = pulled.join(super::hex_of(&layer.digest).unwrap_or_default());
        let (_, lock) =
            unpack::layer(dirs, &image.layers[..=at], &blob, &diff_ids[at], &mut budget)
                .map_err(|error| not_unpacked(&image.name, error))?;
        locks.push(lock);
    }
    dirs::write_json(&dirs.image(&request.key), &image)
        .map_err(|error| Error::io("Storing the image failed", error))?;
    Ok(image)
}

/// An image whose missing layers were pulled.
struct Pulled {
    image: Image,
    diff_ids: Vec<String>,
    layers: Vec<OciDescriptor>,
    /// Locks of the layers that are not missing.
    locks: Vec<File>,
}

/// Pulls missing layers.
async fn pull(request: &Request, dirs: &Dirs) -> Result<Pulled, Error> {
    let timeout = Duration::from_millis(request.read_timeout_ms);
    let pace = Pace {
        min_bytes_per_sec: request.min_bytes_per_sec,
        window: Duration::from_millis(request.speed_window_ms),
    };
    let registry = Registry::new(&request.image, &request.access, timeout, pace)?;
    let documents = async {
        let (manifest, digest) = registry.manifest().await?;
        check_size(request.max_bytes, &manifest)?;
        let config = registry.config(&manifest.config).await?;
        Ok::<_, Error>((manifest, digest, config))
    };
    // Each read has a timeout; a few bytes at a time would never reach it.
    let documents = tokio::time::timeout(timeout * DOCUMENT_READS, documents).await;
    let (manifest, digest, config) = documents.unwrap_or_else(|_| Err(registry.too_slow()))?;
    let (image, diff_ids) = describe(&request.image, digest, &config, manifest.layers.len())?;
    let directory = dirs.pull(&request.key);
    tokio::fs::create_dir_all(&directory)
        .await
        .map_err(|error| Error::io("Storing the image failed", error))?;
    let mut locks = Vec::new();
    let mut missing = Vec::new();
    for (layer, chain) in manifest.layers.iter().zip(&image.layers) {
        match lock_layer(&dirs.layer(chain)) {
            Ok(Some(lock)) => locks.push(lock),
            _ => missing.push(layer),
        }
    }
    stream::iter(missing.into_iter().map(|layer| registry.blob(layer, &directory)))
        .buffer_unordered(CONCURRENT_LAYERS)
        .try_collect::<()>()
        .await?;
    Ok(Pulled { image, diff_ids, layers: manifest.layers, locks })
}

pub(super) fn not_unpacked(image: &str, cause: std::io::Error) -> Error {
    if cause.kind() == std::io::ErrorKind::StorageFull {
        return Error::io(format!("Unpacking image {image} failed"), cause);
    }
    let message = cause.to_string();
    match cause.kind() {
        std::io::ErrorKind::FileTooLarge => Error::ImageTooLarge(message),
        _ => Error::BadImage(message),
    }
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
    let invalid = |why: &str| Error::BadImage(format!("image is invalid: {why}"));
    let config: ImageConfig = serde_json::from_slice(config)
        .map_err(|error| invalid(&format!("{error} in its configuration")))?;
    platform::check(&config.os, &config.architecture)?;
    let diff_ids = config.rootfs.diff_ids;
    let chains = chain_ids(&diff_ids).filter(|chains| chains.len() == layers);
    let layers = chains.ok_or_else(|| invalid("its configuration does not match its layers"))?;
    let config = config.config.unwrap_or_default();
    Ok((Image { name: name.to_owned(), digest, layers, config }, diff_ids))
}
