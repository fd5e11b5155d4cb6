//! Which of the nodes that fit is best.

use super::pool::Pool;

/// Why a node is good, best first. Fields are compared top to bottom and the lowest wins, so the
/// order of the fields *is* the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    /// How unevenly the kinds of the node would be used up, in thousandths: leave no odd corners.
    stranded_permille: i64,
    /// How much would stay free, in thousandths: fill what is begun.
    left_permille: i64,
    /// The order of the pool: what is scarce last. Also what makes two runs agree.
    position: usize,
}

impl Score {
    /// The score of a node if `want` were placed there.
    pub(super) fn of(pool: &Pool, slot: usize, want: &[(usize, i64)], position: usize) -> Self {
        let (mut most, mut least, mut sum, mut kinds) = (0, 1000, 0, 0);
        for (k, &has) in pool.capacity(slot).iter().enumerate().filter(|(_, has)| **has > 0) {
            let asked = want.iter().find(|(column, _)| *column == k).map_or(0, |(_, a)| *a);
            let left = permille(pool.free(slot, k) - asked, has);
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
