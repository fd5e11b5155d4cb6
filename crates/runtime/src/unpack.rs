//! Unpacks layers. Runs only in the fetcher: layers are the most hostile input of all.

mod apply;
pub(crate) mod overlay;
pub(crate) mod root;
pub(crate) mod stream;

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::Path;

use super::dirs::Dirs;
use super::usage;
use apply::Applier;
use root::Root;
use stream::Contents;

/// Remaining size budget of an image.
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
}

/// Unpacks one layer on top of those below it, unless it is stored already.
///
/// `chains` are the chain ids up to this layer. The result is published under its name only when it
/// is complete and matches its diff id. Returns whether it was unpacked, and a lock that protects
/// it against garbage collection.
pub(crate) fn layer(
    dirs: &Dirs,
    chains: &[String],
    blob: &Path,
    diff_id: &str,
    budget: &mut Budget,
) -> io::Result<(bool, File)> {
    let (chain, below) = chains.split_last().ok_or(io::ErrorKind::InvalidInput)?;
    let finished = dirs.layer(chain);
    if let Some(lock) = usage::lock_layer(&finished).map_err(|error| not_stored(&error))? {
        return Ok((false, lock));
    }
    let work = dirs.temporary().join(format!("{}-{}", std::process::id(), &chain[..12]));
    let unpacked = build(dirs, below, blob, diff_id, &work, budget);
    let placed = unpacked
        .and_then(|()| place(&work.join("upper"), &finished).map_err(|error| not_stored(&error)));
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

/// Checks that a blob is the layer with this diff id, without unpacking it.
pub(crate) fn verify(blob: &Path, diff_id: &str, budget: &mut Budget) -> io::Result<()> {
    let mut contents = Contents::new(open(blob)?, budget.bytes.saturating_add(1))?;
    let drained = contents.drain();
    finish(contents, diff_id, budget, drained)
}

fn build(
    dirs: &Dirs,
    below: &[String],
    blob: &Path,
    diff_id: &str,
    work: &Path,
    budget: &mut Budget,
) -> io::Result<()> {
    for name in ["upper", "work", "merged"] {
        fs::create_dir_all(work.join(name)).map_err(|error| not_stored(&error))?;
    }
    let upper = work.join("upper");
    // Images expect a readable root, regardless of the umask.
    set_mode(&upper, 0o755).map_err(|error| not_stored(&error))?;
    if below.is_empty() {
        return fill(&upper, open(blob)?, diff_id, budget);
    }
    // On an overlay of the lower layers, so that paths through their symlinks resolve, and the
    // kernel creates the whiteouts.
    let lower: Vec<_> = below.iter().map(|chain| dirs.layer(chain)).collect();
    let merged = work.join("merged");
    overlay::mount(&lower, &upper, &work.join("work"), &merged, overlay::COPY_WHOLE)
        .map_err(|error| not_stored(&error))?;
    let filled = open(blob).and_then(|blob| fill(&merged, blob, diff_id, budget));
    let unmounted = overlay::unmount(&merged).map_err(|error| not_stored(&error));
    filled.and(unmounted)
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

fn open(blob: &Path) -> io::Result<File> {
    File::open(blob).map_err(|error| with_context("a layer is missing", &error))
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
