//! Loads images from an archive, in a helper process.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Cursor, Seek as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::archive::{Files, Packed};
use super::fetch::{describe, not_unpacked, prepare};
use super::store::{Loaded, NO_OWNER};
use crate::child::Task;
use crate::dirs::{self, Dirs};
use crate::options::Options;
use crate::unpack::{self, Budget};
use crate::{BUILTIN_IMAGE, Error, builtin_archive, local_name};

const UNNAMED: &str = "its image has no name; save it by name and tag, or give it a name";

/// Request to the helper process.
#[derive(Serialize, Deserialize)]
struct Request {
    dir: PathBuf,
    owner: String,
    name: Option<String>,
    max_bytes: u64,
    max_entries: u64,
}

type Response = Result<Vec<Loaded>, Error>;

/// Runs a helper process for an archive; without one, for the built-in image. Dropping the future
/// kills the process.
pub(crate) async fn load(
    options: &Options,
    owner: &str,
    archive: Option<File>,
    name: Option<String>,
) -> Response {
    let request = Request {
        dir: options.dir.clone(),
        owner: owner.to_owned(),
        name,
        max_bytes: options.max_image_bytes,
        max_entries: options.max_image_entries,
    };
    call(&options.program, Task::Load, &request, archive, options.pull_timeout).await
}

/// Runs a helper process with a request as argument and an archive on stdin.
pub(super) async fn call<T: DeserializeOwned>(
    program: &Path,
    task: Task,
    request: &impl Serialize,
    archive: Option<File>,
    timeout: Duration,
) -> Result<T, Error> {
    let failed = |error: std::io::Error| Error::io("Loading the image failed", error);
    let archive = archive.map(|mut archive| archive.rewind().map(|()| archive));
    let archive = archive.transpose().map_err(failed)?;
    let request = serde_json::to_string(request).map_err(|error| failed(error.into()))?;
    let output = tokio::process::Command::new(program)
        .arg(task.argument())
        .arg(request)
        .stdin(archive.map_or_else(Stdio::null, Stdio::from))
        .stderr(Stdio::null())
        .current_dir("/")
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(timeout, output).await;
    let output = output.map_err(|_| {
        let seconds = timeout.as_secs_f32();
        Error::Helper(format!("Loading the image failed: timed out after {seconds} s."))
    })?;
    let output = output.map_err(failed)?;
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        let why = format!("Loading the image failed: fetcher failed: {}.", output.status);
        Err(Error::Helper(why))
    })
}

/// Entry point of the helper process.
pub(crate) fn child(request: &OsStr) -> ExitCode {
    respond(request, run)
}

/// In a helper process: handles the request and writes the response.
pub(super) fn respond<R: DeserializeOwned, T: Serialize>(
    request: &OsStr,
    run: impl FnOnce(&R) -> Result<T, Error>,
) -> ExitCode {
    let response = match serde_json::from_slice(request.as_encoded_bytes()) {
        Ok(request) => run(&request),
        Err(error) => Err(Error::io("Invalid request to the fetcher", error)),
    };
    let response = response.map_err(|error| match error {
        Error::BadImage(why) | Error::WrongPlatform(why) => Error::InvalidArchive(why),
        error => error,
    });
    match serde_json::to_writer(std::io::stdout().lock(), &response) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(request: &Request) -> Response {
    prepare()?;
    let dirs = Dirs(request.dir.clone());
    let work = dirs.temporary().join(format!("load-{}", std::process::id()));
    let failed = |error| Error::io("Loading the image failed", error);
    fs::create_dir_all(&work).map_err(failed)?;
    let loaded = load_all(request, &dirs, &work);
    let _ = base::tree::remove(&work);
    loaded
}

fn load_all(request: &Request, dirs: &Dirs, work: &Path) -> Response {
    let files = extract(request, work).map_err(|error| not_unpacked("from its archive", error))?;
    let packed = files.images()?;
    let names = match request.owner.as_str() {
        NO_OWNER => vec![vec![BUILTIN_IMAGE.to_owned()]],
        _ => names(request.name.as_ref(), &packed)?,
    };
    let mut budget = Budget::new(request.max_bytes, request.max_entries);
    let mut unpacked = Stored::default();
    let mut loaded = Vec::new();
    for (image, names) in packed.iter().zip(names) {
        let first = names.first().map(String::as_str).unwrap_or_default();
        let image = unpack(dirs, image, first, &mut budget, &mut unpacked)?;
        loaded.extend(names.into_iter().map(|name| Loaded {
            owner: request.owner.clone(),
            size_bytes: image.size_bytes,
            image: super::Image { name, ..image.image.clone() },
        }));
    }
    for image in &loaded {
        dirs::write_json(&dirs.loaded_image(&image.owner, &image.image.name), image)
            .map_err(|error| Error::io("Storing the image failed", error))?;
    }
    Ok(loaded)
}

fn extract(request: &Request, work: &Path) -> std::io::Result<Files> {
    if request.owner == NO_OWNER {
        let archive = Cursor::new(builtin_archive(BUILTIN_IMAGE));
        return Files::extract(archive, work, request.max_bytes);
    }
    extract_stdin(work, request.max_bytes)
}

/// Extracts the archive on stdin.
pub(super) fn extract_stdin(work: &Path, max_bytes: u64) -> std::io::Result<Files> {
    let archive = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    Files::extract(archive, work, max_bytes)
}

/// Local names of each image. `name` replaces that of a single image.
pub(super) fn names(name: Option<&String>, images: &[Packed]) -> Result<Vec<Vec<String>>, Error> {
    match (name, images) {
        (Some(name), [_]) => return Ok(vec![vec![name.clone()]]),
        (Some(_), _) => {
            let why = format!("it has {} images, a name can be given to one only", images.len());
            return Err(Error::InvalidArchive(why));
        }
        (None, _) => {}
    }
    let own = images.iter().map(|image| match image.names.as_slice() {
        [] => Err(Error::InvalidArchive(UNNAMED.to_owned())),
        names => names.iter().map(|name| local_name(name)).collect(),
    });
    own.collect()
}

/// An unpacked image and the size of its layers.
struct Unpacked {
    image: super::Image,
    size_bytes: u64,
}

/// Layers that were unpacked or found: their sizes by chain id, and locks against their removal.
#[derive(Default)]
struct Stored {
    sizes: HashMap<String, u64>,
    locks: Vec<File>,
}

/// Unpacks the layers of an image. Layers that are stored already are compared with the archive:
/// who knows a digest must not get another owner's layer by it.
fn unpack(
    dirs: &Dirs,
    packed: &Packed,
    name: &str,
    budget: &mut Budget,
    stored: &mut Stored,
) -> Result<Unpacked, Error> {
    let digest = packed.digest.clone();
    let (image, diff_ids) = describe(name, digest, &packed.config, packed.layers.len())?;
    let mut size_bytes = 0;
    for (at, blob) in packed.layers.iter().enumerate() {
        let (chains, diff_id, before) = (&image.layers[..=at], &diff_ids[at], budget.bytes);
        let failed = |error| not_unpacked(name, error);
        let (is_new, lock) = unpack::layer(dirs, chains, blob, diff_id, budget).map_err(failed)?;
        stored.locks.push(lock);
        if !is_new && !stored.sizes.contains_key(&chains[at]) {
            unpack::verify(blob, diff_id, budget).map_err(failed)?;
        }
        let size = stored.sizes.entry(chains[at].clone()).or_insert(before - budget.bytes);
        size_bytes += *size;
    }
    Ok(Unpacked { image, size_bytes })
}
