//! Where things are on disk, and how small documents get there whole.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The runtime's directory.
#[derive(Debug, Clone)]
pub(crate) struct Dirs(pub(crate) PathBuf);

impl Dirs {
    /// Makes what must be there.
    pub(crate) fn create(&self) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        for dir in [self.layers(), self.images(), self.pulls(), self.temporary(), self.containers()]
        {
            // Images may hold what only their owners shall read.
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        Ok(())
    }

    /// Held by the process that works with all this.
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

    /// What is known of each image, by [`key`] of its name.
    pub(crate) fn images(&self) -> PathBuf {
        self.0.join("images")
    }

    /// What is known of one image.
    pub(crate) fn image(&self, name: &str) -> PathBuf {
        self.images().join(format!("{}.json", key(name)))
    }

    /// Pulls under way or cut short, by [`key`] of the image's name.
    pub(crate) fn pulls(&self) -> PathBuf {
        self.0.join("pulls")
    }

    /// One pull.
    pub(crate) fn pull(&self, name: &str) -> PathBuf {
        self.pulls().join(key(name))
    }

    /// What is thrown away at the next start.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.0.join("tmp")
    }

    /// One directory per container.
    pub(crate) fn containers(&self) -> PathBuf {
        self.0.join("containers")
    }

    /// One container's directory. The name has been checked.
    pub(crate) fn container(&self, name: &str) -> PathBuf {
        self.containers().join(name)
    }
}

/// A file name for any text.
pub(crate) fn key(text: &str) -> String {
    let mut hex = sha256(text.as_bytes());
    hex.truncate(24);
    hex
}

/// The SHA-256 of some bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(bytes))
}

/// Reads a document; none when there is none or it makes no sense.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes a document: readers see the old one or the new one, nothing between.
pub(crate) fn write_json<T: Serialize>(path: &Path, document: &T) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = fs::File::create(&temporary)?;
    file.write_all(&serde_json::to_vec(document)?)?;
    file.sync_data()?;
    fs::rename(&temporary, path)
}
