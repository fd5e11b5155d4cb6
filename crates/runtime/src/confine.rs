//! Confinement of processes that handle untrusted input: a user without rights, few or no
//! capabilities, and one directory.
//!
//! A privileged helper process forks a confined one for each step that reads what others wrote. It
//! checks what the confined process reports: that one may have been taken over.

mod process;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::process::{DumpableBehavior, chroot, fchdir, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::ids::HELPER_ID;

pub(crate) use process::{Channel, Process, run};

/// Id for hosts without [`HELPER_ID`], such as containers with their own user namespace.
const NOBODY: u32 = 65_534;

/// No capability.
pub(crate) const NOTHING: CapabilitySet = CapabilitySet::empty();
/// Capabilities that remove any file. Not `CAP_DAC_READ_SEARCH`: it opens files by handle, also
/// those outside of the root directory.
pub(crate) const REMOVE: CapabilitySet = CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::FOWNER);
/// Capabilities that create files of any owner and mode. The kernel creates the whiteouts.
pub(crate) const UNPACK: CapabilitySet =
    REMOVE.union(CapabilitySet::CHOWN).union(CapabilitySet::FSETID).union(CapabilitySet::SETFCAP);

/// The directory of a confined process, which becomes its working directory.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// It reaches nothing else.
    Root(BorrowedFd<'a>),
    /// It also reaches what every user may read.
    Directory(BorrowedFd<'a>),
}

/// User and group id of confined processes.
pub(crate) fn id() -> u32 {
    let is_mapped = |file: &str| {
        let map = fs::read_to_string(file).unwrap_or_default();
        map.lines().any(|line| maps(line, HELPER_ID))
    };
    let is_mapped = is_mapped("/proc/self/uid_map") && is_mapped("/proc/self/gid_map");
    if is_mapped { HELPER_ID } else { NOBODY }
}

/// Whether a line of a user namespace's map (first id inside, outside, count) contains an id.
fn maps(line: &str, id: u32) -> bool {
    let mut fields = line.split_whitespace().map(|field| field.parse::<u64>().ok());
    let (first, count) = (fields.next().flatten(), fields.nth(1).flatten());
    first.zip(count).is_some_and(|(first, count)| (first..first + count).contains(&id.into()))
}

/// Creates and opens a directory for confined processes. Its content is retained, unless other
/// processes may have created it.
pub(crate) fn directory(path: &Path) -> io::Result<OwnedFd> {
    let id = id();
    if fs::symlink_metadata(path).is_ok_and(|found| found.uid() != id) {
        base::tree::remove(path)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    chown(path, Some(id), Some(id))?;
    open(path)
}

/// Opens a directory as the place of a process.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Moves this process into an empty network namespace, if the host permits it.
pub(crate) fn leave_network() {
    let _ = unshare(CloneFlags::CLONE_NEWNET);
}

/// Confines this process, which must be single-threaded, for ever.
///
/// A process that is not root has no privileges to drop: it only moves to its directory.
pub(crate) fn confine(place: Place<'_>, capabilities: CapabilitySet) -> io::Result<()> {
    set_no_new_privs(true)?;
    let (Place::Root(directory) | Place::Directory(directory)) = place;
    fchdir(directory)?;
    if geteuid().is_root() {
        // Before the root directory changes: it needs /proc.
        let id = id();
        if matches!(place, Place::Root(_)) {
            chroot(".")?;
        }
        drop_privileges(id, capabilities)?;
    }
    // After the change of user, which resets it.
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

fn drop_privileges(id: u32, capabilities: CapabilitySet) -> io::Result<()> {
    for number in 0..u64::BITS {
        // Fails for those that the kernel does not know. Programs gain none anyway.
        let _ = remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number));
    }
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    set_keep_capabilities(true)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    set_keep_capabilities(false)?;
    clear_ambient_capability_set()?;
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: capabilities, permitted: capabilities, inheritable };
    Ok(set_capabilities(None, sets)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_user_namespaces_are_read() {
        for (line, expected) in [
            ("         0          0 4294967295", true),
            ("0 100000 65536", false),
            ("1000000 5 1", true),
            ("999999 0 1", false),
            ("", false),
        ] {
            assert_eq!(maps(line, HELPER_ID), expected, "{line:?}");
        }
    }
}
