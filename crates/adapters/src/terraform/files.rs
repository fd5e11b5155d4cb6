//! Writes a template's files into the folder of its module. No path may escape it.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use model::Invalid;
use port::Files;

use super::{folder, module};

/// The folder of a module among the files: `network` for `./network/`.
pub(super) fn folder_of(source: &str) -> &str {
    source.trim_start_matches("./").trim_end_matches('/')
}

/// Checks that the module exists, and that no path escapes the template.
pub(super) fn check(files: &Files, source: &str) -> Result<(), Invalid> {
    let folder = folder_of(source);
    if !is_plain(folder) {
        let detail = "must be a folder of the template, like ./network, without ..";
        return Err(Invalid::new("with.source", detail));
    }
    if let Some(path) = files.keys().find(|path| !is_plain(path)) {
        let detail = format!("the path {} must not escape the template", path.escape_debug());
        return Err(Invalid::new("files", detail));
    }
    if sources(files, folder).next().is_some() {
        return Ok(());
    }
    let modules: BTreeSet<_> = files
        .keys()
        .filter(|path| module::is_source(Path::new(path)))
        .filter_map(|path| Some(format!("./{}", path.rsplit_once('/')?.0)))
        .collect();
    let existing = match modules.len() {
        0 => "the template contains no modules".to_owned(),
        _ => format!("its modules are {}", modules.into_iter().collect::<Vec<_>>().join(", ")),
    };
    let detail = format!("the template has no .tf file in {source}; {existing}");
    Err(Invalid::new("with.source", detail))
}

/// The source files of a module: paths and contents.
pub(super) fn sources<'a>(
    files: &'a Files,
    folder: &'a str,
) -> impl Iterator<Item = (&'a Path, &'a [u8])> {
    let is_inside =
        move |path: &str| path.rsplit_once('/').map_or("", |(above, _)| above) == folder;
    let all = files.iter().filter(move |(path, _)| is_inside(path));
    let all = all.map(|(path, content)| (Path::new(path.as_str()), content.as_slice()));
    all.filter(|(path, _)| module::is_source(path))
}

/// Whether a path stays below its root.
fn is_plain(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.all(|part| !matches!(part, "" | "." | "..")) && !path.contains(['\\', '\0'])
}

/// Writes the files into the folder `to`, and deletes those of earlier versions; files that a run
/// created are retained. `list` is the file with the names.
pub(super) fn write_all(files: &Files, to: &Path, list: &Path) -> io::Result<()> {
    folder::create_private(to)?;
    let before = folder::read(list)?.unwrap_or_default();
    for stale in before.lines().filter(|path| is_plain(path) && !files.contains_key(*path)) {
        match folder::remove(&to.join(stale)) {
            // The module replaced the file by a folder, or its folder by a file.
            Err(error) if !is_other(&error) => return Err(error),
            _ => {}
        }
    }
    let all: Vec<_> = files.iter().filter(|(path, _)| !is_excluded(path)).collect();
    let names = all.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>().join("\n");
    folder::write(list, &names)?;
    for (path, content) in all {
        if !is_plain(path) {
            return Err(io::Error::other(format!("{path} escapes the template")));
        }
        let with_path = |error| io::Error::other(format!("{path}: {error}"));
        write(to, path, content).map_err(with_path)?;
    }
    Ok(())
}

fn write(to: &Path, path: &str, content: &[u8]) -> io::Result<()> {
    let mut at = to.to_owned();
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    for part in above.split('/').filter(|part| !part.is_empty()) {
        at.push(part);
        match std::fs::symlink_metadata(&at) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(io::Error::other("not a folder of the template")),
            Err(_) => folder::create_private(&at)?,
        }
    }
    let mut file = folder::create(&at.join(name))?;
    file.write_all(content)?;
    if content.starts_with(b"#!") {
        file.set_permissions(Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn is_other(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory)
}

/// Whether a path belongs to local use of the module.
fn is_excluded(path: &str) -> bool {
    path.split('/').any(module::is_excluded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn files(all: &[(&str, &str)]) -> Files {
        let all = all.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        Arc::new(all.collect())
    }

    #[test]
    fn module_is_a_folder_with_sources() {
        let all = files(&[("network/main.tf", ""), ("a/b/x.tf.json", "{}"), ("docs/x.md", "")]);
        for good in ["./network", "./network/", "./a/b"] {
            assert_eq!(check(&all, good), Ok(()), "{good}");
        }
        for (bad, message) in [
            ("./docs", "its modules are ./a/b, ./network"),
            ("./a", "its modules are ./a/b, ./network"),
            ("./", "like ./network"),
            ("./../network", "like ./network"),
            ("/network", "like ./network"),
        ] {
            let why = check(&all, bad).unwrap_err().to_string();
            assert!(why.starts_with("with.source: ") && why.contains(message), "{bad}: {why}");
        }
        assert!(check(&files(&[]), "./x").unwrap_err().to_string().contains("contains no modules"));
    }

    #[test]
    fn escaping_paths_are_refused_and_write_nothing_outside() {
        let dir = tempfile::TempDir::new().unwrap();
        for path in ["../x", "a/../../x", "/x", "a//x", "a/./x", "a\\x", "", "a\0b"] {
            let all = files(&[("m/main.tf", ""), (path, "boo")]);
            let why = check(&all, "./m").unwrap_err().to_string();
            assert!(why.contains("must not escape"), "{path}: {why}");
            let (to, list) = (dir.path().join("in/module"), dir.path().join("in/list"));
            std::fs::create_dir_all(&to).unwrap();
            assert!(write_all(&all, &to, &list).is_err(), "{path}");
            assert!(!dir.path().join("in/x").exists() && !dir.path().join("x").exists(), "{path}");
        }
    }

    #[test]
    fn stale_files_are_deleted_and_created_files_are_retained() {
        let dir = tempfile::TempDir::new().unwrap();
        let (to, list) = (dir.path().join("module"), dir.path().join("list"));
        let first = [("m/a.tf", "1"), ("m/b.tf", "2"), ("m/run.sh", "#!/bin/sh"), ("x", "file")];
        write_all(&files(&first), &to, &list).unwrap();
        std::fs::write(to.join("m/made"), "by the module").unwrap();
        write_all(&files(&[("m/a.tf", "3"), ("x/y", "folder now")]), &to, &list).unwrap();
        let read = |path: &str| std::fs::read_to_string(to.join(path)).ok();
        assert_eq!(read("m/a.tf").as_deref(), Some("3"));
        assert_eq!(read("m/b.tf"), None);
        assert_eq!(read("m/made").as_deref(), Some("by the module"));
        assert_eq!(read("x/y").as_deref(), Some("folder now"));
        write_all(&files(&[("m/run.sh", "#!/bin/sh"), ("m/.terraform/x", "")]), &to, &list)
            .unwrap();
        let mode = std::fs::metadata(to.join("m/run.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "scripts are executable for the owner");
        assert!(!to.join("m/.terraform").exists(), "local use of the module is excluded");
    }

    #[test]
    fn symlink_that_a_module_created_is_not_followed() {
        let dir = tempfile::TempDir::new().unwrap();
        let (to, list) = (dir.path().join("module"), dir.path().join("list"));
        std::fs::create_dir_all(dir.path().join("outside")).unwrap();
        std::fs::create_dir_all(&to).unwrap();
        std::os::unix::fs::symlink(dir.path().join("outside"), to.join("m")).unwrap();
        let error = write_all(&files(&[("m/main.tf", "x")]), &to, &list).unwrap_err();
        assert!(error.to_string().contains("not a folder of the template"), "{error}");
        assert!(!dir.path().join("outside/main.tf").exists());
    }
}
