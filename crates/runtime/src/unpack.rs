//! Unpacks layers. Runs in the fetcher alone: layers are the most hostile input there is.

mod apply;
pub(crate) mod overlay;
pub(crate) mod root;
mod stream;

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::dirs::Dirs;
use apply::Applier;
use root::Root;
use stream::Contents;

/// What an image may still use up.
pub(crate) struct Budget {
    /// Bytes, unpacked.
    pub(crate) bytes: u64,
    /// Files, directories and the like.
    pub(crate) entries: u64,
}

/// Unpacks one layer over those below it, unless that was done before.
///
/// `chains` are the layers up to this one. The result appears under its name only when it is whole
/// and is what the image says it is.
pub(crate) fn layer(
    dirs: &Dirs,
    chains: &[String],
    blob: &Path,
    diff_id: &str,
    budget: &mut Budget,
) -> io::Result<()> {
    let Some((chain, below)) = chains.split_last() else { return Ok(()) };
    let finished = dirs.layer(chain);
    if finished.exists() {
        return Ok(());
    }
    let work = dirs.temporary().join(format!("{}-{}", std::process::id(), &chain[..12]));
    let unpacked = build(dirs, below, blob, diff_id, &work, budget);
    let placed = unpacked.and_then(|()| match fs::rename(work.join("upper"), &finished) {
        // Another image with the same layers was quicker.
        Err(_) if finished.exists() => Ok(()),
        other => other.map_err(|error| unstored(&error)),
    });
    let _ = fs::remove_dir_all(&work);
    placed
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
        fs::create_dir_all(work.join(name)).map_err(|error| unstored(&error))?;
    }
    let upper = work.join("upper");
    // Images expect the root to be readable, whatever this process makes of new directories.
    set_mode(&upper, 0o755).map_err(|error| unstored(&error))?;
    if below.is_empty() {
        return fill(&upper, blob, diff_id, budget);
    }
    // Over the layers below, so that paths through their symlinks come out right, and removals
    // become what the kernel itself makes of them.
    let lower: Vec<_> = below.iter().map(|chain| dirs.layer(chain)).collect();
    let merged = work.join("merged");
    overlay::mount(&lower, &upper, &work.join("work"), &merged)
        .map_err(|error| unstored(&error))?;
    let filled = fill(&merged, blob, diff_id, budget);
    let unmounted = overlay::unmount(&merged).map_err(|error| unstored(&error));
    filled.and(unmounted)
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

fn fill(into: &Path, blob: &Path, diff_id: &str, budget: &mut Budget) -> io::Result<()> {
    let file = File::open(blob).map_err(|error| because("a layer is not here", &error))?;
    let root = Root::open(into).map_err(|error| unstored(&error))?;
    let mut contents = Contents::new(file, budget.bytes.saturating_add(1))?;
    let applied = Applier::new(root, budget.entries).apply_all(&mut contents);
    // A tar may go on after its end; the digest covers that too.
    let drained = applied.and_then(|entries| contents.drain().map(|()| entries));
    budget.bytes = contents.left().saturating_sub(1);
    if contents.left() == 0 {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "unpacked it is larger than an image may be (setting: maximum image size)",
        ));
    }
    let entries = drained?;
    budget.entries = budget.entries.saturating_sub(entries);
    let found = contents.digest();
    if found == diff_id {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "a layer's contents are not what it says: expected {diff_id}, got {found}"
    )))
}

/// The same error, with what failed because of it.
fn because(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} ({error})"))
}

fn unstored(error: &io::Error) -> io::Error {
    because("its layers can't be stored", error)
}
