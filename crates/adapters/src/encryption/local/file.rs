//! The key file: readable by its owner alone, and written atomically.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::NamedTempFile;

use super::Error;
use super::key::Key;

/// The maximum size of a key file: about a thousand keys.
const MAX_BYTES: u64 = 1 << 16;

const HEADER: &str = "\
# The keys with which Paddock encrypts secrets, oldest first; the last one encrypts.
# Keep a backup apart from the database: without it stored secrets cannot be decrypted.
";

/// The keys of the file, oldest first; none if the file is missing.
pub(super) fn read(path: &Path) -> Result<Option<Vec<Key>>, Error> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|source| io(path, source))?,
    };
    // Checked on the open file: the path could be replaced in between.
    let mode = file.metadata().map_err(|source| io(path, source))?.mode();
    if mode & 0o077 != 0 {
        return Err(Error::Exposed { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|source| io(path, source))?;
    let text = String::from_utf8(bytes).map_err(|_| broken(path, "it is not UTF-8"))?;
    parse(path, &text).map(Some)
}

fn parse(path: &Path, text: &str) -> Result<Vec<Key>, Error> {
    let lines = text.lines().enumerate();
    let keys = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')).map(
        |(at, line)| {
            Key::parse(line).map_err(|why| broken(path, &format!("line {} {why}", at + 1)))
        },
    );
    let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
    if keys.is_empty() { Err(broken(path, "it contains no key")) } else { Ok(keys) }
}

/// Creates the file with one key. If another process was faster, its file is used.
pub(super) fn create(path: &Path, key: Key) -> Result<Vec<Key>, Error> {
    let keys = vec![key];
    match write_temporary(path, &keys)?.persist_noclobber(path) {
        Ok(_) => {}
        Err(failure) if failure.error.kind() == ErrorKind::AlreadyExists => {
            return read(path)?.ok_or_else(|| broken(path, "it was deleted concurrently"));
        }
        Err(failure) => return Err(io(path, failure.error)),
    }
    sync_folder(path)?;
    Ok(keys)
}

/// Replaces the file.
pub(super) fn replace(path: &Path, keys: &[Key]) -> Result<(), Error> {
    write_temporary(path, keys)?.persist(path).map_err(|failure| io(path, failure.error))?;
    sync_folder(path)
}

/// Writes the keys to a private temporary file in the same folder, and syncs it.
fn write_temporary(path: &Path, keys: &[Key]) -> Result<NamedTempFile, Error> {
    let text = HEADER.to_owned() + &keys.iter().map(Key::line).collect::<String>();
    let write = || {
        let mut file = tempfile::Builder::new().prefix(".key-").tempfile_in(folder(path))?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    write().map_err(|source| io(path, source))
}

fn sync_folder(path: &Path) -> Result<(), Error> {
    File::open(folder(path)).and_then(|folder| folder.sync_all()).map_err(|source| io(path, source))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

fn broken(path: &Path, why: &str) -> Error {
    Error::Broken { path: path.to_owned(), why: why.to_owned() }
}
