//! User namespaces: root of a container is an ordinary user of the host.
//!
//! Layers are stored once, with the ids of the image. A container sees them shifted into the id
//! range of its owner: through an idmapped mount, or chowned in the container's own overlay where
//! the kernel has no idmapped mounts.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::sched::{CloneFlags, setns};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid};
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use serde::{Deserialize, Serialize};

use crate::ids::RANGE;
use crate::raw;
use crate::unpack::overlay;

/// Id of files whose owner is not in the range: `nobody`.
const OVERFLOW: u32 = 65_534;

/// User namespace of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UserNs {
    /// Id on the host of the container's id 0.
    pub(crate) first_id: u32,
    pub(crate) layers: LayerIds,
}

/// How a container sees the layers of its image in its own id range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LayerIds {
    /// The kernel shifts the ids.
    Idmapped,
    /// Every file is chowned when the container starts.
    Chowned,
}

/// A user namespace with its id range, and a network namespace that it owns.
pub(crate) struct Namespaces {
    pub(crate) user: OwnedFd,
    pub(crate) network: OwnedFd,
}

impl Namespaces {
    /// Creates the namespaces. They live as long as the descriptors, or processes in them.
    pub(crate) fn new(first_id: u32) -> io::Result<Self> {
        let flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET;
        let (holder, release) = raw::hold(flags)?;
        let created = Self::of(holder, first_id);
        drop(release);
        raw::wait(holder)?;
        created
    }

    fn of(process: i32, first_id: u32) -> io::Result<Self> {
        let map = format!("0 {first_id} {RANGE}");
        for file in ["uid_map", "gid_map"] {
            fs::write(format!("/proc/{process}/{file}"), &map)?;
        }
        let open = |kind| File::open(format!("/proc/{process}/ns/{kind}")).map(OwnedFd::from);
        Ok(Self { user: open("user")?, network: open("net")? })
    }

    /// Moves this process into the network namespace.
    pub(crate) fn enter_network(&self) -> io::Result<()> {
        Ok(setns(self.network.as_fd(), CloneFlags::CLONE_NEWNET)?)
    }

    /// Mounts a directory with the ids of the user namespace, read-only.
    pub(crate) fn mount_idmapped(&self, directory: &Path, target: &Path) -> io::Result<()> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = open_tree(CWD, directory, flags)?;
        raw::set_idmap(tree.as_fd(), self.user.as_fd())?;
        Ok(move_mount(&tree, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
    }

    /// Checks that processes in the namespaces can mount what a container needs. `directory` must
    /// be searchable for all users.
    fn check_mounts(&self, directory: &Path) -> io::Result<()> {
        for name in ["proc", "sysfs", "mqueue"] {
            fs::create_dir_all(directory.join(name))?;
        }
        let directory = rustix::fs::open(directory, OFlags::PATH, Mode::empty())?;
        let mount_all = || {
            for kind in ["proc", "sysfs", "mqueue"] {
                let flags = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NODEV;
                rustix::mount::mount(kind, kind, kind, flags | MountFlags::RDONLY, None)?;
            }
            Ok(())
        };
        raw::run(CloneFlags::empty(), || {
            rustix::process::fchdir(&directory)?;
            self.enter_network()?;
            setns(self.user.as_fd(), CloneFlags::CLONE_NEWUSER)?;
            rustix::thread::set_thread_gid(Gid::ROOT)?;
            rustix::thread::set_thread_uid(Uid::ROOT)?;
            let own = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
            raw::run(own, mount_all)
        })
    }
}

/// Which kind works on this host, tried in a directory of its own; the error says why none does.
pub(crate) fn probe(work: &Path, use_idmapped: bool) -> Result<LayerIds, String> {
    let first_id = crate::ids::HELPER_ID;
    let namespaces = Namespaces::new(first_id).map_err(|error| not_created(&error))?;
    let directory = work.join("userns");
    let failed = |error: io::Error| format!("{error}");
    fs::create_dir_all(&directory).map_err(failed)?;
    set_mode(&directory, 0o755).map_err(failed)?;
    namespaces.check_mounts(&directory).map_err(|error| {
        format!(
            "proc, sysfs or mqueue can't be mounted in a user namespace ({error}): /proc or /sys of \
             this machine are partly hidden, as in a container that is not privileged"
        )
    })?;
    if use_idmapped && is_idmapped(&namespaces, work, first_id).unwrap_or(false) {
        return Ok(LayerIds::Idmapped);
    }
    chowns(work, first_id).map(|()| LayerIds::Chowned).map_err(|error| {
        format!(
            "neither idmapped mounts (Linux 5.19) nor overlayfs with metacopy work in {} ({error})",
            work.parent().unwrap_or(work).display()
        )
    })
}

fn not_created(error: &io::Error) -> String {
    let max = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    match max.trim() {
        "0" => "user namespaces are disabled: set the sysctl user.max_user_namespaces".to_owned(),
        _ => format!("user namespaces can't be created ({error})"),
    }
}

/// Whether an overlay over an idmapped layer shows shifted ids.
fn is_idmapped(namespaces: &Namespaces, work: &Path, first_id: u32) -> io::Result<bool> {
    let (root, mapped) = (overlay_in(work, "idmapped")?, work.join("idmapped/mapped"));
    fs::create_dir_all(&mapped)?;
    namespaces.mount_idmapped(&work.join("idmapped"), &mapped)?;
    let lower = [mapped.join("lower")];
    overlay::mount(&lower, &root.0, &root.1, &root.2, overlay::COPY_WHOLE)?;
    let found = rustix::fs::stat(root.2.join("file"))?;
    overlay::unmount(&root.2)?;
    overlay::unmount(&mapped)?;
    Ok((found.st_uid, found.st_gid) == (first_id, first_id))
}

fn chowns(work: &Path, first_id: u32) -> io::Result<()> {
    let root = overlay_in(work, "chowned")?;
    let lower = [work.join("chowned/lower")];
    overlay::mount(&lower, &root.0, &root.1, &root.2, overlay::COPY_METADATA)?;
    let chowned = chown_tree(&root.2, first_id);
    overlay::unmount(&root.2)?;
    chowned
}

/// Directories of an overlay for a probe: upper, work and root. Its layer has one file.
type OverlayDirs = (std::path::PathBuf, std::path::PathBuf, std::path::PathBuf);

fn overlay_in(work: &Path, name: &str) -> io::Result<OverlayDirs> {
    let at = |part: &str| work.join(name).join(part);
    for part in ["lower", "upper", "work", "root"] {
        fs::create_dir_all(at(part))?;
    }
    fs::write(at("lower/file"), "")?;
    Ok((at("upper"), at("work"), at("root")))
}

/// Shifts the owners of a tree into a range. Ids beyond the range become `nobody`.
pub(crate) fn chown_tree(root: &Path, first_id: u32) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = rustix::fs::open(root, flags, Mode::empty())?;
    chown_at(root.as_fd(), c".", first_id)?;
    // Paths, not descriptors: layers have paths of at most 4096 bytes, but thousands of levels.
    let mut directories = vec![std::ffi::CString::from(c".")];
    while let Some(path) = directories.pop() {
        let within = rustix::fs::ResolveFlags::BENEATH | rustix::fs::ResolveFlags::NO_SYMLINKS;
        let directory = rustix::fs::openat2(&root, &path, flags, Mode::empty(), within)?;
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if chown_at(directory.as_fd(), name, first_id)? == FileType::Directory {
                let child = [path.as_bytes(), b"/", name.to_bytes()].concat();
                directories.push(std::ffi::CString::new(child)?);
            }
        }
    }
    Ok(())
}

fn chown_at(parent: BorrowedFd<'_>, name: &std::ffi::CStr, first_id: u32) -> io::Result<FileType> {
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = FileType::from_raw_mode(found.st_mode);
    let shift = |id: u32| if id < RANGE { first_id + id } else { first_id + OVERFLOW };
    let (uid, gid) = (Uid::from_raw(shift(found.st_uid)), Gid::from_raw(shift(found.st_gid)));
    // A hard link is met twice.
    if found.st_uid >= first_id && found.st_uid - first_id < RANGE {
        return Ok(kind);
    }
    rustix::fs::chownat(parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    // Changing the owner clears them.
    if kind == FileType::RegularFile && found.st_mode & 0o6000 != 0 {
        let mode = Mode::from_raw_mode(found.st_mode & 0o7777);
        rustix::fs::chmodat(parent, name, mode, AtFlags::empty())?;
    }
    Ok(kind)
}

/// Makes the path of a bundle searchable for the users of containers, in this mount namespace only.
///
/// The first directory of the path that others may not search is covered by an empty file system
/// with nothing but the bundle.
pub(crate) fn expose(bundle: &Path) -> io::Result<()> {
    set_mode(bundle, 0o711)?;
    let is_hidden = |path: &&Path| {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o001 == 0)
    };
    let mut ancestors: Vec<&Path> = bundle.ancestors().skip(1).collect();
    ancestors.reverse();
    let Some(hidden) = ancestors.into_iter().find(is_hidden) else { return Ok(()) };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(CWD, bundle, flags)?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
    rustix::mount::mount("tmpfs", hidden, "tmpfs", flags, c"mode=711,size=64k")?;
    fs::create_dir_all(bundle)?;
    for directory in bundle.ancestors().take_while(|path| *path != hidden) {
        set_mode(directory, 0o711)?;
    }
    Ok(move_mount(&tree, "", CWD, bundle, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Path through which another process of the shim opens a namespace.
pub(crate) fn path_of(namespace: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", namespace.as_raw_fd())
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
