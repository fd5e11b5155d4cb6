//! Locks on files, against a second process with the same directory or database.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long to wait for a lock.
///
/// A killed process holds its locks until the kernel has freed its memory. A process that it was
/// starting holds them until it executes its program.
const TIMEOUT: Duration = Duration::from_secs(3);
const INTERVAL: Duration = Duration::from_millis(20);

/// Creates and locks a file. Returns `None` if another process keeps it locked. The lock lasts until
/// the file is dropped. Blocks for up to three seconds.
pub fn acquire(path: &Path) -> io::Result<Option<File>> {
    let file = File::create(path)?;
    let start = crate::monotonic();
    while file.try_lock().is_err() {
        if start.elapsed() > TIMEOUT {
            return Ok(None);
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_of_an_ending_process_is_awaited() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = acquire(&path).unwrap().unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| acquire(&path).unwrap());
            std::thread::sleep(INTERVAL * 3);
            drop(first);
            let second = second.join().unwrap();
            assert!(second.is_some());
            assert!(File::create(&path).unwrap().try_lock().is_err());
        });
    }

    #[test]
    fn lock_of_a_running_process_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let _first = acquire(&path).unwrap().unwrap();
        assert!(acquire(&path).unwrap().is_none());
    }
}
