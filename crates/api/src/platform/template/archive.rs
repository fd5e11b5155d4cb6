//! Archives with a template and its modules: tar, or tar with gzip.
//!
//! Nothing is written to a disk here. Whatever somebody sends, it takes bounded memory and time: the
//! size, the number and the depth of files are limited, and what is unpacked is counted as it comes.

use std::io::{self, Read};

use flate2::read::GzDecoder;
use store::template::Files;
use tar::{Archive, Entry, EntryType};

use super::publish::Sent;
use crate::Problem;

/// How much there may be in one archive, unpacked.
const MAX_BYTES: u64 = 32 << 20;
/// How large one file may be.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// How many files there may be.
const MAX_FILES: usize = 2_000;
/// How many folders may lie in each other.
const MAX_DEPTH: usize = 16;
/// The longest path.
const MAX_PATH: usize = 512;
/// What the template itself may be called.
const TEMPLATES: [&str; 3] = ["template.yaml", "template.yml", "template.json"];

/// What is in an archive, or what is wrong with it.
pub(super) fn unpack(bytes: &[u8]) -> Result<Sent, Problem> {
    let is_gzip = bytes.starts_with(&[0x1f, 0x8b]);
    let plain: Box<dyn Read + '_> =
        if is_gzip { Box::new(GzDecoder::new(bytes)) } else { Box::new(bytes) };
    let mut archive = Archive::new(Bounded { of: plain, left: MAX_BYTES, is_over: false });
    let files = all(&mut archive);
    if archive.into_inner().is_over {
        return Err(wrong(format!("more than {} MiB unpacked", MAX_BYTES >> 20)));
    }
    with_template(files?)
}

fn all(archive: &mut Archive<impl Read>) -> Result<Files, Problem> {
    let (mut files, mut entries) = (Files::new(), 0);
    for entry in archive.entries().map_err(|error| unreadable(&error))? {
        let mut entry = entry.map_err(|error| unreadable(&error))?;
        entries += 1;
        if entries > 2 * MAX_FILES || files.len() > MAX_FILES {
            return Err(wrong(format!("more than {MAX_FILES} files")));
        }
        // What `git archive` says of all files at once.
        if entry.header().entry_type() == EntryType::XGlobalHeader {
            continue;
        }
        let Some(path) = path(&entry)? else { continue };
        if let Some(content) = content(&path, &mut entry)?
            && files.insert(path.clone(), content).is_some()
        {
            return Err(at(&path, "is there twice"));
        }
    }
    if files.len() > MAX_FILES {
        return Err(wrong(format!("more than {MAX_FILES} files")));
    }
    no_file_is_a_folder(&files)?;
    Ok(files)
}

/// Where the entry is, in its one spelling; none for the root itself.
fn path(entry: &Entry<'_, impl Read>) -> Result<Option<String>, Problem> {
    let bytes = entry.path_bytes();
    let Ok(text) = std::str::from_utf8(&bytes) else {
        let shown: String = String::from_utf8_lossy(&bytes).chars().take(MAX_PATH).collect();
        return Err(at(&shown, "has a name that is not UTF-8"));
    };
    if text.len() > MAX_PATH {
        let shown: String = text.chars().take(64).collect();
        return Err(at(&shown, &format!("has a path of more than {MAX_PATH} bytes")));
    }
    if text.starts_with('/') {
        return Err(at(text, "must not be an absolute path"));
    }
    if text.chars().any(|c| c.is_control() || c == '\\') {
        return Err(at(text, "has a backslash or a control character in its name"));
    }
    let parts: Vec<&str> =
        text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(at(text, "must not leave the archive with .."));
    }
    if parts.len() > MAX_DEPTH {
        return Err(at(text, &format!("lies in more than {MAX_DEPTH} folders")));
    }
    Ok((!parts.is_empty()).then(|| parts.join("/")))
}

/// What is in a file; none for a folder. Whatever else there may be in archives is refused.
fn content(path: &str, entry: &mut Entry<'_, impl Read>) -> Result<Option<Vec<u8>>, Problem> {
    match entry.header().entry_type() {
        EntryType::Directory => return Ok(None),
        EntryType::Regular | EntryType::Continuous => {}
        EntryType::Symlink | EntryType::Link => return Err(at(path, "must not be a link")),
        _ => return Err(at(path, "must be a file or a folder")),
    }
    let size = entry.size();
    if size > MAX_FILE_BYTES {
        return Err(at(path, &format!("is larger than {} MiB", MAX_FILE_BYTES >> 20)));
    }
    let mut content = Vec::new();
    entry.read_to_end(&mut content).map_err(|error| unreadable(&error))?;
    if content.len() as u64 != size {
        return Err(at(path, "ends too early: the archive is cut off"));
    }
    Ok(Some(content))
}

/// `a` and `a/b` can't both be files.
fn no_file_is_a_folder(files: &Files) -> Result<(), Problem> {
    for path in files.keys() {
        let mut folder = path.as_str();
        while let Some((parent, _)) = folder.rsplit_once('/') {
            folder = parent;
            if files.contains_key(folder) {
                return Err(at(folder, &format!("can't be a file and the folder of {path}")));
            }
        }
    }
    Ok(())
}

/// Tells the one template from the files beside it.
fn with_template(mut files: Files) -> Result<Sent, Problem> {
    let mut found = TEMPLATES.iter().filter_map(|name| files.remove_entry(*name));
    let Some((name, content)) = found.next() else {
        let all = TEMPLATES.join(" or ");
        return Err(wrong(format!("no template: {all} must be at its root")));
    };
    if let Some((second, _)) = found.next() {
        return Err(at(&second, &format!("is a second template beside {name}; leave one")));
    }
    drop(found);
    let text = String::from_utf8(content).map_err(|_| at(&name, "is not UTF-8"))?;
    Ok(Sent { file: name, text, files })
}

/// What is wrong with one path.
fn at(path: &str, why: &str) -> Problem {
    Problem::field("archive", format!("{} {why}", path.escape_debug()))
}

fn wrong(why: impl std::fmt::Display) -> Problem {
    Problem::field("archive", format!("has {why}"))
}

fn unreadable(error: &io::Error) -> Problem {
    let why = error.to_string();
    let why = why.trim_end_matches('.').escape_debug();
    Problem::field("archive", format!("can't be read as tar or tar with gzip: {why}"))
}

/// A reader that stops when it has given too much.
struct Bounded<R> {
    of: R,
    left: u64,
    is_over: bool,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.of.read(buffer)? as u64;
        let Some(left) = self.left.checked_sub(read) else {
            self.is_over = true;
            return Err(io::Error::other("too large"));
        };
        self.left = left;
        Ok(usize::try_from(read).unwrap_or_default())
    }
}
