//! What is handed over when a template is published: one file as it is, or a folder as an archive.
//!
//! The same folder always makes the same bytes: files in order, without owners and times.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use crate::client::error::Error;
use crate::client::format;

/// The most that a template and the files beside it may hold.
const MAX_BYTES: u64 = 8 << 20;

/// What a folder must have at its root.
const NAMES: [&str; 3] = ["template.yaml", "template.yml", "template.json"];

/// What is handed over.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) media_type: &'static str,
    pub(super) bytes: Vec<u8>,
}

/// Reads a file, or packs a folder.
pub(super) fn read(path: &Path) -> Result<Parcel, Error> {
    let about = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if about.is_dir() {
        return Ok(Parcel { media_type: "application/gzip", bytes: folder(path)? });
    }
    must_fit(path, about.len(), None)?;
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
    Ok(Parcel { media_type: media_type(path), bytes })
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
struct Packed {
    /// Below the folder, with slashes.
    name: String,
    path: PathBuf,
    size_bytes: u64,
}

fn folder(root: &Path) -> Result<Vec<u8>, Error> {
    if !NAMES.iter().any(|name| root.join(name).is_file()) {
        return Err(Error::failed_but(
            format!("{} has no template.yaml", root.display()),
            "name the folder that has it at its root, or the file itself",
        ));
    }
    let mut files = Vec::new();
    walk(root, "", &mut files)?;
    files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let total = files.iter().map(|file| file.size_bytes).sum();
    must_fit(root, total, files.iter().max_by_key(|file| file.size_bytes))?;
    archive(&files)
}

fn must_fit(path: &Path, total: u64, largest: Option<&Packed>) -> Result<(), Error> {
    if total <= MAX_BYTES {
        return Ok(());
    }
    let (total, most) = (format::size_bytes(total), format::size_bytes(MAX_BYTES));
    let what =
        format!("{} holds {total}, more than the {most} that a template may have", path.display());
    Err(match largest {
        Some(file) => {
            let size = format::size_bytes(file.size_bytes);
            Error::failed_but(what, format!("its largest file is {} with {size}", file.name))
        }
        None => Error::failed(what),
    })
}

/// Finds all files below a folder. Links are not followed: what is published must be what is there.
fn walk(folder: &Path, prefix: &str, files: &mut Vec<Packed>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
        let entry = entry.map_err(|error| unreadable(folder, &error))?;
        let path = entry.path();
        let name = entry.file_name().into_string().map_err(|_| {
            Error::failed(format!("{} can't be published: its name is no text", path.display()))
        })?;
        let about = fs::symlink_metadata(&path).map_err(|error| unreadable(&path, &error))?;
        if is_left_out(&name, about.is_dir()) {
            continue;
        }
        let name = format!("{prefix}{name}");
        if about.is_dir() {
            walk(&path, &format!("{name}/"), files)?;
        } else if about.is_file() {
            files.push(Packed { name, path, size_bytes: about.len() });
        } else {
            let what = if about.is_symlink() { "a symbolic link" } else { "no regular file" };
            return Err(Error::failed_but(
                format!("{} can't be published: it is {what}", path.display()),
                "put the file itself there, or take it away",
            ));
        }
    }
    Ok(())
}

/// What git, Terraform and editors keep beside what somebody wrote. `.terraform.lock.hcl` is no such thing.
fn is_left_out(name: &str, is_folder: bool) -> bool {
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

fn archive(files: &[Packed]) -> Result<Vec<u8>, Error> {
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
            .map_err(|error| Error::failed(format!("{} can't be packed: {error}", file.name)))?;
    }
    let done = builder.into_inner().and_then(GzEncoder::finish);
    done.map_err(|error| Error::failed(format!("the folder can't be packed: {error}")))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::failed(format!("{} can't be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use flate2::read::GzDecoder;
    use tempfile::TempDir;

    use super::*;

    /// A folder with these files.
    fn made(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    /// What is in a parcel, by name.
    fn unpacked(parcel: &Parcel) -> Vec<(String, String)> {
        assert_eq!(parcel.media_type, "application/gzip");
        let mut archive = tar::Archive::new(GzDecoder::new(parcel.bytes.as_slice()));
        let read = |entry: io::Result<tar::Entry<'_, _>>| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), text)
        };
        archive.entries().unwrap().map(read).collect()
    }

    fn refused(path: &Path) -> (String, String) {
        let error = read(path).unwrap_err();
        (error.what(), error.next().unwrap_or_default())
    }

    #[test]
    fn a_folder_is_packed_without_what_tools_keep_in_it() {
        let long = format!("network/{}/main.tf", "deep".repeat(40));
        let folder = made(&[
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
    fn the_same_folder_makes_the_same_bytes() {
        let files = [("template.yaml", "name: a"), ("b/x", "1"), ("a/y", "2")];
        let (one, mut reversed) = (made(&files), files);
        reversed.reverse();
        let other = made(&reversed);
        let old = fs::File::options().write(true).open(other.path().join("b/x")).unwrap();
        old.set_modified(std::time::UNIX_EPOCH).unwrap();
        let (one, other) = (read(one.path()).unwrap(), read(other.path()).unwrap());
        assert_eq!(one.bytes, other.bytes);
        assert_eq!(unpacked(&one)[0], ("a/y".to_owned(), "2".to_owned()));
    }

    #[test]
    fn links_are_refused_by_their_path() {
        let folder = made(&[("template.yaml", "name: a"), ("network/main.tf", "x")]);
        let link = folder.path().join("network/passwd");
        symlink("/etc/passwd", &link).unwrap();
        let (what, next) = refused(folder.path());
        assert_eq!(what, format!("{} can't be published: it is a symbolic link", link.display()));
        assert!(next.contains("put the file itself there"), "{next}");
        fs::remove_file(&link).unwrap();
        symlink("/etc", folder.path().join("network/etc")).unwrap();
        assert!(refused(folder.path()).0.contains("network/etc can't be published"));
    }

    #[test]
    fn too_much_is_told_with_the_largest_file() {
        let folder = made(&[("template.yaml", "name: a")]);
        let half = vec![b'x'; 5 << 20];
        fs::write(folder.path().join("image.bin"), &half).unwrap();
        assert!(read(folder.path()).is_ok());
        fs::write(folder.path().join("other.bin"), &half[1..]).unwrap();
        let (what, next) = refused(folder.path());
        assert!(what.ends_with("holds 10Mi, more than the 8Mi that a template may have"), "{what}");
        assert_eq!(next, "its largest file is image.bin with 5Mi");
        let file = folder.path().join("big.yaml");
        fs::write(&file, vec![b'x'; (8 << 20) + 1]).unwrap();
        assert!(refused(&file).0.contains("big.yaml holds 8Mi"), "{:?}", refused(&file));
    }

    #[test]
    fn what_is_no_template_is_refused() {
        let folder = made(&[("network/template.yaml", "name: a")]);
        let (what, next) = refused(folder.path());
        assert!(what.ends_with(" has no template.yaml"), "{what}");
        assert!(next.contains("at its root"), "{next}");
        assert!(refused(&folder.path().join("nowhere")).0.contains("nowhere can't be read"));
    }

    #[test]
    fn a_file_is_sent_as_it_is() {
        let folder = made(&[("a.yaml", "name: a"), ("b.json", "{}"), ("c.tgz", "z"), ("d", "e")]);
        for (name, media_type, bytes) in [
            ("a.yaml", "application/yaml", "name: a"),
            ("b.json", "application/json", "{}"),
            ("c.tgz", "application/gzip", "z"),
            ("d", "application/yaml", "e"),
        ] {
            let parcel = read(&folder.path().join(name)).unwrap();
            assert_eq!(
                (parcel.media_type, parcel.bytes.as_slice()),
                (media_type, bytes.as_bytes())
            );
        }
    }
}
