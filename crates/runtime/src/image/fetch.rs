//! Brings one image here: pulled, verified, unpacked. The work is done by a child process.

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use oci_client::manifest::{OciDescriptor, OciImageManifest};
use oci_client::secrets::RegistryAuth;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use super::registry::{Registry, is_loopback};
use super::{Document, Image, chain_ids, platform, reference};
use crate::Error;
use crate::child::Task;
use crate::dirs::{self, Dirs};
use crate::message;
use crate::options::Options;
use crate::unpack;

/// How many layers an image may have: overlays take their names in one page.
const MAX_LAYERS: usize = 128;
/// How many layers are pulled side by side.
const AT_ONCE: usize = 3;
/// What the child may use: a document that never ends must not end the machine.
const ADDRESS_SPACE: u64 = 2 << 30;

/// What the child is asked for.
#[derive(Serialize, Deserialize)]
struct Request {
    dir: PathBuf,
    image: String,
    max_bytes: u64,
    max_entries: u64,
    read_timeout_ms: u64,
    credentials: Option<(String, String)>,
}

/// What the child answers.
type Answer = Result<Image, Error>;

/// Has a child bring the image here. Dropping this ends the child.
pub(crate) async fn fetch(options: &Options, image: &str) -> Result<Image, Error> {
    let reference = reference(image)?;
    let registry = reference.resolve_registry();
    let credentials = options.registries.get(registry);
    let request = Request {
        dir: options.dir.clone(),
        image: image.to_owned(),
        max_bytes: options.max_image_bytes,
        max_entries: options.max_image_entries,
        read_timeout_ms: u64::try_from(options.read_timeout.as_millis()).unwrap_or(u64::MAX),
        credentials: credentials.map(|c| (c.username.clone(), c.password.clone())),
    };
    let answer = tokio::time::timeout(options.pull_timeout, ask(options, &request, registry));
    match answer.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            Err(Error::Helper(format!("The image {image} could not be fetched: {error}.")))
        }
        Err(_) => Err(Error::RegistryTimedOut(format!(
            "The image {image} did not arrive within {} s: the registry {registry} hangs or is \
             slow.",
            options.pull_timeout.as_secs_f32()
        ))),
    }
}

async fn ask(options: &Options, request: &Request, registry: &str) -> std::io::Result<Answer> {
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
        .map_err(|_| std::io::Error::other(format!("the fetcher ended with {}", output.status)))
}

/// The child.
pub(crate) fn child() -> ExitCode {
    let answer = match serde_json::from_reader(std::io::stdin().lock()) {
        Ok(request) => run(&request),
        Err(error) => Err(Error::io("The fetcher was asked nonsense", error)),
    };
    match serde_json::to_writer(std::io::stdout().lock(), &answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(request: &Request) -> Answer {
    let dirs = Dirs(request.dir.clone());
    let fetched = prepare().and_then(|()| bring(request, &dirs));
    // What was pulled is needed again only if the next try can go on from it.
    if !matches!(
        fetched,
        Err(Error::RegistryUnavailable(_) | Error::RegistryTimedOut(_) | Error::Io { .. })
    ) {
        let _ = std::fs::remove_dir_all(dirs.pull(&request.image));
    }
    fetched
}

/// Makes this process fit for its task, before any thread exists.
fn prepare() -> Result<(), Error> {
    let limit =
        rustix::process::Rlimit { current: Some(ADDRESS_SPACE), maximum: Some(ADDRESS_SPACE) };
    rustix::process::setrlimit(rustix::process::Resource::As, limit)
        .map_err(|error| Error::io("The fetcher can't limit itself", error))?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    unpack::overlay::own_mounts().map_err(|error| Error::io("The fetcher can't mount", error))
}

fn bring(request: &Request, dirs: &Dirs) -> Result<Image, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::io("The fetcher can't run", error))?;
    let (image, diff_ids, layers) = runtime.block_on(pull(request, dirs))?;
    drop(runtime);
    let pulled = dirs.pull(&request.image);
    let mut budget = unpack::Budget { bytes: request.max_bytes, entries: request.max_entries };
    for (at, layer) in layers.iter().enumerate() {
        let blob = pulled.join(super::hex_of(&layer.digest).unwrap_or_default());
        unpack::layer(dirs, &image.layers[..=at], &blob, &diff_ids[at], &mut budget)
            .map_err(|error| refused(&image.name, error))?;
    }
    dirs::write_json(&dirs.image(&image.name), &image)
        .map_err(|error| Error::io("The image could not be stored", error))?;
    Ok(image)
}

/// Brings what is not here yet: the image, its layers' contents and as they are packed.
async fn pull(
    request: &Request,
    dirs: &Dirs,
) -> Result<(Image, Vec<String>, Vec<OciDescriptor>), Error> {
    let auth = match &request.credentials {
        Some((user, password)) => RegistryAuth::Basic(user.clone(), password.clone()),
        None => RegistryAuth::Anonymous,
    };
    let timeout = Duration::from_millis(request.read_timeout_ms);
    let registry = Registry::new(&request.image, auth, timeout)?;
    let (manifest, digest) = registry.manifest().await?;
    check_size(request, &manifest)?;
    let document = registry.document(&manifest.config).await?;
    let (image, diff_ids) = describe(&request.image, digest, &document, &manifest)?;
    let directory = dirs.pull(&request.image);
    tokio::fs::create_dir_all(&directory)
        .await
        .map_err(|error| Error::io("The image can't be stored", error))?;
    let missing = manifest.layers.iter().zip(&image.layers);
    let missing = missing.filter(|(_, chain)| !dirs.layer(chain).exists());
    stream::iter(missing.map(|(layer, _)| registry.blob(layer, &directory)))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok((image, diff_ids, manifest.layers))
}

/// An image whose layers can't be unpacked.
fn refused(image: &str, cause: std::io::Error) -> Error {
    if cause.kind() == std::io::ErrorKind::StorageFull {
        return Error::io(format!("The image {image} could not be unpacked"), cause);
    }
    let message = format!("The image {image} is refused: {cause}.");
    match cause.kind() {
        std::io::ErrorKind::FileTooLarge => Error::ImageTooLarge(message),
        _ => Error::BadImage(message),
    }
}

fn check_size(request: &Request, manifest: &OciImageManifest) -> Result<(), Error> {
    let name = &request.image;
    let count = manifest.layers.len();
    if count > MAX_LAYERS {
        return Err(Error::ImageTooLarge(format!(
            "The image {name} has {count} layers; at most {MAX_LAYERS} are allowed."
        )));
    }
    let sum = manifest.layers.iter().try_fold(0u64, |sum, layer| {
        u64::try_from(layer.size).ok().and_then(|size| sum.checked_add(size))
    });
    match sum {
        Some(sum) if sum <= request.max_bytes => Ok(()),
        _ => Err(Error::ImageTooLarge(format!(
            "The image {name} is larger than the {} that an image may have (setting: maximum \
             image size).",
            message::bytes(i64::try_from(request.max_bytes).unwrap_or(i64::MAX))
        ))),
    }
}

fn describe(
    name: &str,
    digest: String,
    document: &[u8],
    manifest: &OciImageManifest,
) -> Result<(Image, Vec<String>), Error> {
    let broken = |why: &str| Error::BadImage(format!("The image {name} is broken: {why}."));
    let document: Document = serde_json::from_slice(document)
        .map_err(|error| broken(&format!("{error} in its description")))?;
    platform::check(name, &document.os, &document.architecture)?;
    let diff_ids = document.rootfs.diff_ids;
    let layers = chain_ids(&diff_ids).filter(|chains| chains.len() == manifest.layers.len());
    let layers = layers.ok_or_else(|| broken("its description does not match its layers"))?;
    let config = document.config.unwrap_or_default();
    Ok((Image { name: name.to_owned(), digest, layers, config }, diff_ids))
}
