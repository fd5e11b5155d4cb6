//! One container to run, as the agent asks for it.

use std::collections::BTreeMap;

use model::Quantity;
use model::deployment::Restart;
use serde::{Deserialize, Serialize};

use crate::runtime::limits;

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
        limits::check_ram(self.ram_bytes())
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
