//! Locks the data directory and the SQLite file against a second server.

use std::fs::File;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use anyhow::Context;

use super::private;
use crate::settings::{Database, Settings};

/// Creates and locks the data directory and locks the SQLite file. The locks last until dropped.
pub(super) fn lock_files(settings: &Settings) -> anyhow::Result<Vec<File>> {
    let dir = &settings.data_dir;
    let mut locks = vec![lock_dir(dir)?];
    if let Database::Sqlite(path, _) = &settings.database
        && path.parent() != Some(dir)
    {
        // A file outside the data directory may be named in the settings of two servers.
        locks.push(lock("--database-url", path, &path.with_added_extension("lock"))?);
    }
    restrict_files(settings)?;
    Ok(locks)
}

/// Makes the key file and the SQLite files private; they may stem from a copy or another release.
fn restrict_files(settings: &Settings) -> anyhow::Result<()> {
    private::restrict("--data-dir", &settings.data_dir.join("seal.key"))?;
    if let Database::Sqlite(path, _) = &settings.database {
        private::create("--database-url", path)?;
        for suffix in ["", "-wal", "-shm", ".lock"] {
            let mut file = path.clone().into_os_string();
            file.push(suffix);
            private::restrict("--database-url", Path::new(&file))?;
        }
    }
    Ok(())
}

/// Creates and locks a data directory. The lock lasts until dropped.
pub(crate) fn lock_dir(dir: &Path) -> anyhow::Result<File> {
    // Private: contains password hashes and environment variables of deployments.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(|| format!("--data-dir: cannot create {}", dir.display()))?;
    private::restrict("--data-dir", dir)?;
    lock("--data-dir", dir, &dir.join("lock"))
}

fn lock(setting: &str, what: &Path, lock: &Path) -> anyhow::Result<File> {
    base::file_lock::acquire(lock)
        .with_context(|| format!("{setting}: cannot write to {}", what.display()))?
        .with_context(|| format!("{setting}: {} is in use by another server", what.display()))
}
