//! Resource limits of a replica, derived from its requests. Every replica has limits of CPU and memory.

use model::deployment::{MIN_RAM, limits};
use model::{Quantity, Resources};

/// Minimum disk limit.
const MIN_DISK: Quantity = Quantity::whole(1 << 20);

/// Requested CPU limit: its `cpu`.
pub(crate) fn requested_cpu(resources: &Resources) -> Option<Quantity> {
    Some(resources.get("cpu")).filter(|cpu| !cpu.is_zero())
}

/// Requested memory limit in bytes: its `ram`. An amount below 4Mi is none: it counts another unit.
pub(crate) fn requested_ram(resources: &Resources) -> Option<Quantity> {
    Some(resources.get("ram")).filter(|ram| *ram >= MIN_RAM)
}

/// CPU limit: what is requested, or the default.
pub(crate) fn cpu(resources: &Resources) -> Quantity {
    limits(resources).get("cpu")
}

/// Memory limit in bytes: what is requested, or the default.
pub(crate) fn ram(resources: &Resources) -> Quantity {
    limits(resources).get("ram")
}

/// Disk limit in bytes: its `disk`; the runtime's default if that is missing or below 1Mi.
pub(crate) fn disk(resources: &Resources) -> Option<Quantity> {
    Some(resources.get("disk")).filter(|disk| *disk >= MIN_DISK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_replica_has_limits() {
        for (amount, limit) in [
            ("0", 64 << 20),
            ("1", 64 << 20),
            ("4095Ki", 64 << 20),
            ("4Mi", 4 << 20),
            ("512Mi", 512 << 20),
        ] {
            let mut resources = Resources::default();
            resources.set("ram", amount.parse().unwrap());
            assert_eq!(ram(&resources), Quantity::whole(limit), "{amount}");
            assert_eq!(cpu(&resources), Quantity::from_milli(100));
            resources.set("cpu", Quantity::whole(2));
            assert_eq!(cpu(&resources), Quantity::whole(2));
        }
    }
}
