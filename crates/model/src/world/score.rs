//! Scores candidate nodes.

use super::pool::Pool;

/// The score of a candidate node. Fields are compared top to bottom and the lowest wins, so the
/// order of the fields *is* the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    /// How unevenly the kinds would be used, in thousandths: avoids stranded capacity.
    stranded_permille: i64,
    /// How much would stay free, in thousandths: fills partly used nodes first.
    left_permille: i64,
    /// Position in the pool's order (scarce kinds last), which makes runs deterministic.
    position: usize,
}

impl Score {
    /// Scores a node for `demand`.
    pub(super) fn new(pool: &Pool, slot: usize, demand: &[(usize, i64)], position: usize) -> Self {
        let (mut most, mut least, mut sum, mut kinds) = (0, 1000, 0, 0);
        for (k, &has) in pool.capacity(slot).iter().enumerate().filter(|(_, has)| **has > 0) {
            let requested = demand.iter().find(|(column, _)| *column == k).map_or(0, |(_, a)| *a);
            let left = permille(pool.free(slot, k) - requested, has);
            (most, least) = (left.max(most), left.min(least));
            (sum, kinds) = (sum + left, kinds + 1);
        }
        let stranded_permille = (most - least).max(0);
        Self { stranded_permille, left_permille: sum / kinds.max(1), position }
    }
}

fn permille(part: i64, whole: i64) -> i64 {
    match part.checked_mul(1000) {
        Some(thousandfold) => thousandfold / whole,
        None => part / (whole / 1000).max(1),
    }
}
