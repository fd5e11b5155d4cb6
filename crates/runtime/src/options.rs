//! What the embedded runtime is told once, when it starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::credentials::Credentials;

/// Which network containers get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// Their own if this machine allows it, else the machine's.
    #[default]
    Auto,
    /// Their own: a network namespace each, joined by a bridge that belongs to this installation.
    Own,
    /// The machine's. No isolation; two containers can't listen on the same port.
    Host,
}

/// How the runtime behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where images and containers are kept. One process at a time works with it.
    pub dir: PathBuf,
    /// Tells this installation's cgroups and links from those of others; `a-z0-9-`, at most 20.
    pub instance: String,
    /// The program to run as fetcher, shim and porter; it must call [`child_main`](super::child_main) first.
    pub program: PathBuf,
    /// The largest image, packed or unpacked.
    pub max_image_bytes: u64,
    /// The most files and directories of an image.
    pub max_image_entries: u64,
    /// Credentials by registry, written as in image names: `registry.local:5000`.
    pub registries: BTreeMap<String, Credentials>,
    /// How long a whole pull may take.
    pub pull_timeout: Duration,
    /// How long a registry may be silent.
    pub read_timeout: Duration,
    /// How long a container has between SIGTERM and SIGKILL.
    pub stop_grace: Duration,
    /// How long the first wait before a restart is; each further one is twice as long.
    pub restart_first: Duration,
    /// How long the waits before restarts get at most.
    pub restart_most: Duration,
    /// How large one log file gets before the next one begins.
    pub max_log_bytes: u64,
    /// How many log files of a container are kept.
    pub log_files: u32,
    /// How many processes and threads a container may have.
    pub max_pids: i64,
    /// Which network containers get.
    pub network: Network,
    /// May containers reach the world? Needs `nft` or `iptables` on this machine.
    pub egress: bool,
}

impl Options {
    /// The usual behaviour, for what is kept in `dir`.
    pub fn new(dir: impl Into<PathBuf>, instance: impl Into<String>) -> Self {
        Self {
            dir: dir.into(),
            instance: instance.into(),
            // Not its path: an upgrade may have put another file there meanwhile.
            program: PathBuf::from("/proc/self/exe"),
            max_image_bytes: 8 << 30,
            max_image_entries: 1_000_000,
            registries: BTreeMap::new(),
            pull_timeout: Duration::from_mins(15),
            read_timeout: Duration::from_secs(30),
            stop_grace: Duration::from_secs(10),
            restart_first: Duration::from_secs(1),
            restart_most: Duration::from_mins(5),
            max_log_bytes: 10 << 20,
            log_files: 4,
            max_pids: 1024,
            network: Network::Auto,
            egress: true,
        }
    }
}
