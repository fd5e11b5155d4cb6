//! A directory tree that no path escapes: the kernel resolves every path inside it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// No legitimate layer has longer paths.
const MAX_PATH: usize = 4096;

/// Whiteouts remove no deeper trees: each level takes stack and a descriptor.
const MAX_DEPTH: usize = 512;

/// Root of a directory tree.
pub(crate) struct Root(OwnedFd);

impl Root {
    /// Opens the tree below a directory.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(fs::open(path, flags, Mode::empty())?))
    }

    /// Opens a path. Symlinks are followed as if the tree were the whole file system.
    pub(crate) fn resolve(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        loop {
            match fs::openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), within) {
                // A concurrent rename: the kernel requires a retry.
                Err(Errno::AGAIN) => {}
                other => return Ok(other?),
            }
        }
    }

    /// Opens a regular file for reading.
    pub(crate) fn file(&self, path: &Path) -> io::Result<File> {
        let file = self.resolve(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let kind = FileType::from_raw_mode(fs::fstat(&file)?.st_mode);
        if kind == FileType::RegularFile {
            return Ok(File::from(file));
        }
        Err(io::ErrorKind::InvalidInput.into())
    }

    /// Opens a directory; creates it and its parents if missing, for a user and group of this id.
    pub(crate) fn directory_of(&self, path: &Path, owner: Option<u32>) -> io::Result<OwnedFd> {
        match self.resolve(path, OFlags::PATH | OFlags::DIRECTORY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.directory_of(path.parent().unwrap_or(Path::new("")), owner)?;
        match fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
            Ok(()) => {
                let (uid, gid) = (owner.map(fs::Uid::from_raw), owner.map(fs::Gid::from_raw));
                fs::chownat(&parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(fs::openat(&parent, name, flags, Mode::empty())?)
    }
}

/// Normalises a path inside the tree. Rejects `..`, which no legitimate layer contains.
pub(crate) fn clean(path: &Path) -> io::Result<PathBuf> {
    if path.as_os_str().len() > MAX_PATH {
        return Err(io::Error::other("a path in a layer is longer than 4096 bytes"));
    }
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => cleaned.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::Error::other(format!(
                    "path {} leads out of the layer",
                    path.display()
                )));
            }
        }
    }
    Ok(cleaned)
}

/// Removes `name` recursively, except what `keep` selects. Never follows symlinks.
pub(crate) fn remove(
    parent: impl AsFd,
    name: &OsStr,
    path: &Path,
    keep: &dyn Fn(&Path) -> bool,
) -> io::Result<()> {
    remove_below(parent.as_fd(), name, path, keep, MAX_DEPTH)
}

/// Removes the content of the directory `name`, except what `keep` selects.
pub(crate) fn empty(
    parent: impl AsFd,
    name: &OsStr,
    path: &Path,
    keep: &dyn Fn(&Path) -> bool,
) -> io::Result<()> {
    empty_below(parent.as_fd(), name, path, keep, MAX_DEPTH)
}

fn remove_below(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    path: &Path,
    keep: &dyn Fn(&Path) -> bool,
    depth: usize,
) -> io::Result<()> {
    let kind = match fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(metadata) => FileType::from_raw_mode(metadata.st_mode),
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let is_directory = kind == FileType::Directory;
    if is_directory {
        empty_below(parent, name, path, keep, depth)?;
    }
    if keep(path) {
        return Ok(());
    }
    let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(fs::unlinkat(parent, name, flags)?)
}

fn empty_below(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    path: &Path,
    keep: &dyn Fn(&Path) -> bool,
    depth: usize,
) -> io::Result<()> {
    let depth = depth.checked_sub(1).ok_or_else(|| {
        io::Error::other(format!("a layer removes a tree of more than {MAX_DEPTH} levels"))
    })?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = fs::openat(parent, name, flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in fs::Dir::read_from(&directory)? {
        let entry = entry?;
        let bytes = entry.file_name().to_bytes();
        if bytes != b"." && bytes != b".." {
            names.push(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes).to_owned());
        }
    }
    for child in names {
        remove_below(directory.as_fd(), &child, &path.join(&child), keep, depth)?;
    }
    Ok(())
}
