//! Removes trees that containers and layers have created, in a helper process that is
//! confined to them.
//!
//! A tree is first moved to the trash, which frees its name at once. Its removal may then take long
//! or fail without an effect on anything else: what remains in the trash is removed later.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, io};

use base::{task, tree};
use futures_util::{StreamExt, stream};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, open, renameat_with};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::task::JoinHandle;

use super::child::{Task, close_inherited_fds};
use super::confine::{self, Place, confine};
use super::dirs::Dirs;
use super::{Embedded, Error};

/// How long a caller waits for a removal before it continues in the background.
const WAIT: Duration = Duration::from_secs(30);
/// Timeout of one removal. The next one continues with what is left.
const TIMEOUT: Duration = Duration::from_mins(10);
/// Number of trees that are removed concurrently when the trash is emptied.
const CONCURRENT: usize = 4;
/// Limits of the remover: address space and descriptors.
const MAX_ADDRESS_SPACE: u64 = 1 << 30;
const MAX_DESCRIPTORS: u64 = 64;

/// Moves a tree to the trash. Returns its new path.
pub(super) fn discard(dirs: &Dirs, tree: &Path) -> io::Result<PathBuf> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let trash = dirs.trash().join(format!("{}-{number}", std::process::id()));
        match renameat_with(CWD, tree, CWD, &trash, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(trash),
            // Of an earlier process with the same id.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Embedded {
    /// Removes discarded trees in the background. A failure is logged; the tree stays in the trash.
    pub(super) fn purge(&self, trees: Vec<PathBuf>) -> JoinHandle<()> {
        let program = self.options.program.clone();
        task::spawn("file removal", async move {
            let removals = trees.into_iter().map(|tree| remove_logged(program.clone(), tree));
            stream::iter(removals).buffer_unordered(CONCURRENT).collect::<()>().await;
        })
    }
}

/// Waits for a removal, but not for long: it continues in the background.
pub(super) async fn wait(removal: JoinHandle<()>) {
    if tokio::time::timeout(WAIT, removal).await.is_err() {
        tracing::warn!("removing files takes long, continuing in the background");
    }
}

/// Everything in the trash.
pub(super) fn trash(dirs: &Dirs) -> Vec<PathBuf> {
    fs::read_dir(dirs.trash()).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

async fn remove_logged(program: PathBuf, tree: PathBuf) {
    if let Err(error) = run(&program, &tree).await {
        let tree = tree.display();
        tracing::error!(%tree, %error, "removing files failed, garbage collection retries it");
    }
}

/// Runs a remover. Dropping the future kills it.
async fn run(program: &Path, tree: &Path) -> Result<(), Error> {
    let remover = tokio::process::Command::new(program)
        .arg(Task::Remove.argument())
        .arg(tree)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .kill_on_drop(true)
        .output();
    let output = match tokio::time::timeout(TIMEOUT, remover).await {
        Ok(output) => output.map_err(|error| Error::io("Starting the remover failed", error))?,
        Err(_) => {
            let seconds = TIMEOUT.as_secs();
            return Err(Error::Helper(format!("Removal timed out after {seconds} s.")));
        }
    };
    let response: Result<(), Error> = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| Err(Error::Helper(format!("Remover failed: {}.", output.status))));
    response?;
    remove_empty(tree).await.map_err(|error| Error::io("Removing files failed", error))
}

/// Removes the emptied tree: the remover is confined to it.
async fn remove_empty(tree: &Path) -> io::Result<()> {
    use io::ErrorKind::{DirectoryNotEmpty, NotFound};
    match tokio::fs::remove_dir(tree).await {
        // Another remover is at work, or the tree was a file.
        Err(error) if matches!(error.kind(), DirectoryNotEmpty | NotFound) => Ok(()),
        removed => removed,
    }
}

/// Entry point of the helper process.
pub(crate) fn child(tree: &Path) -> ExitCode {
    let response = remove(tree).map_err(|error| Error::io("Removing files failed", error));
    match serde_json::to_writer(io::stdout().lock(), &response) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn remove(path: &Path) -> io::Result<()> {
    close_inherited_fds();
    limit()?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = match open(path, flags, Mode::empty()) {
        Ok(root) => root,
        Err(Errno::NOENT) => return Ok(()),
        // Not a directory.
        Err(Errno::NOTDIR | Errno::LOOP) => return fs::remove_file(path),
        Err(error) => return Err(error.into()),
    };
    if flock(&root, FlockOperation::NonBlockingLockExclusive).is_err() {
        // Another remover is at work, perhaps of a killed server.
        return Ok(());
    }
    confine::leave_network();
    confine(Place::Root(root.as_fd()), confine::REMOVE)?;
    tree::empty(root)
}

/// Limits the process, against trees made to exhaust it.
fn limit() -> io::Result<()> {
    let limits = [
        (Resource::As, MAX_ADDRESS_SPACE),
        (Resource::Nofile, MAX_DESCRIPTORS),
        (Resource::Core, 0),
    ];
    for (resource, limit) in limits {
        let limit = Some(limit);
        setrlimit(resource, Rlimit { current: limit, maximum: limit })?;
    }
    // Removal is not urgent. A failure is harmless.
    let _ = rustix::process::nice(10);
    Ok(())
}
