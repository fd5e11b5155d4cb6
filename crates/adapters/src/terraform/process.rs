//! One run of the program, in a process group of its own: what it has started is ended with it.
//!
//! It writes to files, not to us: should the server die, it goes on, and its state is written down. Its
//! standard input is the lock of its folder, which is held for as long as it lives.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};

use super::{Options, folder};

/// What Terraform gets of the server's environment, if it is there.
const PASSED: [&str; 13] = [
    "PATH",
    "TF_CLI_CONFIG_FILE",
    "TF_PLUGIN_CACHE_DIR",
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

/// The file that says which process runs.
const NOTE: &str = "process";
/// How often a group that was interrupted is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// A running program. Dropped, it is interrupted, and killed if it does not end.
pub(super) struct Running {
    child: Child,
    group: Option<Pid>,
    /// Terraform that is interrupted twice ends without writing its state.
    is_interrupted: bool,
    grace: Duration,
    /// Says which process it is, for a server after this one.
    note: PathBuf,
}

impl Running {
    /// Starts it in the folder `at`, inside of `home`.
    pub(super) fn start(
        options: &Options,
        home: &Path,
        at: &Path,
        words: &[&str],
        (lock, output, log): (File, File, File),
    ) -> io::Result<Self> {
        let child = Command::new(&options.program)
            .args(words)
            .current_dir(at)
            .env_clear()
            .envs(environment(options, home))
            .stdin(Stdio::from(lock))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(log))
            .process_group(0)
            .spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let note = home.join(NOTE);
        let _ = folder::write(&note, &child.id().unwrap_or_default().to_string());
        Ok(Self { child, group, is_interrupted: false, grace: options.grace, note })
    }

    /// Waits for its end; none if it took too long and was stopped.
    pub(super) async fn ended(mut self, within: Duration) -> io::Result<Option<ExitStatus>> {
        let Ok(ended) = tokio::time::timeout(within, self.child.wait()).await else {
            self.stop().await;
            return Ok(None);
        };
        // What a module has left running on purpose is not ours to end.
        self.over();
        ended.map(Some)
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
        let _ = folder::remove(&self.note);
        if !std::mem::replace(&mut self.is_interrupted, true) {
            let _ = kill_process_group(group, Signal::INT);
        }
    }

    fn over(&mut self) {
        let _ = folder::remove(&self.note);
        self.group = None;
    }
}

/// Interrupts, once, what a server that is no more has left running in this folder.
pub(super) fn interrupt_left(home: &Path, at: &Path) {
    let note = home.join(NOTE);
    let Some(id) = folder::read(&note).ok().flatten().and_then(|id| id.parse().ok()) else {
        return;
    };
    let _ = folder::remove(&note);
    // Its number may mean another process by now, or one of another machine.
    let is_here = std::fs::read_link(format!("/proc/{id}/cwd"))
        .is_ok_and(|cwd| at.canonicalize().is_ok_and(|at| at == cwd));
    if let Some(group) = Pid::from_raw(id).filter(|_| is_here) {
        let _ = kill_process_group(group, Signal::INT);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(group) = self.group else { return };
        self.interrupt(group);
        let until = Instant::now() + self.grace;
        // A thread, because the runtime may be about to end. Its number can't mean another group as
        // long as one of the group lives.
        std::thread::spawn(move || {
            while test_kill_process_group(group).is_ok() {
                if Instant::now() >= until {
                    let _ = kill_process_group(group, Signal::KILL);
                    return;
                }
                std::thread::sleep(LOOK);
            }
        });
    }
}

fn environment(options: &Options, home: &Path) -> Vec<(OsString, OsString)> {
    let passed = PASSED.iter().copied().chain(options.pass.iter().map(String::as_str));
    let passed = passed.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let ours = [
        ("HOME", home.into()),
        ("TF_DATA_DIR", home.join("data").into()),
        ("TF_IN_AUTOMATION", "1".into()),
        ("TF_INPUT", "0".into()),
        ("CHECKPOINT_DISABLE", "1".into()),
    ];
    passed.chain(ours.map(|(name, value): (&str, OsString)| (name.into(), value))).collect()
}
