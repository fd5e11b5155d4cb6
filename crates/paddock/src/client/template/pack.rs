//! Packs a template for publishing: a file unchanged, or a folder as an archive.
//!
//! Archives are reproducible: files are sorted and carry no owners or times.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use crate::client::error::Error;
use crate::client::format;

/// Maximum total size of a template and its files.
const MAX_BYTES: u64 = 8 << 20;

/// File names of a template at the root of a folder.
const NAMES: [&str; 3] = ["template.yaml", "template.yml", "template.json"];

/// Upload of a template.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) media_type: &'static str,
    pub(super) bytes: Vec<u8>,
}

/// Reads a file, or packs a folder.
pub(super) fn read(path: &Path) -> Result<Package, Error> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if metadata.is_dir() {
        return Ok(Package { media_type: "application/gzip", bytes: folder(path)? });
    }
    check_size(path, metadata.len(), None)?;
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
    Ok(Package { media_type: media_type(path), bytes })
}

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => "application/json",
        Some("tar") => "application/x-tar",
        Some("gz" | "tgz") => "application/gzip",
        _ => "application/yaml",
    }
}

/// A file to pack.
struct PackedFile {
    /// Path relative to the folder, with slashes.
    name: String,
    path: PathBuf,
    size_bytes: u64,
}

fn folder(root: &Path) -> Result<Vec<u8>, Error> {
    if !NAMES.iter().any(|name| root.join(name).is_file()) {
        return Err(Error::failed_with_hint(
            format!("{} has no template.yaml", root.display()),
            "use a directory that contains it at its root, or the file itself",
        ));
    }
    let mut files = Vec::new();
    walk(root, "", &mut files)?;
    files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let total = files.iter().map(|file| file.size_bytes).sum();
    check_size(root, total, files.iter().max_by_key(|file| file.size_bytes))?;
    archive(&files)
}

fn check_size(path: &Path, total: u64, largest: Option<&PackedFile>) -> Result<(), Error> {
    if total <= MAX_BYTES {
        return Ok(());
    }
    let (total, max) = (format::size_bytes(total), format::size_bytes(MAX_BYTES));
    let message = format!("{} is too large: {total}, the maximum is {max}", path.display());
    Err(match largest {
        Some(file) => {
            let size = format::size_bytes(file.size_bytes);
            Error::failed_with_hint(message, format!("largest file: {} ({size})", file.name))
        }
        None => Error::failed(message),
    })
}

/// Collects all files below a folder. Rejects symbolic links, which could publish files outside it.
fn walk(folder: &Path, prefix: &str, files: &mut Vec<PackedFile>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
        let entry = entry.map_err(|error| unreadable(folder, &error))?;
        let path = entry.path();
        let name = entry.file_name().into_string().map_err(|_| {
            Error::failed(format!("cannot publish {}: its name is not UTF-8", path.display()))
        })?;
        let metadata = fs::symlink_metadata(&path).map_err(|error| unreadable(&path, &error))?;
        if is_excluded(&name, metadata.is_dir()) {
            continue;
        }
        let name = format!("{prefix}{name}");
        if metadata.is_dir() {
            walk(&path, &format!("{name}/"), files)?;
        } else if metadata.is_file() {
            files.push(PackedFile { name, path, size_bytes: metadata.len() });
        } else {
            let what = if metadata.is_symlink() { "a symbolic link" } else { "not a regular file" };
            return Err(Error::failed_with_hint(
                format!("cannot publish {}: it is {what}", path.display()),
                "replace it with the file itself, or remove it",
            ));
        }
    }
    Ok(())
}

/// Whether git, Terraform or an editor created the file. `.terraform.lock.hcl` is source.
fn is_excluded(name: &str, is_folder: bool) -> bool {
    if is_folder {
        return matches!(name, ".git" | ".terraform");
    }
    let is_hidden = name.starts_with('.');
    let is_temporary = [".swp", ".swo", ".tmp"].iter().any(|end| name.ends_with(end));
    name.contains(".tfstate")
        || name == ".git"
        || name == ".DS_Store"
        || name.starts_with(".#")
        || name.ends_with('~')
        || is_hidden && is_temporary
}

fn archive(files: &[PackedFile]) -> Result<Vec<u8>, Error> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in files {
        let content = fs::read(&file.path).map_err(|error| unreadable(&file.path, &error))?;
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        builder
            .append_data(&mut header, &file.name, content.as_slice())
            .map_err(|error| Error::failed(format!("cannot pack {}: {error}", file.name)))?;
    }
    let archive = builder.into_inner().and_then(GzEncoder::finish);
    archive.map_err(|error| Error::failed(format!("cannot pack the directory: {error}")))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::failed(format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use flate2::read::GzDecoder;
    use tempfile::TempDir;

    use super::*;

    fn folder_with(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    /// Names and contents of the files in a package.
    fn unpacked(package: &Package) -> Vec<(String, String)> {
        assert_eq!(package.media_type, "application/gzip");
        let mut archive = tar::Archive::new(GzDecoder::new(package.bytes.as_slice()));
        let read = |entry: io::Result<tar::Entry<'_, _>>| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), text)
        };
        archive.entries().unwrap().map(read).collect()
    }

    fn read_error(path: &Path) -> (String, String) {
        let error = read(path).unwrap_err();
        (error.message(), error.hint().unwrap_or_default())
    }

    #[test]
    fn files_of_tools_are_excluded() {
        let long = format!("network/{}/main.tf", "deep".repeat(40));
        let folder = folder_with(&[
            ("template.yaml", "name: a"),
            ("network/main.tf", "x"),
            (&long, "y"),
            ("network/.terraform.lock.hcl", "locked"),
            ("network/.terraform/plugin", "binary"),
            ("network/terraform.tfstate", "secret"),
            ("network/terraform.tfstate.backup", "secret"),
            ("network/.terraform.tfstate.lock.info", "lock"),
            (".git/HEAD", "ref"),
            ("network/.main.tf.swp", "draft"),
            ("network/main.tf~", "old"),
            (".hidden", "kept"),
        ]);
        let names: Vec<String> =
            unpacked(&read(folder.path()).unwrap()).into_iter().map(|(name, _)| name).collect();
        let want =
            [".hidden", "network/.terraform.lock.hcl", &long, "network/main.tf", "template.yaml"];
        assert_eq!(names, want);
    }

    #[test]
    fn archives_are_reproducible() {
        let files = [("template.yaml", "name: a"), ("b/x", "1"), ("a/y", "2")];
        let (one, mut reversed) = (folder_with(&files), files);
        reversed.reverse();
        let other = folder_with(&reversed);
        let old = fs::File::options().write(true).open(other.path().join("b/x")).unwrap();
        old.set_modified(std::time::UNIX_EPOCH).unwrap();
        let (one, other) = (read(one.path()).unwrap(), read(other.path()).unwrap());
        assert_eq!(one.bytes, other.bytes);
        assert_eq!(unpacked(&one)[0], ("a/y".to_owned(), "2".to_owned()));
    }

    #[test]
    fn symbolic_links_are_rejected() {
        let folder = folder_with(&[("template.yaml", "name: a"), ("network/main.tf", "x")]);
        let link = folder.path().join("network/passwd");
        symlink("/etc/passwd", &link).unwrap();
        let (message, hint) = read_error(folder.path());
        assert_eq!(message, format!("cannot publish {}: it is a symbolic link", link.display()));
        assert!(hint.contains("replace it with the file itself"), "{hint}");
        fs::remove_file(&link).unwrap();
        symlink("/etc", folder.path().join("network/etc")).unwrap();
        assert!(read_error(folder.path()).0.contains("network/etc: it is a symbolic link"));
    }

    #[test]
    fn oversized_folder_is_rejected_with_its_largest_file() {
        let folder = folder_with(&[("template.yaml", "name: a")]);
        let half = vec![b'x'; 5 << 20];
        fs::write(folder.path().join("image.bin"), &half).unwrap();
        assert!(read(folder.path()).is_ok());
        fs::write(folder.path().join("other.bin"), &half[1..]).unwrap();
        let (message, hint) = read_error(folder.path());
        assert!(message.ends_with("is too large: 10Mi, the maximum is 8Mi"), "{message}");
        assert_eq!(hint, "largest file: image.bin (5Mi)");
        let file = folder.path().join("big.yaml");
        fs::write(&file, vec![b'x'; (8 << 20) + 1]).unwrap();
        let (message, _) = read_error(&file);
        assert!(message.contains("big.yaml is too large: 8Mi"), "{message}");
    }

    #[test]
    fn folder_without_template_is_rejected() {
        let folder = folder_with(&[("network/template.yaml", "name: a")]);
        let (message, hint) = read_error(folder.path());
        assert!(message.ends_with(" has no template.yaml"), "{message}");
        assert!(hint.contains("at its root"), "{hint}");
        let (message, _) = read_error(&folder.path().join("nowhere"));
        assert!(message.starts_with("cannot read ") && message.contains("nowhere"), "{message}");
    }

    #[test]
    fn file_is_sent_unchanged() {
        let folder =
            folder_with(&[("a.yaml", "name: a"), ("b.json", "{}"), ("c.tgz", "z"), ("d", "e")]);
        for (name, media_type, bytes) in [
            ("a.yaml", "application/yaml", "name: a"),
            ("b.json", "application/json", "{}"),
            ("c.tgz", "application/gzip", "z"),
            ("d", "application/yaml", "e"),
        ] {
            let package = read(&folder.path().join(name)).unwrap();
            assert_eq!(
                (package.media_type, package.bytes.as_slice()),
                (media_type, bytes.as_bytes())
            );
        }
    }
}
