//! One run of the program, in a process group of its own: what it has started is ended with it.
//!
//! It writes to files, not to us: should the server die, it goes on, and its state is written down. Its
//! standard input is the lock of its folder, which is held for as long as it lives.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};

use super::{Options, folder};

/// What Terraform gets of the server's environment, if it is there.
const PASSED: [&str; 13] = [
    "PATH",
    "TF_CLI_CONFIG_FILE",
    CACHE,
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
];

/// Names the folder in which plugins are kept for all.
const CACHE: &str = "TF_PLUGIN_CACHE_DIR";
/// That folder, in the folder of work. No key is called so.
pub(super) const PLUGINS: &str = ".plugins";

/// The file that says which process runs.
const NOTE: &str = "process";
/// The file that says that it was interrupted. Terraform that is interrupted twice ends without writing
/// its state: of all who want to, only the one who has made this file does.
const INTERRUPTED: &str = "process.interrupted";
/// How often a group that was interrupted is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How often it is looked whether a program writes without end.
const FLOOD_LOOK: Duration = Duration::from_secs(1);
/// The most that one program may write.
pub(super) const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// How long the program may take to say its version.
const VERSION_PATIENCE: Duration = Duration::from_mins(1);

/// How a program ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// By itself, or by somebody else.
    With(ExitStatus),
    /// It took too long and was stopped.
    Late,
    /// It wrote without end and was stopped.
    Flooded,
}

/// A running program. Dropped, it is interrupted, and killed if it does not end. Its folder stays locked
/// until all is gone that it has started.
pub(super) struct Running {
    child: Child,
    lock: Option<File>,
    group: Option<Pid>,
    is_interrupted: bool,
    grace: Duration,
    /// The folder that says which process it is, for a server after this one.
    home: PathBuf,
}

impl Running {
    /// Starts it in the folder `at`, inside of `home`.
    pub(super) fn start(
        options: &Options,
        home: &Path,
        at: &Path,
        words: &[String],
        (lock, output, log): (File, File, File),
    ) -> io::Result<Self> {
        let inherited = lock.try_clone()?;
        // Of one before it.
        forget(home);
        let child = Command::new(&options.program)
            .args(words)
            .current_dir(at)
            .env_clear()
            .envs(environment(options, home))
            .stdin(Stdio::from(inherited))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(log))
            .process_group(0)
            .spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let _ = folder::write(&home.join(NOTE), &child.id().unwrap_or_default().to_string());
        let (grace, lock, home) = (options.grace, Some(lock), home.to_owned());
        Ok(Self { child, lock, group, is_interrupted: false, grace, home })
    }

    /// Waits for its end, and stops it if that takes too long, or if it writes too much to one of these.
    pub(super) async fn ended(mut self, within: Duration, logs: &[PathBuf]) -> io::Result<Ended> {
        let stopped = tokio::select! {
            ended = self.child.wait() => {
                // What a module has left running on purpose is not ours to end. What one that was
                // killed has left is nobody's, and holds the lock.
                let is_killed = ended.as_ref().is_ok_and(|ended| ended.signal().is_some());
                if let Some(group) = self.group.filter(|_| is_killed) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                self.over();
                return ended.map(Ended::With);
            }
            () = tokio::time::sleep(within) => Ended::Late,
            () = flooded(logs) => Ended::Flooded,
        };
        self.stop().await;
        Ok(stopped)
    }

    async fn stop(&mut self) {
        let Some(group) = self.group else { return };
        self.interrupt(group);
        let _ = tokio::time::timeout(self.grace, self.child.wait()).await;
        // Programs that it had started may have outlived it.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait().await;
        self.over();
    }

    fn interrupt(&mut self, group: Pid) {
        if !std::mem::replace(&mut self.is_interrupted, true) {
            interrupt_once(&self.home, group);
        }
    }

    fn over(&mut self) {
        forget(&self.home);
        self.group = None;
    }
}

/// Nothing runs here any more. Whoever says so has the lock.
fn forget(home: &Path) {
    for name in [NOTE, INTERRUPTED] {
        let _ = folder::remove(&home.join(name));
    }
}

/// Interrupts a group unless somebody has. The note stays: should this server end before the group does,
/// the next one kills it.
fn interrupt_once(home: &Path, group: Pid) {
    match File::create_new(home.join(INTERRUPTED)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        // One that can't be noted is interrupted all the same.
        _ => drop(kill_process_group(group, Signal::INT)),
    }
}

/// Returns once one of these files is longer than may be.
async fn flooded(logs: &[PathBuf]) {
    let is_full = |log: &PathBuf| log.metadata().is_ok_and(|found| found.len() > MOST_BYTES);
    while !logs.iter().any(is_full) {
        tokio::time::sleep(FLOOD_LOOK).await;
    }
}

/// Interrupts, once, what a server that is no more has left running in this folder. Asked again, it kills
/// what has not ended after a while.
pub(super) fn interrupt_left(home: &Path, grace: Duration) {
    let Some(group) = noted(home) else { return };
    match age(&home.join(INTERRUPTED)) {
        None => interrupt_once(home, group),
        Some(since) if since >= grace => drop(kill_process_group(group, Signal::KILL)),
        Some(_) => {}
    }
}

/// Was what runs in this folder interrupted before, or has it run for longer than it may?
pub(super) fn is_overdue(home: &Path, limit: Duration) -> bool {
    age(&home.join(INTERRUPTED)).is_some() || age(&home.join(NOTE)).is_some_and(|age| age >= limit)
}

/// The group that the note of a folder names, if it runs there. Its number may mean another group by now,
/// or one of another machine, whose note it stays.
fn noted(home: &Path) -> Option<Pid> {
    let group: i32 = folder::read(&home.join(NOTE)).ok()??.parse().ok()?;
    let home = home.canonicalize().ok()?;
    // Whoever has led it may be gone already.
    let all = std::fs::read_dir("/proc").ok()?.flatten();
    let mut processes = all.map(|entry| entry.path());
    let is_here = |process: &Path| {
        group_of(process) == Some(group)
            && process.join("cwd").read_link().is_ok_and(|cwd| cwd.starts_with(&home))
    };
    processes.any(|process| is_here(&process)).then(|| Pid::from_raw(group))?
}

/// The group of a process, from its folder in `/proc`.
fn group_of(process: &Path) -> Option<i32> {
    let told = std::fs::read_to_string(process.join("stat")).ok()?;
    // Its name, in brackets, may have anything in it; what follows are its state, its parent, its group.
    told.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

/// How long ago a file was written, if it was.
fn age(file: &Path) -> Option<Duration> {
    let written = file.metadata().and_then(|found| found.modified()).ok()?;
    Some(written.elapsed().unwrap_or_default())
}

/// What the program says of its version.
pub(super) async fn version(options: &Options, home: &Path) -> io::Result<String> {
    let said = Command::new(&options.program)
        .arg("version")
        .current_dir(home)
        .env_clear()
        .envs(environment(options, home))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let said = tokio::time::timeout(VERSION_PATIENCE, said).await.map_err(late)??;
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(group) = self.group else { return };
        self.interrupt(group);
        let until = base::monotonic() + self.grace;
        let (lock, home) = (self.lock.take(), self.home.clone());
        // A thread, because the runtime may be about to end. Its number can't mean another group as
        // long as one of the group lives.
        std::thread::spawn(move || {
            let _lock = lock;
            while test_kill_process_group(group).is_ok() {
                if base::monotonic() >= until {
                    let _ = kill_process_group(group, Signal::KILL);
                    break;
                }
                std::thread::sleep(LOOK);
            }
            forget(&home);
        });
    }
}

fn environment(options: &Options, home: &Path) -> Vec<(OsString, OsString)> {
    let passed = PASSED.iter().copied().chain(options.pass.iter().map(String::as_str));
    let passed = passed.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let cache = (CACHE.into(), options.work.join(PLUGINS).into());
    let ours = [
        ("HOME", home.into()),
        ("TF_DATA_DIR", home.join("data").into()),
        ("TF_IN_AUTOMATION", "1".into()),
        ("TF_INPUT", "0".into()),
        ("CHECKPOINT_DISABLE", "1".into()),
    ];
    let ours = ours.map(|(name, value): (&str, OsString)| (name.into(), value));
    // What somebody has set wins over our folder of plugins, and over nothing else.
    std::iter::once(cache).chain(passed).chain(ours).collect()
}
