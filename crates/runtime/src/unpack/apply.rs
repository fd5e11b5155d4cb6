//! Applies the tar entries of one layer to a directory tree.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    self, AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities};
use tar::{Archive, Entry, EntryType};

use super::root::{self, Root};
use super::{too_large, with_context};

/// Size of a block of most file systems.
const BLOCK: u64 = 4096;
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Applies one layer.
pub(super) struct Applier {
    root: Root,
    max_entries: u64,
    /// Entries that may still be created.
    entries: u64,
    /// Bytes that may still be written, in whole blocks.
    disk_bytes: u64,
    /// Owner of directories that paths imply: root, if this process may create files of others.
    implied_owner: Option<u32>,
    /// Paths that this layer created: its whiteouts affect only the layers below.
    created: HashSet<PathBuf>,
}

/// Owner, mode and times of an entry.
struct Metadata {
    mode: Mode,
    owner: Option<Uid>,
    group: Option<Gid>,
    modified: Timestamps,
}

impl Applier {
    pub(super) fn new(root: Root, max_entries: u64, disk_bytes: u64) -> Self {
        let is_chown = |sets: CapabilitySets| sets.effective.contains(CapabilitySet::CHOWN);
        let implied_owner = capabilities(None).is_ok_and(is_chown).then_some(0);
        let (entries, created) = (max_entries, HashSet::new());
        Self { root, max_entries, entries, disk_bytes, implied_owner, created }
    }

    /// Applies all entries and returns what is left of the limits: entries and bytes on disk.
    pub(super) fn apply_all(mut self, contents: &mut impl Read) -> io::Result<(u64, u64)> {
        let broken = |error: io::Error| with_context("a layer is not a valid tar", &error);
        for entry in Archive::new(contents).entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            self.charge_entry()?;
            let path = PathBuf::from(OsString::from_vec(entry.path_bytes().into_owned()));
            let path = root::clean(&path)?;
            self.apply(&mut entry, &path)
                .map_err(|e| with_context(&format!("unpacking {} failed", path.display()), &e))?;
        }
        Ok((self.entries, self.disk_bytes))
    }

    /// Takes one entry from the budget.
    fn charge_entry(&mut self) -> io::Result<()> {
        self.entries = self.entries.checked_sub(1).ok_or_else(|| {
            let why = format!("more than {} files", self.max_entries);
            io::Error::new(io::ErrorKind::FileTooLarge, why)
        })?;
        Ok(())
    }

    /// Takes the blocks of so many bytes from the budget.
    fn charge(&mut self, bytes: u64) -> io::Result<()> {
        let blocks = bytes.checked_next_multiple_of(BLOCK).ok_or_else(too_large)?;
        self.disk_bytes = self.disk_bytes.checked_sub(blocks).ok_or_else(too_large)?;
        Ok(())
    }

    fn apply<R: Read>(&mut self, entry: &mut Entry<'_, R>, path: &Path) -> io::Result<()> {
        let kind = entry.header().entry_type();
        let Some(name) = path.file_name().map(OsStr::to_owned) else {
            return self.set_root(entry);
        };
        // Skipped: images need no devices, and the device 0/0 is a whiteout in an overlay.
        if matches!(kind, EntryType::Char | EntryType::Block | EntryType::XGlobalHeader) {
            return Ok(());
        }
        let above = path.parent().unwrap_or(Path::new(""));
        if let Some(rest) = name.as_bytes().strip_prefix(WHITEOUT) {
            return self.apply_whiteout(above, name.as_bytes(), OsStr::from_bytes(rest));
        }
        self.charge_missing(above)?;
        let parent = self.root.directory_of(above, self.implied_owner)?;
        clear(&parent, &name, path, kind)?;
        let metadata = Metadata::new(entry)?;
        match kind {
            EntryType::Directory => {
                self.charge(BLOCK)?;
                create_directory(&parent, &name)?;
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().ok_or(io::ErrorKind::InvalidData)?;
                fs::symlinkat(OsStr::from_bytes(&target), &parent, &name)?;
            }
            EntryType::Link => self.link(entry, &parent, &name)?,
            EntryType::Fifo => {
                fs::mknodat(&parent, &name, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
            }
            _ => return self.write(entry, &parent, &name, path, &metadata),
        }
        if kind != EntryType::Link {
            metadata.set(&parent, &name, kind == EntryType::Symlink)?;
        }
        self.record_created(path);
        Ok(())
    }

    /// Takes the directories that a path implies from the budget: one name may imply 2,048.
    fn charge_missing(&mut self, path: &Path) -> io::Result<()> {
        for path in path.ancestors() {
            match self.root.resolve(path, OFlags::PATH) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Other errors are reported by the creation of the directory.
                _ => break,
            }
            self.charge_entry()?;
            self.charge(BLOCK)?;
        }
        Ok(())
    }

    /// Sets the metadata of the root directory.
    fn set_root<R: Read>(&self, entry: &Entry<'_, R>) -> io::Result<()> {
        if entry.header().entry_type() != EntryType::Directory {
            return Ok(());
        }
        let root = self.root.resolve(Path::new(""), OFlags::PATH | OFlags::DIRECTORY)?;
        Metadata::new(entry)?.set(&root, OsStr::new("."), false)
    }

    fn write<R: Read>(
        &mut self,
        entry: &mut Entry<'_, R>,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
        metadata: &Metadata,
    ) -> io::Result<()> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = fs::openat(parent, name, flags, Mode::from_raw_mode(0o600))?;
        let mut file = std::fs::File::from(file);
        // A sparse entry announces little and yields much: what counts is what is written.
        let limit = self.disk_bytes.saturating_add(1);
        let written = io::copy(&mut entry.by_ref().take(limit), &mut file)?;
        self.charge(written)?;
        // The owner first: changing it clears the set-user-id bit.
        fs::fchown(&file, metadata.owner, metadata.group)?;
        fs::fchmod(&file, metadata.mode)?;
        set_attributes(entry, &file)?;
        fs::futimens(&file, &metadata.modified)?;
        self.record_created(path);
        Ok(())
    }

    /// Creates a hard link to a file inside the tree.
    fn link<R: Read>(
        &self,
        entry: &Entry<'_, R>,
        parent: &OwnedFd,
        name: &OsStr,
    ) -> io::Result<()> {
        let target = entry.link_name_bytes().ok_or(io::ErrorKind::InvalidData)?;
        let target = PathBuf::from(OsString::from_vec(target.into_owned()));
        let target = root::clean(&target)?;
        let target_name = target.file_name().ok_or(io::ErrorKind::InvalidData)?;
        let above = target.parent().unwrap_or(Path::new(""));
        let from = self.root.resolve(above, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(fs::linkat(&from, target_name, parent, name, AtFlags::empty())?)
    }

    /// Removes entries of lower layers.
    fn apply_whiteout(&self, above: &Path, whole: &[u8], name: &OsStr) -> io::Result<()> {
        let is_created = |path: &Path| self.created.contains(path);
        let parent = match self.root.resolve(above, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(parent) => parent,
            // Nothing to remove.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if whole == OPAQUE {
            return root::empty(&parent, OsStr::new("."), above, &is_created);
        }
        // Other names of this form are metadata of aufs.
        if name.as_bytes().starts_with(b".wh.") {
            return Ok(());
        }
        if matches!(name.as_bytes(), b"" | b"." | b"..") {
            return Err(io::Error::other("a whiteout removes its own directory"));
        }
        root::remove(&parent, name, &above.join(name), &is_created)
    }

    /// Records a path and its parents as created by this layer.
    fn record_created(&mut self, path: &Path) {
        for path in path.ancestors() {
            if !self.created.insert(path.to_owned()) {
                break;
            }
        }
    }
}

/// Removes what an entry replaces. Directories are merged.
fn clear(parent: &OwnedFd, name: &OsStr, path: &Path, kind: EntryType) -> io::Result<()> {
    match fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(existing) => {
            let is_directory = FileType::from_raw_mode(existing.st_mode) == FileType::Directory;
            if is_directory && kind == EntryType::Directory {
                return Ok(());
            }
            root::remove(parent, name, path, &|_| false)
        }
    }
}

fn create_directory(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sets file capabilities and `user.` attributes; others could control the overlay itself.
fn set_attributes<R: Read>(entry: &mut Entry<'_, R>, file: impl AsFd) -> io::Result<()> {
    let Some(extensions) = entry.pax_extensions()? else { return Ok(()) };
    for extension in extensions {
        let extension = extension?;
        let Some(name) = extension.key_bytes().strip_prefix(b"SCHILY.xattr.") else { continue };
        if name == b"security.capability" || name.starts_with(b"user.") {
            match fs::fsetxattr(&file, name, extension.value_bytes(), XattrFlags::empty()) {
                Ok(()) | Err(Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

impl Metadata {
    fn new<R: Read>(entry: &Entry<'_, R>) -> io::Result<Self> {
        let header = entry.header();
        let id = |id: u64| u32::try_from(id).ok().filter(|id| *id != u32::MAX);
        let at = Timespec {
            tv_sec: i64::try_from(header.mtime().unwrap_or(0)).unwrap_or(0),
            tv_nsec: 0,
        };
        Ok(Self {
            mode: Mode::from_raw_mode(header.mode()? & 0o7777),
            owner: id(header.uid()?).map(Uid::from_raw),
            group: id(header.gid()?).map(Gid::from_raw),
            modified: Timestamps { last_access: at, last_modification: at },
        })
    }

    /// Applies the metadata to an entry just created. A symlink has an owner but no mode.
    fn set(&self, parent: &OwnedFd, name: &OsStr, is_symlink: bool) -> io::Result<()> {
        let nofollow = AtFlags::SYMLINK_NOFOLLOW;
        fs::chownat(parent, name, self.owner, self.group, nofollow)?;
        if !is_symlink {
            fs::chmodat(parent, name, self.mode, AtFlags::empty())?;
        }
        Ok(fs::utimensat(parent, name, &self.modified, nofollow)?)
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{getgid, getuid};

    use super::*;

    /// A layer with one empty file.
    fn layer(path: &str) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_uid(getuid().as_raw().into());
        header.set_gid(getgid().as_raw().into());
        header.set_size(0);
        tar.append_data(&mut header, path, io::empty()).unwrap();
        tar.into_inner().unwrap()
    }

    fn apply(layer: &[u8], entries: u64, disk_bytes: u64) -> io::Result<(u64, u64)> {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        Applier::new(root, entries, disk_bytes).apply_all(&mut &layer[..])
    }

    #[test]
    fn implied_directories_count_against_the_limits() {
        let deep = layer(&format!("{}file", "d/".repeat(300)));
        assert_eq!(apply(&deep, 301, 300 * BLOCK).unwrap(), (0, 0));
        for (entries, disk_bytes) in [(300, 300 * BLOCK), (301, 300 * BLOCK - 1)] {
            let refused = apply(&deep, entries, disk_bytes).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge, "{refused}");
        }
    }
}
