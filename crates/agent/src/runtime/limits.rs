//! Resource limits of a replica, derived from its requests.

use model::{Quantity, Resources};

/// Smaller amounts are not meant as bytes.
const MIN_LIMIT: Quantity = Quantity::whole(1 << 20);

/// CPU limit: its `cpu`; unlimited if that is missing.
pub(crate) fn cpu(resources: &Resources) -> Option<Quantity> {
    Some(resources.get("cpu")).filter(|cpu| !cpu.is_zero())
}

/// Memory limit in bytes: its `ram`; unlimited if that is missing.
///
/// An amount below 1Mi is no limit either. Clusters of some fleet managers count ram in other
/// units, and their users write `ram: 1`: reserved as requested, but no program runs in one byte.
pub(crate) fn ram(resources: &Resources) -> Option<Quantity> {
    Some(resources.get("ram")).filter(|ram| *ram >= MIN_LIMIT)
}

/// Disk limit in bytes: its `disk`; the runtime's default if that is missing or below 1Mi.
pub(crate) fn disk(resources: &Resources) -> Option<Quantity> {
    Some(resources.get("disk")).filter(|disk| *disk >= MIN_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ram_below_1_mi_is_no_limit() {
        for (amount, limit) in [
            ("0", None),
            ("1", None),
            ("1023Ki", None),
            ("1Mi", Some(1 << 20)),
            ("512Mi", Some(512 << 20)),
        ] {
            let mut resources = Resources::default();
            resources.set("ram", amount.parse().unwrap());
            assert_eq!(ram(&resources), limit.map(Quantity::whole), "{amount}");
            assert_eq!(cpu(&resources), None);
        }
    }
}
