//! Free capacity of a node.

use super::World;
use super::unit::{Place, Spot};
use crate::Resources;

impl World {
    /// Free capacity of a node, held or not.
    pub fn free(&self, place: &Place) -> Option<Resources> {
        let entry = self.clusters.get(&place.cluster)?;
        let spot = Spot { pool: entry.pool, slot: *entry.nodes.get(&place.node)? };
        let pool = &self.pools[spot.pool];
        let cells = (0..pool.kinds.len()).map(|k| (k, pool.free(spot.slot, k).max(0)));
        Some(pool.kinds.to_resources(cells))
    }
}
