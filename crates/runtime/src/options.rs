//! Configuration of the embedded runtime.

use std::path::PathBuf;
use std::time::Duration;

use crate::credentials::Registries;
use crate::network::cidr::Cidr;

/// Program that isolates containers from the host and from private networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Firewall {
    /// The first that works: `nft`, then `iptables`.
    #[default]
    Auto,
    /// `nft`.
    Nft,
    /// `iptables`.
    Iptables,
}

/// Whether containers run in user namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Userns {
    /// If the kernel permits it.
    #[default]
    Auto,
    /// No: root of a container is root of the host, without most privileges.
    Off,
}

/// Configuration of the runtime.
#[derive(Debug, Clone)]
pub struct Options {
    /// Data directory for images and containers. One process at a time uses it.
    pub dir: PathBuf,
    /// Distinguishes the cgroups and links of installations on one host; `a-z0-9-`, at most 20.
    pub instance: String,
    /// Program to run as helper process; it must call [`child_main`](super::child_main) first.
    pub program: PathBuf,
    /// Maximum image size, compressed or unpacked.
    pub max_image_bytes: u64,
    /// Maximum number of files and directories of an image.
    pub max_image_entries: u64,
    /// Credentials of registries, and rules for them.
    pub registries: Registries,
    /// Timeout of a whole pull.
    pub pull_timeout: Duration,
    /// Timeout of a single read from a registry.
    pub read_timeout: Duration,
    /// Minimum speed of each layer of a pull, on average over `pull_speed_window`.
    pub min_pull_bytes_per_sec: u64,
    /// Period in which a pull must reach its minimum speed.
    pub pull_speed_window: Duration,
    /// Grace period between SIGTERM and SIGKILL.
    pub stop_grace: Duration,
    /// First restart backoff; each further one doubles.
    pub restart_backoff: Duration,
    /// Maximum restart backoff.
    pub max_restart_backoff: Duration,
    /// Size at which a log file is rotated.
    pub max_log_bytes: u64,
    /// Number of log files retained per container.
    pub log_files: u32,
    /// Disk limit of containers without one of their own: the size of their writable layer.
    pub disk_bytes: u64,
    /// CPU limit of containers without one of their own, in thousandths.
    pub default_cpu_milli: i64,
    /// Memory limit of containers without one of their own.
    pub default_ram_bytes: i64,
    /// CPU limit of all containers together, in thousandths. At most 95 % of the host's CPUs, which
    /// is the default.
    pub max_cpu_milli: Option<i64>,
    /// Memory limit of all containers together. At most 15/16 of the host's memory, which is the
    /// default.
    pub max_ram_bytes: Option<i64>,
    /// Maximum number of processes and threads of a container.
    pub max_pids: i64,
    /// Whether containers run in user namespaces, each owner's with ids of its own.
    pub userns: Userns,
    /// Whether to shift the ids of layers by idmapped mounts, if the kernel has them. Otherwise
    /// each start chowns all files of the image.
    pub idmapped_mounts: bool,
    /// Program that isolates containers. Without a working one, no container starts.
    pub firewall: Firewall,
    /// Whether containers may open connections to public addresses and to the host's DNS servers.
    pub egress: bool,
    /// Private networks that containers may reach, with egress.
    pub egress_allow: Vec<Cidr>,
}

impl Options {
    /// The defaults, with data in `dir`.
    pub fn new(dir: impl Into<PathBuf>, instance: impl Into<String>) -> Self {
        Self {
            dir: dir.into(),
            instance: instance.into(),
            // Not its path: an upgrade may have replaced the file.
            program: PathBuf::from("/proc/self/exe"),
            max_image_bytes: 8 << 30,
            max_image_entries: 1_000_000,
            registries: Registries::default(),
            pull_timeout: Duration::from_mins(15),
            read_timeout: Duration::from_secs(30),
            min_pull_bytes_per_sec: 10 << 10,
            pull_speed_window: Duration::from_secs(20),
            stop_grace: Duration::from_secs(10),
            restart_backoff: Duration::from_secs(1),
            max_restart_backoff: Duration::from_mins(5),
            max_log_bytes: 10 << 20,
            log_files: 4,
            disk_bytes: 1 << 30,
            default_cpu_milli: 100,
            default_ram_bytes: 64 << 20,
            max_cpu_milli: None,
            max_ram_bytes: None,
            max_pids: 1024,
            userns: Userns::Auto,
            idmapped_mounts: true,
            firewall: Firewall::Auto,
            egress: true,
            egress_allow: Vec::new(),
        }
    }
}
