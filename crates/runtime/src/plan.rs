//! What the server and a container's shim tell each other, through files.
//!
//! A shim may be older than the server that reads its files: fields are only ever added, each with
//! a default.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::container::Container;
use super::image::Image;

/// What a shim shall do: written by the server, before the shim starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) container: Container,
    pub(crate) image: Image,
    /// Where unpacked layers are.
    pub(crate) layers: PathBuf,
    /// The container's cgroup, absolute in each hierarchy.
    pub(crate) cgroup: String,
    /// Its place in the network; none: the machine's own network.
    pub(crate) link: Option<Link>,
    /// The ports on this machine's loopback, one for each of the container's: the server's copy of
    /// what the porter says, and what another porter shall take. Nothing to the shim.
    pub(crate) published: Vec<u16>,
    pub(crate) stop_grace_ms: u64,
    pub(crate) restart_first_ms: u64,
    pub(crate) restart_most_ms: u64,
    pub(crate) max_log_bytes: u64,
    pub(crate) log_files: u32,
    pub(crate) max_pids: i64,
    /// The boot it belongs to: process ids of another boot mean nothing.
    pub(crate) boot: String,
}

/// A container's place in the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) bridge: String,
    /// The name of our end of its cable.
    pub(crate) host_end: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) prefix: u8,
    pub(crate) gateway: Ipv4Addr,
}

/// Where a container is: written by its shim, whole, at each change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// The shim's process.
    pub(crate) shim: i32,
    /// The container's first process, while it runs.
    pub(crate) pid: Option<i32>,
    /// How often it was started again.
    #[serde(default)]
    pub(crate) restarts: u32,
    /// How it ended the last time.
    #[serde(default)]
    pub(crate) last: Option<End>,
    /// How long it waits from then until it is started again.
    #[serde(default)]
    pub(crate) wait_ms: u64,
}

/// Where a container is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    #[default]
    Starting,
    Running,
    /// Ended, will be started again.
    Waiting,
    /// Ended for good.
    Ended,
}

/// How a container's program ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    /// As a sentence.
    pub(crate) reason: String,
    /// Was one of its processes killed for lack of memory?
    #[serde(default)]
    pub(crate) is_oom: bool,
}

/// A container's directory.
#[derive(Debug, Clone)]
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn plan(&self) -> PathBuf {
        self.0.join("plan.json")
    }
    pub(crate) fn state(&self) -> PathBuf {
        self.0.join("state.json")
    }
    /// Held by the shim as long as it lives: this, not a process id, tells whether it does.
    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }
    /// What the container's porter shall do. Held by it as long as it lives.
    pub(crate) fn porter(&self) -> PathBuf {
        self.0.join("porter.json")
    }
    /// What the porter listens on.
    pub(crate) fn ports(&self) -> PathBuf {
        self.0.join("ports.json")
    }
    pub(crate) fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }
    /// Where the shim's own last words go.
    pub(crate) fn complaints(&self) -> PathBuf {
        self.0.join("shim.err")
    }
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// This boot of the machine.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
