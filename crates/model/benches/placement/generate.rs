//! Generates worlds from seeds.

use std::collections::BTreeMap;

use model::world::{Cluster, Target, Unit, UnitId};
use model::{ClusterId, OrganizationId, Quantity, Resources, Time, Xid};

/// SplitMix64: small, good enough, and deterministic.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// From `low` to `high`, both included.
    pub(crate) fn range(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.next() % (high - low + 1).unsigned_abs()).expect("is below `high`")
    }

    /// Between 0 and 1.
    pub(crate) fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub(crate) fn xid(n: u32) -> Xid {
    Xid::new(n >> 24, [0; 5], n & 0xff_ffff)
}

pub(crate) fn organization() -> OrganizationId {
    OrganizationId(xid(0))
}

/// Thousandths of CPU, GPU and RAM.
pub(crate) fn vector(amounts: [i64; 3]) -> Resources {
    let named = ["cpu", "gpu", "ram"].into_iter().zip(amounts).filter(|(_, amount)| *amount > 0);
    named.map(|(kind, amount)| (kind.to_owned(), Quantity::from_milli(amount))).collect()
}

pub(crate) fn cluster(n: u32, amounts: [i64; 3]) -> Cluster {
    Cluster::single(ClusterId(xid(n)), None, vector(amounts), Resources::default())
}

pub(crate) fn unit(n: u32, priority: i64, amounts: [i64; 3]) -> Unit {
    Unit {
        id: UnitId { owner: xid(n), replica: 0 },
        organization: organization(),
        priority,
        since: Time(n.into()),
        request: vector(amounts),
        target: Target::Any,
        selector: BTreeMap::new(),
        is_spread: false,
        is_container: false,
        run_for: None,
        ends_at: None,
    }
}
