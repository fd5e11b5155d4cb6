//! Loads images from an archive, in a helper process. Confined processes that it forks read the
//! archive.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Cursor, Seek as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::archive::{Files, MAX_IMAGES, Packed};
use super::describe::{Described, Description};
use super::fetch::prepare;
use super::store::{Loaded, NO_OWNER};
use crate::child::Task;
use crate::confine::{self, Place};
use crate::dirs::{self, Dirs};
use crate::options::Options;
use crate::unpack::{self, Budget, Source, not_unpacked};
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
    confine::leave_network();
    let dirs = Dirs(request.dir.clone());
    let work = dirs.temporary().join(format!("load-{}", std::process::id()));
    let failed = |error| Error::io("Loading the image failed", error);
    let directory = confine::directory(&work).map_err(failed)?;
    let extracted = extract(request, directory.as_fd());
    let loaded = extracted.and_then(|images| load_all(request, &dirs, &work, images));
    let _ = base::tree::remove(&work);
    loaded
}

/// An image of an archive whose files were extracted.
#[derive(Serialize, Deserialize)]
struct Extracted {
    /// Names, as the archive has them.
    names: Vec<String>,
    description: Description,
}

/// Extracts and describes the images of the archive, in a confined process.
fn extract(request: &Request, directory: BorrowedFd<'_>) -> Result<Vec<Extracted>, Error> {
    let stdin = [std::io::stdin().as_raw_fd()];
    confine::run("extractor", Place::Root(directory), confine::NOTHING, &stdin, || {
        let here = Path::new(".");
        let files = match request.owner.as_str() {
            NO_OWNER => {
                let archive = Cursor::new(builtin_archive(BUILTIN_IMAGE));
                Files::extract(archive, here, request.max_bytes)
            }
            _ => extract_stdin(here, request.max_bytes),
        };
        let files = files.map_err(|error| not_unpacked("from its archive", error))?;
        files.images()?.into_iter().map(describe).collect()
    })
}

fn describe(packed: Packed) -> Result<Extracted, Error> {
    let Packed { names, digest, config, layers } = packed;
    let name = |layer: &PathBuf| Some(layer.file_name()?.to_str()?.to_owned());
    let blobs = layers.iter().filter_map(name).collect();
    Ok(Extracted { names, description: Description::new(digest, &config, blobs)? })
}

fn load_all(request: &Request, dirs: &Dirs, work: &Path, images: Vec<Extracted>) -> Response {
    let given: Vec<_> = images.iter().map(|image| image.names.as_slice()).collect();
    let names = match request.owner.as_str() {
        NO_OWNER => vec![vec![BUILTIN_IMAGE.to_owned()]],
        _ => names(request.name.as_ref(), &given)?,
    };
    let mut budget = Budget::new(request.max_bytes, request.max_entries);
    let mut unpacked = Stored::default();
    let mut loaded = Vec::new();
    for (image, names) in images.into_iter().zip(names).take(MAX_IMAGES) {
        let first = names.first().map(String::as_str).unwrap_or_default();
        let image = image.description.check(first)?;
        let image = unpack(dirs, work, image, &mut budget, &mut unpacked)?;
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

/// Extracts the archive on stdin.
pub(super) fn extract_stdin(work: &Path, max_bytes: u64) -> std::io::Result<Files> {
    let archive = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    Files::extract(archive, work, max_bytes)
}

/// Local names of each image. `name` replaces that of a single image.
pub(super) fn names(
    name: Option<&String>,
    images: &[&[String]],
) -> Result<Vec<Vec<String>>, Error> {
    match (name, images) {
        (Some(name), [_]) => return Ok(vec![vec![name.clone()]]),
        (Some(_), _) => {
            let why = format!("it has {} images, a name can be given to one only", images.len());
            return Err(Error::InvalidArchive(why));
        }
        (None, _) => {}
    }
    let own = images.iter().map(|names| match names {
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
    work: &Path,
    Described { image, layers }: Described,
    budget: &mut Budget,
    stored: &mut Stored,
) -> Result<Unpacked, Error> {
    let mut size_bytes = 0;
    for (at, layer) in layers.iter().enumerate() {
        let (chains, before, blob) = (&image.layers[..=at], budget.bytes, work.join(&layer.blob));
        let source = Source { image: &image.name, blob: &blob, diff_id: &layer.diff_id };
        let (is_new, lock) = unpack::layer(dirs, chains, source, budget)?;
        stored.locks.push(lock);
        if !is_new && !stored.sizes.contains_key(&chains[at]) {
            unpack::check(source, budget)?;
        }
        let size = stored.sizes.entry(chains[at].clone()).or_insert(before - budget.bytes);
        size_bytes += *size;
    }
    Ok(Unpacked { image, size_bytes })
}
