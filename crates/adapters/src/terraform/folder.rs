//! Files that only the server may read.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The maximum size that is read of a log: its end.
const MAX_LOG_BYTES: u64 = 16 * 1024 * 1024;

/// Creates a private folder and its parents.
pub(super) fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// Creates an empty private file.
pub(super) fn create(path: &Path) -> io::Result<File> {
    remove(path)?;
    File::options().create_new(true).append(true).read(true).mode(0o600).open(path)
}

/// Opens a private file for appending.
pub(super) fn append(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).read(true).mode(0o600).open(path)
}

/// Writes a file atomically.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(new, path)
}

/// Reads a file; none if it does not exist.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// The end of a log; empty if it does not exist.
pub(super) fn read_log(path: &Path) -> String {
    read_log_from(path, 0)
}

/// The length of a log; 0 if it does not exist.
pub(super) fn log_length(path: &Path) -> u64 {
    path.metadata().map_or(0, |found| found.len())
}

/// The end of a log after its first bytes.
pub(super) fn read_log_from(path: &Path, first: u64) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MAX_LOG_BYTES).max(first)))?;
        let mut bytes = Vec::new();
        file.take(MAX_LOG_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_default()
}

/// Deletes a file. Deleting a missing file succeeds.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes a file of another program private.
pub(super) fn make_private(path: &Path) {
    let _ = std::fs::set_permissions(path, Permissions::from_mode(0o600));
}
