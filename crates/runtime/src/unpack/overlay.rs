//! Overlay mounts: read-only layers below one writable directory.

use std::ffi::CString;
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

/// Moves this process into a new mount namespace, private in both directions.
pub(crate) fn new_mount_namespace() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(rustix::mount::mount_change("/", private)?)
}

/// A changed file of a layer is copied whole.
pub(crate) const COPY_WHOLE: &str = "metacopy=off,redirect_dir=off";
/// Only its metadata are copied if only these change.
pub(crate) const COPY_METADATA: &str = "metacopy=on,redirect_dir=on";

/// Mounts the layers, lowest first, with `upper` on top, at `target`.
pub(crate) fn mount(
    layers: &[impl AsRef<Path>],
    upper: &Path,
    work: &Path,
    target: &Path,
    options: &str,
) -> io::Result<()> {
    // By descriptor: short, since the options must fit into a page, and without escaping.
    let mut open = Vec::with_capacity(layers.len());
    let mut lower = String::new();
    for layer in layers.iter().rev() {
        let layer = directory(layer.as_ref())?;
        let colon = if lower.is_empty() { "" } else { ":" };
        let _ = write!(lower, "{colon}/proc/self/fd/{}", layer.as_raw_fd());
        open.push(layer);
    }
    let (upper, work) = (directory(upper)?, directory(work)?);
    let data = format!(
        "lowerdir={lower},upperdir=/proc/self/fd/{},workdir=/proc/self/fd/{},index=off,{options}",
        upper.as_raw_fd(),
        work.as_raw_fd()
    );
    let data = CString::new(data)?;
    // No devices, regardless of the layers' content.
    rustix::mount::mount("overlay", target, "overlay", MountFlags::NODEV, data.as_c_str())?;
    Ok(())
}

fn directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Unmounts an overlay.
pub(crate) fn unmount(target: &Path) -> io::Result<()> {
    Ok(rustix::mount::unmount(target, UnmountFlags::DETACH)?)
}
