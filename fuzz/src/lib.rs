//! Parts that several fuzz targets share: a directory that hostile archives must not leave.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Size of a block of most file systems.
const BLOCK: u64 = 4096;
const INNOCENT: &str = "innocent";

/// A directory to unpack to, and a file beside it that must not change.
pub struct Sandbox {
    outer: TempDir,
    /// Metadata of the file beside it.
    before: Vec<u64>,
}

/// Content of a directory tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Files, directories and other entries.
    pub entries: u64,
    /// Content of files, without regard to blocks.
    pub bytes: u64,
    /// Files and directories in whole blocks.
    pub disk_bytes: u64,
}

impl Sandbox {
    /// A new, empty directory.
    pub fn new() -> Self {
        let outer = tempfile::tempdir().expect("a temporary directory can be created");
        let mut sandbox = Self { outer, before: Vec::new() };
        fs::create_dir(sandbox.path()).expect("the directory is new");
        fs::write(sandbox.victim(), INNOCENT).expect("the file is new");
        sandbox.before = metadata(&sandbox.victim());
        sandbox
    }

    /// The directory to unpack to.
    pub fn path(&self) -> PathBuf {
        self.outer.path().join("inside")
    }

    fn victim(&self) -> PathBuf {
        self.outer.path().join("victim")
    }

    /// Checks that nothing outside of the directory has changed, and returns its content.
    pub fn check(self) -> Usage {
        let victim = fs::read_to_string(self.victim());
        assert_eq!(victim.ok().as_deref(), Some(INNOCENT), "a file outside was changed");
        assert_eq!(
            metadata(&self.victim()),
            self.before,
            "metadata of a file outside were changed"
        );
        let names = fs::read_dir(self.outer.path()).expect("the directory exists");
        assert_eq!(names.count(), 2, "a file outside was created or removed");
        let usage = usage(&self.path());
        base::tree::remove(self.outer.path()).expect("any tree can be removed");
        usage
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

/// Links, mode, owner and change time of a file.
fn metadata(path: &Path) -> Vec<u64> {
    let file = fs::symlink_metadata(path).expect("the file exists");
    let change = [file.ctime(), file.ctime_nsec()].map(i64::cast_unsigned);
    let ids = [file.mode(), file.uid(), file.gid()].map(u64::from);
    [&[file.ino(), file.nlink()][..], &ids, &change].concat()
}

/// Counts the entries below a directory, hard links once.
fn usage(root: &Path) -> Usage {
    let (mut usage, mut seen) = (Usage::default(), HashSet::new());
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        // Paths longer than the system permits can't be listed.
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            usage.entries += 1;
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                usage.disk_bytes += BLOCK;
                open.push(entry.path());
            } else if metadata.is_file() && seen.insert(metadata.ino()) {
                usage.bytes += metadata.len();
                usage.disk_bytes += metadata.len().next_multiple_of(BLOCK);
            }
        }
    }
    usage
}
