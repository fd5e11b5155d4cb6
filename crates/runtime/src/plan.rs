//! Files through which the server and a shim communicate.
//!
//! A shim may be older than the server that reads its files: fields are only ever added, each
//! with a default.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cgroup::parent::ParentLimits;
use super::container::Container;
use super::image::Image;
use super::shim::Disk;
use super::userns::UserNs;

/// Memory with which pid 1 of a container can start.
const MIN_RAM: i64 = 6 << 20;

/// Instructions to a shim: written by the server before the shim starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) container: Container,
    pub(crate) image: Image,
    /// Directory of unpacked layers.
    pub(crate) layers: PathBuf,
    /// The container's cgroup, absolute in each hierarchy.
    pub(crate) cgroup: String,
    /// Network attachment. Containers that an earlier version attached to the host network have
    /// none: their plan can't be read, and they are removed.
    pub(crate) link: Link,
    /// Host loopback ports, one for each of the container's: the server's copy of the forwarder's
    /// report, and what a new forwarder tries first. Unused by the shim.
    pub(crate) published: Vec<u16>,
    pub(crate) stop_grace_ms: u64,
    pub(crate) restart_first_ms: u64,
    pub(crate) restart_most_ms: u64,
    pub(crate) max_log_bytes: u64,
    pub(crate) log_files: u32,
    pub(crate) max_pids: i64,
    /// Limits of containers without their own; zero: none, as in plans of older versions.
    #[serde(default)]
    pub(crate) default_cpu_milli: i64,
    #[serde(default)]
    pub(crate) default_ram_bytes: i64,
    /// Limits of all containers together; none in plans of older versions.
    #[serde(default)]
    pub(crate) parent: Option<ParentLimits>,
    /// Writable layer; none: a plain directory, as in plans of older versions.
    #[serde(default)]
    pub(crate) disk: Option<Disk>,
    /// User namespace; none: the host's, as in plans of older versions.
    #[serde(default)]
    pub(crate) user_ns: Option<UserNs>,
    /// Boot id: process ids of another boot are meaningless.
    pub(crate) boot: String,
}

impl Plan {
    /// The memory limit in bytes. A lower one than pid 1 needs is raised to that.
    pub(crate) fn ram_bytes(&self) -> Option<i64> {
        let default = Some(self.default_ram_bytes).filter(|bytes| *bytes > 0);
        self.container.ram_bytes().or(default).map(|bytes| bytes.max(MIN_RAM))
    }

    /// The CPU limit in millicores.
    pub(crate) fn cpu_milli(&self) -> Option<i64> {
        let default = Some(self.default_cpu_milli).filter(|milli| *milli > 0);
        self.container.cpu_milli().or(default)
    }
}

/// Network attachment of a container: a veth pair and an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) bridge: String,
    /// Name of the veth end on the host.
    pub(crate) host_end: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) prefix: u8,
    pub(crate) gateway: Ipv4Addr,
}

/// State of a container: written by its shim, atomically, at each change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// Pid of the shim.
    pub(crate) shim: i32,
    /// The container's pid 1, while it runs.
    pub(crate) pid: Option<i32>,
    /// Number of restarts.
    #[serde(default)]
    pub(crate) restarts: u32,
    /// The last exit.
    #[serde(default)]
    pub(crate) last: Option<End>,
    /// Backoff before the next restart.
    #[serde(default)]
    pub(crate) wait_ms: u64,
}

/// Phase of a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    #[default]
    Starting,
    Running,
    /// Exited, waits for its restart.
    Waiting,
    /// Exited, no restart.
    Ended,
}

/// Exit of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    /// Message for users.
    pub(crate) reason: String,
    /// Whether one of its processes was OOM-killed.
    #[serde(default)]
    pub(crate) is_oom: bool,
}

/// Directory of a container: an OCI bundle, plus state and logs.
#[derive(Debug, Clone)]
pub(crate) struct Bundle(pub(crate) PathBuf);

impl Bundle {
    pub(crate) fn plan(&self) -> PathBuf {
        self.0.join("plan.json")
    }
    pub(crate) fn state(&self) -> PathBuf {
        self.0.join("state.json")
    }
    /// Locked by the shim as long as it lives: the lock, not a pid, proves liveness.
    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }
    /// Request to the port forwarder, which locks the file as long as it lives.
    pub(crate) fn forwarder(&self) -> PathBuf {
        self.0.join("porter.json")
    }
    /// Ports that the forwarder listens on.
    pub(crate) fn ports(&self) -> PathBuf {
        self.0.join("ports.json")
    }
    pub(crate) fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }
    /// The shim's stderr.
    pub(crate) fn shim_stderr(&self) -> PathBuf {
        self.0.join("shim.err")
    }
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// Id of the current boot.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
