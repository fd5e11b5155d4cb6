//! One container to run, as the agent asks for it.

use std::collections::BTreeMap;

use model::Quantity;
use serde::{Deserialize, Serialize};

/// The least memory with which a container's first process can start at all.
const LEAST_RAM: i64 = 6 << 20;

/// What happens when a container's program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// Nothing.
    #[default]
    Never,
    /// It is started again if it failed.
    OnFailure,
    /// It is started again.
    Always,
}

/// One container to run: one replica of a deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its name, unique in this installation; `a-z0-9-`, at most 60.
    pub name: String,
    /// The image.
    pub image: String,
    /// What to run instead of the image's own command.
    pub command: Vec<String>,
    /// Environment variables beside the image's own.
    pub env: BTreeMap<String, String>,
    /// The ports that it listens on.
    pub ports: Vec<u16>,
    /// How many CPUs it may use.
    pub cpu: Option<Quantity>,
    /// How many bytes of memory it may use.
    pub ram: Option<Quantity>,
    /// What happens when its program ends.
    pub restart: Restart,
}

impl Container {
    /// Is it something that can be run? The sentence says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        match self.ram_bytes() {
            Some(bytes) if bytes < LEAST_RAM => Err(format!(
                "{} of ram is too little to start a container: ask for at least 6Mi (amounts of \
                 ram are bytes, write 512Mi or 4Gi).",
                bytes_text(bytes)
            )),
            _ => Ok(()),
        }
    }

    /// The memory limit in bytes.
    pub(crate) fn ram_bytes(&self) -> Option<i64> {
        self.ram.filter(|ram| !ram.is_zero()).map(|ram| (ram.milli() / 1000).max(1))
    }

    /// The CPU limit in thousandths of a CPU.
    pub(crate) fn cpu_milli(&self) -> Option<i64> {
        self.cpu.filter(|cpu| !cpu.is_zero()).map(Quantity::milli)
    }
}

/// Names become file, cgroup and host names: nothing else is let through.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 60 || name.starts_with('-') || !name.chars().all(allowed) {
        return Err(format!("{name:?} is not a container's name: a-z, 0-9 and -, at most 60."));
    }
    Ok(())
}

/// An amount of bytes as people say it.
pub(crate) fn bytes_text(bytes: i64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes >= 1 << shift && bytes % (1 << shift) == 0 {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    match bytes {
        1 => "1 byte".to_owned(),
        bytes if bytes >= 10 << 20 => format!("{} MiB", bytes >> 20),
        bytes => format!("{bytes} bytes"),
    }
}
