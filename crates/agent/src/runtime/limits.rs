//! What a replica may use, out of what it asks for.

use model::{Quantity, Resources};

/// Who asks for less than this does not mean bytes.
const LEAST_MEANT: Quantity = Quantity::whole(1 << 20);

/// How many CPUs it may use: its `cpu`, without limit when it names none.
pub(crate) fn cpu(resources: &Resources) -> Option<Quantity> {
    Some(resources.get("cpu")).filter(|cpu| !cpu.is_zero())
}

/// How many bytes of memory it may use: its `ram`, without limit when it names none.
///
/// An amount below 1Mi is no limit either. Clusters of some fleet managers count ram in units of
/// their own, and their users write `ram: 1`: it is taken from the capacity as it was asked for, but
/// no program runs in one byte.
pub(crate) fn ram(resources: &Resources) -> Option<Quantity> {
    Some(resources.get("ram")).filter(|ram| *ram >= LEAST_MEANT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_that_are_limits_and_that_are_not() {
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
