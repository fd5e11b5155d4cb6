//! Unpacks layers. Runs only in the fetcher: layers are the most hostile input of all.

mod apply;
pub(crate) mod overlay;
pub(crate) mod root;
pub(crate) mod stream;

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::dirs::Dirs;
use apply::Applier;
use root::Root;
use stream::Contents;

/// Remaining size budget of an image.
pub(crate) struct Budget {
    /// Unpacked bytes.
    pub(crate) bytes: u64,
    /// Files, directories and other entries.
    pub(crate) entries: u64,
}

/// Unpacks one layer on top of those below it, unless it is stored already.
///
/// `chains` are the chain ids up to this layer. The result is published under its name only when it
/// is complete and matches its diff id. Returns whether it was unpacked.
pub(crate) fn layer(
    dirs: &Dirs,
    chains: &[String],
    blob: &Path,
    diff_id: &str,
    budget: &mut Budget,
) -> io::Result<bool> {
    let Some((chain, below)) = chains.split_last() else { return Ok(false) };
    let finished = dirs.layer(chain);
    if finished.exists() {
        return Ok(false);
    }
    let work = dirs.temporary().join(format!("{}-{}", std::process::id(), &chain[..12]));
    let unpacked = build(dirs, below, blob, diff_id, &work, budget);
    let placed = unpacked.and_then(|()| match fs::rename(work.join("upper"), &finished) {
        // Another image with the same layer was faster.
        Err(_) if finished.exists() => Ok(()),
        other => other.map_err(|error| not_stored(&error)),
    });
    let _ = fs::remove_dir_all(&work);
    placed.map(|()| true)
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
        return fill(&upper, blob, diff_id, budget);
    }
    // On an overlay of the lower layers, so that paths through their symlinks resolve, and the
    // kernel creates the whiteouts.
    let lower: Vec<_> = below.iter().map(|chain| dirs.layer(chain)).collect();
    let merged = work.join("merged");
    overlay::mount(&lower, &upper, &work.join("work"), &merged)
        .map_err(|error| not_stored(&error))?;
    let filled = fill(&merged, blob, diff_id, budget);
    let unmounted = overlay::unmount(&merged).map_err(|error| not_stored(&error));
    filled.and(unmounted)
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

fn fill(into: &Path, blob: &Path, diff_id: &str, budget: &mut Budget) -> io::Result<()> {
    let file = open(blob)?;
    let root = Root::open(into).map_err(|error| not_stored(&error))?;
    let mut contents = Contents::new(file, budget.bytes.saturating_add(1))?;
    let applied = Applier::new(root, budget.entries).apply_all(&mut contents);
    // The digest also covers data after the end of the tar.
    let drained = applied.and_then(|entries| contents.drain().map(|()| entries));
    let entries = *drained.as_ref().unwrap_or(&0);
    finish(contents, diff_id, budget, drained.map(drop))?;
    budget.entries = budget.entries.saturating_sub(entries);
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
