//! What is free on a node now, for who wants to speak of it.

use super::World;
use super::unit::{Place, Spot};
use crate::Resources;

impl World {
    /// What is free on a node now, kept for somebody or not.
    pub fn free(&self, place: &Place) -> Option<Resources> {
        let site = self.sites.get(&place.cluster)?;
        let spot = Spot { pool: site.pool, slot: *site.nodes.get(&place.node)? };
        let pool = &self.pools[spot.pool];
        let cells = (0..pool.kinds.len()).map(|k| (k, pool.free(spot.slot, k).max(0)));
        Some(pool.kinds.name(cells))
    }
}
