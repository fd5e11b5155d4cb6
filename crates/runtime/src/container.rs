//! One container to run.

use std::collections::BTreeMap;

use model::Quantity;
use model::deployment::Restart;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The least memory with which a container's first process can start at all.
const LEAST_RAM: i64 = 6 << 20;

/// One container to run.
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
    /// Is it something that can be run? The error says what is wrong.
    pub fn check(&self) -> Result<(), Error> {
        check_name(&self.name)?;
        check_ram(self.ram_bytes())
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

/// Whether a container starts with a memory limit of so many bytes.
pub fn check_ram(bytes: Option<i64>) -> Result<(), Error> {
    match bytes {
        Some(bytes) if bytes < LEAST_RAM => Err(Error::TooLittleRam { bytes }),
        _ => Ok(()),
    }
}

/// Names become file, cgroup and host names: nothing else is let through.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 60 || name.starts_with('-') || !name.chars().all(allowed) {
        return Err(Error::InvalidName(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ram_below_six_mebibytes_is_refused() {
        let error = check_ram(Some(5 << 20)).unwrap_err();
        assert!(error.to_string().starts_with("5 MiB of ram is too little"), "{error}");
        assert_eq!((check_ram(Some(6 << 20)), check_ram(None)), (Ok(()), Ok(())));
    }
}
