//! Removal of directory trees that untrusted programs have created.
//!
//! `std::fs::remove_dir_all` recurses: a tree of some thousand levels exhausts the stack or the
//! descriptors of the process. This one holds one directory open at a time and goes up by `..`.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, unlinkat};
use rustix::io::Errno;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Device and inode number of a directory.
type Identity = (u64, u64);

/// Removes a directory with its content, a file, or a symlink. A missing one is not an error.
pub fn remove(path: &Path) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let parent = match openat(CWD, parent, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        parent => parent?,
    };
    let name = CString::new(name.as_encoded_bytes())?;
    remove_at(&parent, &name)
}

/// Removes `name` in a directory, as [`remove`].
pub fn remove_at(parent: impl AsFd, name: &CStr) -> io::Result<()> {
    let parent = parent.as_fd();
    while !try_remove(parent, name, FileType::Unknown)? {
        empty(openat(parent, name, DIRECTORY, Mode::empty())?)?;
    }
    Ok(())
}

/// Removes the content of a directory.
///
/// Fails if a directory is moved meanwhile: `..` must not lead out of the tree.
pub fn empty(root: OwnedFd) -> io::Result<()> {
    let mut current = root;
    let mut above: Vec<Identity> = Vec::new();
    loop {
        if let Some(name) = sweep(&current)? {
            above.push(identity(&current)?);
            current = openat(&current, &name, DIRECTORY, Mode::empty())?;
        } else if let Some(expected) = above.pop() {
            current = openat(&current, c"..", DIRECTORY, Mode::empty())?;
            if identity(&current)? != expected {
                return Err(io::Error::other("a directory was moved during its removal"));
            }
        } else {
            return Ok(());
        }
    }
}

/// Removes files and empty directories. Returns a directory that is not empty, if it met one.
fn sweep(directory: &OwnedFd) -> io::Result<Option<CString>> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_self = matches!(name.to_bytes(), b"." | b"..");
        if !is_self && !try_remove(directory, name, entry.file_type())? {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

/// Removes an entry. Returns false if it is a directory that is not empty.
fn try_remove(parent: impl AsFd, name: &CStr, kind: FileType) -> io::Result<bool> {
    if kind != FileType::Directory {
        match unlinkat(&parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(true),
            // A directory. Which of the two depends on the file system.
            Err(Errno::ISDIR | Errno::PERM) if kind == FileType::Unknown => {}
            Err(error) => return Err(error.into()),
        }
    }
    match unlinkat(&parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn identity(directory: &OwnedFd) -> io::Result<Identity> {
    let stat = fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    /// Deeper than a recursive removal survives.
    fn dig(directory: &Path, depth: usize) {
        let mut current = openat(CWD, directory, DIRECTORY, Mode::empty()).unwrap();
        let name = OsStr::from_bytes(b"-rf \n\xff");
        for _ in 0..depth {
            rustix::fs::mkdirat(&current, name, Mode::from_raw_mode(0o700)).unwrap();
            current = openat(&current, name, DIRECTORY, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn tree_of_any_depth_and_names_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        dig(&tree, 20_000);
        for at in 0..300 {
            let wide = tree.join(format!("wide-{at}"));
            fs::create_dir(&wide).unwrap();
            fs::write(wide.join("file"), "").unwrap();
        }
        remove(&tree).unwrap();
        assert!(!tree.exists());
        remove(&tree).unwrap();
        remove(&dir.path().join("missing/tree")).unwrap();
    }

    #[test]
    fn symlinks_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (outside, tree) = (dir.path().join("outside"), dir.path().join("tree"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "innocent").unwrap();
        fs::create_dir(&tree).unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        remove(&tree).unwrap();
        std::os::unix::fs::symlink(&outside, &tree).unwrap();
        remove(&tree).unwrap();
        assert!(!tree.exists() && outside.join("victim").exists());
    }
}
