//! Files that only the server's user may access: the data directory, the database, the keys.

use std::fs::{self, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context, bail};

/// Permission bits of the group and of others.
const SHARED: u32 = 0o077;
/// The bit of directories that many users share, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// Removes the permissions of group and others from a file or directory, if it exists. Fails if
/// that is not possible: its content would be readable by other users.
pub(super) fn restrict(setting: &str, path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let mode = match fs::metadata(path) {
        Ok(metadata) => metadata.permissions().mode() & 0o7777,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error).with_context(|| format!("{setting}: cannot read {shown}"));
        }
    };
    if mode & SHARED == 0 {
        return Ok(());
    }
    if mode & STICKY != 0 {
        bail!(
            "{setting}: {shown} is shared by all users (mode {mode:o}). Choose a directory of its own"
        );
    }
    let private = mode & !SHARED;
    fs::set_permissions(path, Permissions::from_mode(private)).with_context(|| {
        format!(
            "{setting}: {shown} is accessible by other users (mode {mode:o}), and this cannot be \
             changed. Run `chmod go= {shown}` as its owner"
        )
    })?;
    let (from, to) = (format!("{mode:o}"), format!("{private:o}"));
    tracing::warn!(path = %shown, from, to, "file was accessible by other users, permissions removed");
    Ok(())
}

/// Creates a private file, if it does not exist. SQLite creates files next to it with its mode.
pub(super) fn create(setting: &str, path: &Path) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    let opened = options.create(true).append(true).mode(0o600).open(path);
    opened.map(drop).with_context(|| format!("{setting}: cannot write to {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn permissions_of_others_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        restrict("--data-dir", &path).unwrap();
        fs::create_dir(&path).unwrap();
        for (before, after) in [(0o755, 0o700), (0o2770, 0o2700), (0o500, 0o500)] {
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            restrict("--data-dir", &path).unwrap();
            assert_eq!(mode(&path), after, "{before:o}");
        }
    }

    #[test]
    fn directory_shared_by_all_users_is_refused_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        let error = restrict("--data-dir", folder.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("--data-dir: ") && error.contains("shared by all users"),
            "{error}"
        );
        assert_eq!(mode(folder.path()), 0o1777);
    }

    #[test]
    fn new_file_is_private_and_an_existing_one_keeps_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paddock.db");
        create("--database-url", &path).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::write(&path, "content").unwrap();
        create("--database-url", &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "content");
    }
}
