//! Pulls, verifies and unpacks an image, in a helper process: the *fetcher*. Confined processes
//! that it forks talk to the registry and read what it sent.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use super::describe::Described;
use super::download::Downloader;
use super::registry::{Access, is_loopback};
use super::{Image, reference};
use crate::child::Task;
use crate::confine;
use crate::dirs::{self, Dirs};
use crate::options::Options;
use crate::unpack::{self, Source};
use crate::usage::lock_layer;
use crate::{Credentials, Error};

/// Address space limit of the fetcher.
const MAX_ADDRESS_SPACE: u64 = 2 << 30;

/// Request to the fetcher.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    dir: PathBuf,
    pub(super) image: String,
    /// Key under which the image is stored.
    key: String,
    pub(super) max_bytes: u64,
    max_entries: u64,
    pub(super) read_timeout_ms: u64,
    pub(super) min_bytes_per_sec: u64,
    pub(super) speed_window_ms: u64,
    pub(super) access: Access,
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
        Err(_) => {
            // Fails unless it is empty: a retry resumes the pull.
            let _ = std::fs::remove_dir(Dirs(options.dir.clone()).pull(key));
            Err(Error::RegistryTimedOut(format!(
                "timed out after {} s; registry {registry} hangs or is slow",
                options.pull_timeout.as_secs_f32()
            )))
        }
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
    let pulled = dirs.pull(&request.key);
    let _ = match fetched {
        Err(Error::RegistryUnavailable(_) | Error::RegistryTimedOut(_) | Error::Io { .. }) => {
            std::fs::remove_dir(pulled)
        }
        _ => base::tree::remove(&pulled),
    };
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
    let pulled = dirs.pull(&request.key);
    let not_stored = |error| Error::io("Storing the image failed", error);
    let directory = confine::directory(&pulled).map_err(not_stored)?;
    let mut downloader = Downloader::start(request, directory.as_fd())?;
    // What follows needs no network.
    confine::leave_network();
    let Described { image, layers } = downloader.description()?.check(&request.image)?;
    let (mut locks, missing) = lock_layers(dirs, &image);
    downloader.store(&missing)?;
    let mut budget = unpack::Budget::new(request.max_bytes, request.max_entries);
    for (at, layer) in layers.iter().enumerate() {
        let blob = pulled.join(&layer.blob);
        let source = Source { image: &image.name, blob: &blob, diff_id: &layer.diff_id };
        let (_, lock) = unpack::layer(dirs, &image.layers[..=at], source, &mut budget)?;
        locks.push(lock);
    }
    dirs::write_json(&dirs.image(&request.key), &image).map_err(not_stored)?;
    Ok(image)
}

/// Locks the layers of an image that are stored, and returns the positions of the others.
fn lock_layers(dirs: &Dirs, image: &Image) -> (Vec<File>, Vec<usize>) {
    let (mut locks, mut missing) = (Vec::new(), Vec::new());
    for (at, chain) in image.layers.iter().enumerate() {
        match lock_layer(&dirs.layer(chain)) {
            Ok(Some(lock)) => locks.push(lock),
            _ => missing.push(at),
        }
    }
    (locks, missing)
}
