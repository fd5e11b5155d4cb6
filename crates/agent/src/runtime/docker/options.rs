//! Configuration of the Docker and Podman runtime.

use std::path::PathBuf;
use std::time::Duration;

use runtime::Registries;

/// Configuration of the Docker and Podman runtime.
#[derive(Debug, Clone)]
pub struct Options {
    /// The engine's socket; by default the standard paths are tried.
    pub socket: Option<PathBuf>,
    /// Distinguishes the containers of installations on one engine; `a-z0-9-`, at most 20.
    pub instance: String,
    /// Directory for archives of images that are being loaded.
    pub dir: PathBuf,
    /// Program to run as helper process for archives; it must call `runtime::child_main` first.
    pub program: PathBuf,
    /// Credentials of registries. The engine itself decides to which hosts registries may refer.
    pub registries: Registries,
    /// Maximum unpacked image size. The engine reports it only after unpacking, so a larger image
    /// is pulled and then removed.
    pub max_image_bytes: u64,
    /// Timeout of a whole pull.
    pub pull_timeout: Duration,
    /// Timeout of a pull without progress.
    pub read_timeout: Duration,
    /// Grace period between SIGTERM and SIGKILL.
    pub stop_grace: Duration,
    /// First restart backoff; each further one doubles.
    pub restart_backoff: Duration,
    /// Maximum restart backoff.
    pub max_restart_backoff: Duration,
    /// Size at which a log file is rotated.
    pub max_log_bytes: u64,
    /// Number of log files retained per container; Podman retains one.
    pub log_files: u32,
    /// Parent cgroup of containers; the engine's default if none.
    pub cgroup_parent: Option<String>,
    /// Maximum number of processes and threads of a container.
    pub max_pids: i64,
}

impl Options {
    /// The defaults.
    pub fn new(instance: impl Into<String>) -> Self {
        Self {
            socket: None,
            instance: instance.into(),
            dir: std::env::temp_dir(),
            program: PathBuf::from("/proc/self/exe"),
            registries: Registries::default(),
            max_image_bytes: 8 << 30,
            pull_timeout: Duration::from_mins(15),
            read_timeout: Duration::from_mins(2),
            stop_grace: Duration::from_secs(10),
            restart_backoff: Duration::from_secs(1),
            max_restart_backoff: Duration::from_mins(5),
            max_log_bytes: 10 << 20,
            log_files: 4,
            cgroup_parent: None,
            max_pids: 1024,
        }
    }
}
