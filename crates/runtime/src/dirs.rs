//! Layout of the data directory, and atomic JSON files.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The data directory.
#[derive(Debug, Clone)]
pub(crate) struct Dirs(pub(crate) PathBuf);

impl Dirs {
    /// Creates the subdirectories.
    pub(crate) fn create(&self) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        let state = [self.layers(), self.images(), self.loaded(), self.containers()];
        for dir in state.into_iter().chain([self.pulls(), self.temporary(), self.trash()]) {
            // Images may contain private data.
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        Ok(())
    }

    /// Locked by the process that uses the directory.
    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Unpacked layers by chain id.
    pub(crate) fn layers(&self) -> PathBuf {
        self.0.join("layers")
    }

    /// One unpacked layer.
    pub(crate) fn layer(&self, chain: &str) -> PathBuf {
        self.layers().join(chain)
    }

    /// Metadata of images, by [`key`] of the image reference.
    pub(crate) fn images(&self) -> PathBuf {
        self.0.join("images")
    }

    /// Metadata of one image.
    pub(crate) fn image(&self, name: &str) -> PathBuf {
        self.images().join(format!("{}.json", key(name)))
    }

    /// Metadata of loaded images, by [`key`] of owner and name.
    pub(crate) fn loaded(&self) -> PathBuf {
        self.0.join("loaded")
    }

    /// Metadata of one loaded image. No name contains a line break.
    pub(crate) fn loaded_image(&self, owner: &str, name: &str) -> PathBuf {
        self.loaded().join(format!("{}.json", key(&format!("{owner}\n{name}"))))
    }

    /// Pulls in progress or interrupted, by [`key`] of the image reference.
    pub(crate) fn pulls(&self) -> PathBuf {
        self.0.join("pulls")
    }

    /// One pull.
    pub(crate) fn pull(&self, name: &str) -> PathBuf {
        self.pulls().join(key(name))
    }

    /// Trees to remove.
    pub(crate) fn trash(&self) -> PathBuf {
        self.0.join("trash")
    }

    /// Formatted images of writable layers.
    pub(crate) fn disks(&self) -> PathBuf {
        self.0.join("disks")
    }

    /// Id ranges of owners.
    pub(crate) fn ids(&self) -> PathBuf {
        self.0.join("ids.json")
    }

    /// Temporary files, removed at the next start.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.0.join("tmp")
    }

    /// One directory per container.
    pub(crate) fn containers(&self) -> PathBuf {
        self.0.join("containers")
    }

    /// One container's directory. The caller has validated the name.
    pub(crate) fn container(&self, name: &str) -> PathBuf {
        self.containers().join(name)
    }
}

/// Size in bytes of the file system of a directory, which need not exist yet.
pub fn disk_size(dir: &Path) -> Option<u64> {
    let dir = std::path::absolute(dir).ok()?;
    let found = dir.ancestors().find_map(|dir| rustix::fs::statvfs(dir).ok())?;
    found.f_blocks.checked_mul(found.f_frsize)
}

/// Derives a file name from any text.
pub(crate) fn key(text: &str) -> String {
    let mut hex = sha256(text.as_bytes());
    hex.truncate(24);
    hex
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(bytes))
}

/// Reads a JSON file; none if it is missing or invalid.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes a JSON file atomically.
pub(crate) fn write_json<T: Serialize>(path: &Path, document: &T) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = fs::File::create(&temporary)?;
    file.write_all(&serde_json::to_vec(document)?)?;
    file.sync_data()?;
    fs::rename(&temporary, path)
}
