//! What the runtime on Docker or Podman is told once, when it starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use runtime::Credentials;

/// How the runtime behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// The engine's socket; without one the usual places are tried.
    pub socket: Option<PathBuf>,
    /// Tells this installation's containers from those of others; `a-z0-9-`, at most 20.
    pub instance: String,
    /// Credentials by registry, written as in image names: `registry.local:5000`.
    pub registries: BTreeMap<String, Credentials>,
    /// The largest image, unpacked. The engine unpacks before its size is known: a larger one is
    /// removed again, not kept out.
    pub max_image_bytes: u64,
    /// How long a whole pull may take.
    pub pull_timeout: Duration,
    /// How long a pull may be without progress.
    pub read_timeout: Duration,
    /// How long a container has between SIGTERM and SIGKILL.
    pub stop_grace: Duration,
    /// How long the first wait before a restart is; each further one is twice as long.
    pub restart_first: Duration,
    /// How long the waits before restarts get at most.
    pub restart_most: Duration,
    /// How large one log file gets before the next one begins.
    pub max_log_bytes: u64,
    /// How many log files of a container are kept; Podman keeps one.
    pub log_files: u32,
    /// The cgroup that containers are put under; the engine's own choice without one.
    pub cgroup_parent: Option<String>,
    /// How many processes and threads a container may have.
    pub max_pids: i64,
}

impl Options {
    /// The usual behaviour.
    pub fn new(instance: impl Into<String>) -> Self {
        Self {
            socket: None,
            instance: instance.into(),
            registries: BTreeMap::new(),
            max_image_bytes: 8 << 30,
            pull_timeout: Duration::from_mins(15),
            read_timeout: Duration::from_mins(2),
            stop_grace: Duration::from_secs(10),
            restart_first: Duration::from_secs(1),
            restart_most: Duration::from_mins(5),
            max_log_bytes: 10 << 20,
            log_files: 4,
            cgroup_parent: None,
            max_pids: 1024,
        }
    }
}
