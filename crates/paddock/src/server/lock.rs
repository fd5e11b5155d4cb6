//! Locks on the data directory and the SQLite file: one server each.

use std::fs::File;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use anyhow::{Context, bail};

use crate::settings::{Database, Settings};

/// Creates and locks the data directory, and locks the SQLite file, for as long as the files live.
pub(super) fn lock_files(settings: &Settings) -> anyhow::Result<Vec<File>> {
    let dir = &settings.data_dir;
    let mut locks = vec![lock_dir(dir)?];
    if let Database::Sqlite(path, _) = &settings.database
        && path.parent() != Some(dir)
    {
        // The usual place is locked already; this one may be in two servers' settings.
        locks.push(lock("--database-url", path, &path.with_added_extension("lock"))?);
    }
    Ok(locks)
}

/// Creates and locks a data directory for as long as the file lives.
pub(crate) fn lock_dir(dir: &Path) -> anyhow::Result<File> {
    // It holds password hashes and the environment variables of deployments.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(|| format!("--data-dir: {} can't be made", dir.display()))?;
    lock("--data-dir", dir, &dir.join("lock"))
}

fn lock(setting: &str, what: &Path, lock: &Path) -> anyhow::Result<File> {
    let lock = File::create(lock)
        .with_context(|| format!("{setting}: {} can't be written to", what.display()))?;
    if lock.try_lock().is_err() {
        bail!("{setting}: {} is in use by another server", what.display());
    }
    Ok(lock)
}
