//! Template archives with modules: tar or gzipped tar.
//!
//! Nothing is written to disk here. Memory and time are bounded for any input: the size, number and
//! depth of files are limited, and unpacked bytes are counted as they are read.

use std::io::{self, Read};

use flate2::read::GzDecoder;
use store::template::Files;
use tar::{Archive, Entry, EntryType};

use super::publish::Upload;
use crate::Problem;

/// Maximum unpacked size of an archive.
const MAX_BYTES: u64 = 32 << 20;
/// Maximum size of a file.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of files.
const MAX_FILES: usize = 2_000;
/// Maximum number of nested folders.
const MAX_DEPTH: usize = 16;
/// Maximum length of a path.
const MAX_PATH: usize = 512;
/// File names of the template itself.
const TEMPLATES: [&str; 3] = ["template.yaml", "template.yml", "template.json"];

/// Unpacks an archive.
pub(super) fn unpack(bytes: &[u8]) -> Result<Upload, Problem> {
    let is_gzip = bytes.starts_with(&[0x1f, 0x8b]);
    let plain: Box<dyn Read + '_> =
        if is_gzip { Box::new(GzDecoder::new(bytes)) } else { Box::new(bytes) };
    let mut archive = Archive::new(Bounded { inner: plain, left: MAX_BYTES, is_over: false });
    let files = read_files(&mut archive);
    if archive.into_inner().is_over {
        return Err(invalid_archive(format!("more than {} MiB unpacked", MAX_BYTES >> 20)));
    }
    with_template(files?)
}

fn read_files(archive: &mut Archive<impl Read>) -> Result<Files, Problem> {
    let (mut files, mut entries) = (Files::new(), 0);
    for entry in archive.entries().map_err(|error| unreadable(&error))? {
        let mut entry = entry.map_err(|error| unreadable(&error))?;
        entries += 1;
        if entries > 2 * MAX_FILES || files.len() > MAX_FILES {
            return Err(invalid_archive(format!("more than {MAX_FILES} files")));
        }
        // The global header of `git archive` applies to all files.
        if entry.header().entry_type() == EntryType::XGlobalHeader {
            continue;
        }
        let Some(path) = path(&entry)? else { continue };
        if let Some(content) = content(&path, &mut entry)?
            && files.insert(path.clone(), content).is_some()
        {
            return Err(invalid_path(&path, "occurs twice"));
        }
    }
    if files.len() > MAX_FILES {
        return Err(invalid_archive(format!("more than {MAX_FILES} files")));
    }
    check_no_file_is_a_folder(&files)?;
    Ok(files)
}

/// Normalized path of an entry; none for the root itself.
fn path(entry: &Entry<'_, impl Read>) -> Result<Option<String>, Problem> {
    let bytes = entry.path_bytes();
    let Ok(text) = std::str::from_utf8(&bytes) else {
        let shown: String = String::from_utf8_lossy(&bytes).chars().take(MAX_PATH).collect();
        return Err(invalid_path(&shown, "has a path that is not UTF-8"));
    };
    if text.len() > MAX_PATH {
        let shown: String = text.chars().take(64).collect();
        return Err(invalid_path(&shown, &format!("has a path of more than {MAX_PATH} bytes")));
    }
    if text.starts_with('/') {
        return Err(invalid_path(text, "must be a relative path"));
    }
    if text.chars().any(|c| c.is_control() || c == '\\') {
        return Err(invalid_path(text, "must not contain a backslash or a control character"));
    }
    let parts: Vec<&str> =
        text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(invalid_path(text, "must not contain .."));
    }
    if parts.len() > MAX_DEPTH {
        return Err(invalid_path(
            text,
            &format!("is nested more than {MAX_DEPTH} directories deep"),
        ));
    }
    Ok((!parts.is_empty()).then(|| parts.join("/")))
}

/// Content of a file; none for a folder. Other entry types are rejected.
fn content(path: &str, entry: &mut Entry<'_, impl Read>) -> Result<Option<Vec<u8>>, Problem> {
    match entry.header().entry_type() {
        EntryType::Directory => return Ok(None),
        EntryType::Regular | EntryType::Continuous => {}
        EntryType::Symlink | EntryType::Link => {
            return Err(invalid_path(path, "must not be a link"));
        }
        _ => return Err(invalid_path(path, "must be a file or a directory")),
    }
    let size = entry.size();
    if size > MAX_FILE_BYTES {
        return Err(invalid_path(path, &format!("is larger than {} MiB", MAX_FILE_BYTES >> 20)));
    }
    let mut content = Vec::new();
    entry.read_to_end(&mut content).map_err(|error| unreadable(&error))?;
    if content.len() as u64 != size {
        return Err(invalid_path(path, "is incomplete: the archive is truncated"));
    }
    Ok(Some(content))
}

/// Fails if `a` and `a/b` are both files.
fn check_no_file_is_a_folder(files: &Files) -> Result<(), Problem> {
    for path in files.keys() {
        let mut folder = path.as_str();
        while let Some((parent, _)) = folder.rsplit_once('/') {
            folder = parent;
            if files.contains_key(folder) {
                return Err(invalid_path(
                    folder,
                    &format!("is both a file and the directory of {path}"),
                ));
            }
        }
    }
    Ok(())
}

/// Separates the template from the other files.
fn with_template(mut files: Files) -> Result<Upload, Problem> {
    let mut found = TEMPLATES.iter().filter_map(|name| files.remove_entry(*name));
    let Some((name, content)) = found.next() else {
        let names = TEMPLATES.join(" or ");
        return Err(invalid_archive(format!("no template: expected {names} at its root")));
    };
    if let Some((second, _)) = found.next() {
        return Err(invalid_path(&second, &format!("is a second template; {name} exists as well")));
    }
    drop(found);
    let text = String::from_utf8(content).map_err(|_| invalid_path(&name, "is not UTF-8"))?;
    Ok(Upload { file: name, text, files })
}

/// Problem with one path.
fn invalid_path(path: &str, why: &str) -> Problem {
    Problem::field("archive", format!("{} {why}", path.escape_debug()))
}

fn invalid_archive(why: impl std::fmt::Display) -> Problem {
    Problem::field("archive", format!("has {why}"))
}

fn unreadable(error: &io::Error) -> Problem {
    let why = error.to_string();
    let why = why.trim_end_matches('.').escape_debug();
    Problem::field("archive", format!("is not a valid tar or gzipped tar: {why}"))
}

/// A reader that fails after a maximum number of bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
    is_over: bool,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)? as u64;
        let Some(left) = self.left.checked_sub(read) else {
            self.is_over = true;
            return Err(io::Error::other("too large"));
        };
        self.left = left;
        Ok(usize::try_from(read).unwrap_or_default())
    }
}
