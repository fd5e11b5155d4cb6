//! Specification of a container.

use std::collections::BTreeMap;

use model::Quantity;
use model::deployment::Restart;
use serde::{Deserialize, Serialize};

use crate::{Credentials, Error};

/// Minimum memory limit.
const MIN_RAM: i64 = 4 << 20;
/// Minimum size of a writable layer.
const MIN_DISK: i64 = 4 << 20;

/// Specification of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Name, unique in this installation; `a-z0-9-`, at most 60.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// Owner, such as an organization: of the image, if that is a local one (see
    /// [`is_local`](crate::is_local)), and of the slots for image pulls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Command instead of the image's entrypoint and command.
    pub command: Vec<String>,
    /// Environment variables in addition to the image's.
    pub env: BTreeMap<String, String>,
    /// Ports that the program listens on.
    pub ports: Vec<u16>,
    /// CPU limit.
    pub cpu: Option<Quantity>,
    /// Memory limit in bytes.
    pub ram: Option<Quantity>,
    /// Disk limit in bytes: the size of the writable layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Quantity>,
    /// Restart policy.
    pub restart: Restart,
    /// The owner's credentials of the image's registry. They are never stored.
    #[serde(skip)]
    pub pull: Option<Credentials>,
}

impl Container {
    /// Validates the specification.
    pub fn check(&self) -> Result<(), Error> {
        check_name(&self.name)?;
        check_ram(self.ram_bytes())?;
        match self.disk_bytes() {
            Some(bytes) if bytes < MIN_DISK => Err(Error::TooLittleDisk { bytes }),
            _ => Ok(()),
        }
    }

    /// Whether a container with this specification can be adopted, whatever its image was pulled
    /// with. Older versions did not store the owner of containers with images of a registry.
    pub(crate) fn is_same(&self, wanted: &Container) -> bool {
        let owner = self
            .owner
            .clone()
            .or_else(|| wanted.owner.clone().filter(|_| !crate::is_local(&wanted.image)));
        Container { owner, pull: wanted.pull.clone(), ..self.clone() } == *wanted
    }

    /// The memory limit in bytes.
    pub(crate) fn ram_bytes(&self) -> Option<i64> {
        self.ram.filter(|ram| !ram.is_zero()).map(|ram| (ram.milli() / 1000).max(1))
    }

    /// The disk limit in bytes.
    pub(crate) fn disk_bytes(&self) -> Option<i64> {
        self.disk.filter(|disk| !disk.is_zero()).map(|disk| (disk.milli() / 1000).max(1))
    }

    /// The CPU limit in millicores.
    pub(crate) fn cpu_milli(&self) -> Option<i64> {
        self.cpu.filter(|cpu| !cpu.is_zero()).map(Quantity::milli)
    }
}

/// Validates a memory limit in bytes.
pub fn check_ram(bytes: Option<i64>) -> Result<(), Error> {
    match bytes {
        Some(bytes) if bytes < MIN_RAM => Err(Error::TooLittleRam { bytes }),
        _ => Ok(()),
    }
}

/// Validates a name. Names become file, cgroup and host names.
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
    fn ram_below_4_mib_is_rejected() {
        let error = check_ram(Some(3 << 20)).unwrap_err();
        assert!(
            error.to_string().starts_with("Memory limit of 3 MiB is below the minimum"),
            "{error}"
        );
        assert_eq!((check_ram(Some(4 << 20)), check_ram(None)), (Ok(()), Ok(())));
    }
}
