//! One process of the program, in its own process group, so that its children end with it.
//!
//! A process writes to files: if the server crashes, it continues and writes its state. Its
//! standard input is the lock file of its workspace, which therefore stays locked as long as it
//! lives.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use model::Secret;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};

use super::{Options, folder};

/// The environment variables that Terraform gets from the server.
const INHERITED: [&str; 13] = [
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

/// The variable of the shared plugin cache.
const CACHE: &str = "TF_PLUGIN_CACHE_DIR";
/// The plugin cache in the work folder. No key has this name.
pub(super) const PLUGINS: &str = ".plugins";

/// The file with the process group id.
const PID_FILE: &str = "process";
/// Marks the process as interrupted. A second interrupt makes Terraform exit without writing its
/// state: only the creator of this file interrupts.
const INTERRUPTED: &str = "process.interrupted";
/// How often to check an interrupted group.
const GROUP_POLL: Duration = Duration::from_millis(50);

/// How often to check the size of the output.
const OUTPUT_POLL: Duration = Duration::from_secs(1);
/// The maximum output of one process.
pub(super) const MAX_OUTPUT_BYTES: u64 = 32 * 1024 * 1024;
/// The timeout of the `version` command.
const VERSION_TIMEOUT: Duration = Duration::from_mins(1);

/// How a process ended.
#[derive(Debug)]
pub(super) enum Exit {
    /// With an exit status.
    Status(ExitStatus),
    /// Stopped after its timeout.
    TimedOut,
    /// Stopped because of too much output.
    OutputLimit,
}

/// A running process. Dropping it interrupts the process, and kills it after the grace period. Its
/// workspace stays locked until all of its children have ended.
pub(super) struct Process {
    child: Child,
    lock: Option<File>,
    group: Option<Pid>,
    is_interrupted: bool,
    grace: Duration,
    /// The workspace with the PID file, for a later server.
    home: PathBuf,
}

impl Process {
    /// Starts the program in the folder `at` below `home`.
    pub(super) fn start(
        (options, credentials): (&Options, &BTreeMap<String, Secret>),
        home: &Path,
        at: &Path,
        args: &[String],
        (lock, output, log): (File, File, File),
    ) -> io::Result<Self> {
        let inherited = lock.try_clone()?;
        // Left by an earlier process.
        remove_pid_files(home);
        let child = Command::new(&options.program)
            .args(args)
            .current_dir(at)
            .env_clear()
            .envs(environment(options, credentials, home))
            .stdin(Stdio::from(inherited))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(log))
            .process_group(0)
            .spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let _ = folder::write(&home.join(PID_FILE), &child.id().unwrap_or_default().to_string());
        let (grace, lock, home) = (options.grace, Some(lock), home.to_owned());
        Ok(Self { child, lock, group, is_interrupted: false, grace, home })
    }

    /// Waits for the end, and stops the process after the timeout or if one of these files gets too
    /// large.
    pub(super) async fn wait(mut self, timeout: Duration, logs: &[PathBuf]) -> io::Result<Exit> {
        let stopped = tokio::select! {
            ended = self.child.wait() => {
                // A normal exit may leave background processes on purpose. A killed process leaves
                // orphans, which hold the lock.
                let is_killed = ended.as_ref().is_ok_and(|ended| ended.signal().is_some());
                if let Some(group) = self.group.filter(|_| is_killed) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                self.finish();
                return ended.map(Exit::Status);
            }
            () = tokio::time::sleep(timeout) => Exit::TimedOut,
            () = output_limit(logs) => Exit::OutputLimit,
        };
        self.stop().await;
        Ok(stopped)
    }

    async fn stop(&mut self) {
        let Some(group) = self.group else { return };
        self.interrupt(group);
        let _ = tokio::time::timeout(self.grace, self.child.wait()).await;
        // Its children may still run.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait().await;
        self.finish();
    }

    fn interrupt(&mut self, group: Pid) {
        if !std::mem::replace(&mut self.is_interrupted, true) {
            interrupt_once(&self.home, group);
        }
    }

    fn finish(&mut self) {
        remove_pid_files(&self.home);
        self.group = None;
    }
}

/// Removes the PID files. The caller must hold the lock.
fn remove_pid_files(home: &Path) {
    for name in [PID_FILE, INTERRUPTED] {
        let _ = folder::remove(&home.join(name));
    }
}

/// Interrupts a group, unless that was done. The PID file stays: if this server ends before the
/// group, the next one kills it.
fn interrupt_once(home: &Path, group: Pid) {
    match File::create_new(home.join(INTERRUPTED)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        // If the marker can't be written, the group is interrupted anyway.
        _ => drop(kill_process_group(group, Signal::INT)),
    }
}

/// Returns once one of these files exceeds the limit.
async fn output_limit(logs: &[PathBuf]) {
    let is_full = |log: &PathBuf| log.metadata().is_ok_and(|found| found.len() > MAX_OUTPUT_BYTES);
    while !logs.iter().any(is_full) {
        tokio::time::sleep(OUTPUT_POLL).await;
    }
}

/// Interrupts, once, the process that an earlier server left in this workspace. Later calls kill it
/// after the grace period.
pub(super) fn interrupt_orphan(home: &Path, grace: Duration) {
    let Some(group) = orphan_group(home) else { return };
    match age(&home.join(INTERRUPTED)) {
        None => interrupt_once(home, group),
        Some(since) if since >= grace => drop(kill_process_group(group, Signal::KILL)),
        Some(_) => {}
    }
}

/// Whether the process in this workspace was interrupted before, or exceeds its timeout.
pub(super) fn is_overdue(home: &Path, limit: Duration) -> bool {
    age(&home.join(INTERRUPTED)).is_some()
        || age(&home.join(PID_FILE)).is_some_and(|age| age >= limit)
}

/// The group of the PID file, if it runs in this workspace. The number may have been reused, or
/// belong to another machine.
fn orphan_group(home: &Path) -> Option<Pid> {
    let group: i32 = folder::read(&home.join(PID_FILE)).ok()??.parse().ok()?;
    let home = home.canonicalize().ok()?;
    // The leader of the group may have ended.
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
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    // The name, in parentheses, may contain anything; the state, the parent and the group follow.
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

/// The time since a file was written, if it exists.
fn age(file: &Path) -> Option<Duration> {
    let written = file.metadata().and_then(|found| found.modified()).ok()?;
    Some(written.elapsed().unwrap_or_default())
}

/// The output of the `version` command.
pub(super) async fn version(options: &Options, home: &Path) -> io::Result<String> {
    let output = Command::new(&options.program)
        .arg("version")
        .current_dir(home)
        .env_clear()
        .envs(environment(options, &BTreeMap::new(), home))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let timed_out = |_| io::Error::from(io::ErrorKind::TimedOut);
    let output = tokio::time::timeout(VERSION_TIMEOUT, output).await.map_err(timed_out)??;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(group) = self.group else { return };
        self.interrupt(group);
        let until = base::monotonic() + self.grace;
        let (lock, home) = (self.lock.take(), self.home.clone());
        // A thread, because the runtime may be shutting down. The group's number can't be reused as
        // long as one of its processes lives.
        std::thread::spawn(move || {
            let _lock = lock;
            while test_kill_process_group(group).is_ok() {
                if base::monotonic() >= until {
                    let _ = kill_process_group(group, Signal::KILL);
                    break;
                }
                std::thread::sleep(GROUP_POLL);
            }
            remove_pid_files(&home);
        });
    }
}

/// The environment of the program. An organization's own credentials replace the platform's: the two
/// identities are never mixed.
fn environment(
    options: &Options,
    credentials: &BTreeMap<String, Secret>,
    home: &Path,
) -> Vec<(OsString, OsString)> {
    let passed = options.inherited_env.iter().filter(|_| credentials.is_empty());
    let inherited = INHERITED.iter().copied().chain(passed.map(String::as_str));
    let inherited = inherited.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let own = credentials.iter().map(|(name, secret)| (name.into(), secret.reveal().into()));
    let cache = (CACHE.into(), options.work_dir.join(PLUGINS).into());
    let ours = [
        ("HOME", home.into()),
        ("TF_DATA_DIR", home.join("data").into()),
        ("TF_IN_AUTOMATION", "1".into()),
        ("TF_INPUT", "0".into()),
        ("CHECKPOINT_DISABLE", "1".into()),
    ];
    let ours = ours.map(|(name, value): (&str, OsString)| (name.into(), value));
    // The server's environment overrides only the plugin cache.
    std::iter::once(cache).chain(inherited).chain(own).chain(ours).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_credentials_replace_the_platforms() {
        let mut options = Options::without_modules("terraform", "/work");
        // A variable that every process has.
        options.inherited_env = vec!["CARGO_MANIFEST_DIR".into()];
        let names = |credentials: &BTreeMap<String, Secret>| -> Vec<OsString> {
            let all = environment(&options, credentials, Path::new("/home"));
            all.into_iter().map(|(name, _)| name).collect()
        };
        let has = |names: &[OsString], name: &str| names.iter().any(|found| found == name);
        let platform = names(&BTreeMap::new());
        assert!(has(&platform, "CARGO_MANIFEST_DIR"), "{platform:?}");
        let own = [("AWS_ACCESS_KEY_ID".to_owned(), Secret::new("a"))].into();
        let own = names(&own);
        assert!(has(&own, "AWS_ACCESS_KEY_ID") && has(&own, "PATH"), "{own:?}");
        assert!(!has(&own, "CARGO_MANIFEST_DIR"), "{own:?}");
    }
}
