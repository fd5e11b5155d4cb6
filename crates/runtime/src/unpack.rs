//! Unpacks layers: the most hostile input of all. The fetcher mounts the layers below and publishes
//! the result; a confined process reads the layer and writes the files.

mod apply;
pub(crate) mod overlay;
pub(crate) mod root;
pub(crate) mod stream;

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

use super::confine::{self, Place};
use super::dirs::Dirs;
use super::{Error, usage};
use apply::Applier;
use root::Root;
use stream::Contents;

/// Remaining size budget of an image.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Budget {
    /// Unpacked bytes.
    pub(crate) bytes: u64,
    /// Files, directories and other entries.
    pub(crate) entries: u64,
    /// Bytes on disk, in whole blocks: sparse files and many small files are larger than their tar.
    pub(crate) disk_bytes: u64,
}

impl Budget {
    /// The budget of an image of at most `bytes`.
    pub(crate) fn new(bytes: u64, entries: u64) -> Self {
        Self { bytes, entries, disk_bytes: bytes }
    }

    /// Reduces the budget to what a confined process has left of it.
    fn reduce(&mut self, left: &Self) {
        self.bytes = self.bytes.min(left.bytes);
        self.entries = self.entries.min(left.entries);
        self.disk_bytes = self.disk_bytes.min(left.disk_bytes);
    }
}

/// A layer to unpack.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// Name of the image, for messages.
    pub(crate) image: &'a str,
    /// File of the layer, compressed or not.
    pub(crate) blob: &'a Path,
    pub(crate) diff_id: &'a str,
}

impl Source<'_> {
    fn failure(&self, cause: io::Error) -> Error {
        not_unpacked(self.image, cause)
    }

    fn not_stored(&self, error: &io::Error) -> Error {
        self.failure(not_stored(error))
    }
}

/// Unpacks one layer on top of those below it, unless it is stored already.
///
/// `chains` are the chain ids up to this layer. The result is published under its name only when it
/// is complete and matches its diff id. Returns whether it was unpacked, and a lock that protects
/// it against garbage collection.
pub(crate) fn layer(
    dirs: &Dirs,
    chains: &[String],
    source: Source<'_>,
    budget: &mut Budget,
) -> Result<(bool, File), Error> {
    let not_stored = |error: io::Error| source.not_stored(&error);
    let none = || not_stored(io::ErrorKind::InvalidInput.into());
    let (chain, below) = chains.split_last().ok_or_else(none)?;
    let finished = dirs.layer(chain);
    if let Some(lock) = usage::lock_layer(&finished).map_err(not_stored)? {
        return Ok((false, lock));
    }
    let work = dirs.temporary().join(format!("{}-{}", std::process::id(), &chain[..12]));
    let unpacked = build(dirs, below, source, &work, budget);
    let placed = unpacked.and_then(|()| place(&work.join("upper"), &finished).map_err(not_stored));
    let _ = base::tree::remove(&work);
    placed.map(|lock| (true, lock))
}

/// Moves an unpacked layer to its place. Locked before: garbage collection finds it at once.
fn place(unpacked: &Path, finished: &Path) -> io::Result<File> {
    let lock = usage::lock_layer(unpacked)?;
    let lock = match fs::rename(unpacked, finished) {
        Ok(()) => lock,
        // Another image with the same layer was faster.
        Err(error) => usage::lock_layer(finished)?.map(Some).ok_or(error)?,
    };
    lock.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Checks that a blob is the layer with this diff id, without unpacking it, in a confined process.
pub(crate) fn check(source: Source<'_>, budget: &mut Budget) -> Result<(), Error> {
    let directory = source.blob.parent().unwrap_or(Path::new("/"));
    read_confined(source, directory, confine::NOTHING, budget, verify)
}

/// Checks that a blob is the layer with this diff id.
pub(crate) fn verify(blob: File, diff_id: &str, budget: &mut Budget) -> io::Result<()> {
    let mut contents = Contents::new(blob, budget.bytes.saturating_add(1))?;
    let drained = contents.drain();
    finish(contents, diff_id, budget, drained)
}

fn build(
    dirs: &Dirs,
    below: &[String],
    source: Source<'_>,
    work: &Path,
    budget: &mut Budget,
) -> Result<(), Error> {
    let not_stored = |error: io::Error| source.not_stored(&error);
    for name in ["upper", "work", "merged"] {
        fs::create_dir_all(work.join(name)).map_err(not_stored)?;
    }
    let upper = work.join("upper");
    // Images expect a readable root, regardless of the umask.
    set_mode(&upper, 0o755).map_err(not_stored)?;
    let unpack = |tree: &Path, budget: &mut Budget| {
        let fill =
            |blob, diff_id: &str, budget: &mut Budget| fill(Path::new("."), blob, diff_id, budget);
        read_confined(source, tree, confine::UNPACK, budget, fill)
    };
    if below.is_empty() {
        return unpack(&upper, budget);
    }
    // On an overlay of the lower layers, so that paths through their symlinks resolve, and the
    // kernel creates the whiteouts.
    let lower: Vec<_> = below.iter().map(|chain| dirs.layer(chain)).collect();
    let merged = work.join("merged");
    overlay::mount(&lower, &upper, &work.join("work"), &merged, overlay::COPY_WHOLE)
        .map_err(not_stored)?;
    let filled = unpack(&merged, budget);
    let unmounted = overlay::unmount(&merged).map_err(not_stored);
    filled.and(unmounted)
}

/// Reads a layer in a process that is confined to a directory.
fn read_confined(
    source: Source<'_>,
    directory: &Path,
    capabilities: CapabilitySet,
    budget: &mut Budget,
    read: impl FnOnce(File, &str, &mut Budget) -> io::Result<()>,
) -> Result<(), Error> {
    let blob = open(source.blob).map_err(|error| source.failure(error))?;
    let directory = confine::open(directory).map_err(|error| source.not_stored(&error))?;
    let (retained, mut left) = ([blob.as_raw_fd()], *budget);
    let left =
        confine::run("unpacker", Place::Root(directory.as_fd()), capabilities, &retained, || {
            read(blob, source.diff_id, &mut left).map_err(|error| source.failure(error))?;
            Ok(left)
        })?;
    budget.reduce(&left);
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Applies a layer to a directory and checks its diff id.
pub(crate) fn fill(
    into: &Path,
    blob: impl Read + Seek + 'static,
    diff_id: &str,
    budget: &mut Budget,
) -> io::Result<()> {
    let root = Root::open(into).map_err(|error| not_stored(&error))?;
    let mut contents = Contents::new(blob, budget.bytes.saturating_add(1))?;
    let limits = (budget.entries, budget.disk_bytes);
    let applied = Applier::new(root, limits.0, limits.1).apply_all(&mut contents);
    // The digest also covers data after the end of the tar.
    let drained = applied.and_then(|left| contents.drain().map(|()| left));
    let (entries, disk_bytes) = *drained.as_ref().unwrap_or(&limits);
    finish(contents, diff_id, budget, drained.map(drop))?;
    (budget.entries, budget.disk_bytes) = (entries, disk_bytes);
    Ok(())
}

/// Opens a layer that a confined process has stored: it may be anything.
pub(crate) fn open(blob: &Path) -> io::Result<File> {
    let missing = |error: io::Error| with_context("a layer is missing", &error);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(blob, flags, Mode::empty());
    let file = file.map(File::from).map_err(|error| missing(error.into()))?;
    if file.metadata().map_err(missing)?.is_file() {
        return Ok(file);
    }
    Err(missing(io::Error::other("not a file")))
}

/// Charges the budget and compares the digest.
fn finish(
    contents: Contents,
    diff_id: &str,
    budget: &mut Budget,
    drained: io::Result<()>,
) -> io::Result<()> {
    budget.bytes = contents.left().saturating_sub(1);
    if contents.left() == 0 {
        return Err(too_large());
    }
    drained?;
    let found = contents.digest();
    if found == diff_id {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "a layer's content does not match its digest: expected {diff_id}, got {found}"
    )))
}

/// Converts an error of an image's content.
pub(crate) fn not_unpacked(image: &str, cause: io::Error) -> Error {
    let message = cause.to_string();
    match cause.kind() {
        io::ErrorKind::StorageFull => Error::io(format!("Unpacking image {image} failed"), cause),
        io::ErrorKind::FileTooLarge => Error::ImageTooLarge(message),
        _ => Error::BadImage(message),
    }
}

/// The unpacked size exceeds the budget.
pub(crate) fn too_large() -> io::Error {
    let why = "unpacked size exceeds the maximum image size";
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

/// The same kind of error, with context.
pub(crate) fn with_context(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} ({error})"))
}

fn not_stored(error: &io::Error) -> io::Error {
    with_context("storing layers failed", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blob_that_is_not_a_file_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link, fifo] = ["file", "link", "fifo"].map(|name| dir.path().join(name));
        fs::write(&file, "layer").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(open(&file).is_ok());
        for bad in [&link, &fifo, dir.path()] {
            let why = open(bad).unwrap_err().to_string();
            assert!(why.starts_with("a layer is missing"), "{why}");
        }
    }
}
