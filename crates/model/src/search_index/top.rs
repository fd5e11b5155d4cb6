//! Selects the best results.

use std::cmp::Ordering;

use super::Score;

/// The number of results that can be sorted by name cheaply; smaller in tests with few documents.
const FEW: usize = if cfg!(test) { 5 } else { 500 };

/// The best `limit` results, best first; ties are in `order`. `by_order` has all slots in that
/// order: with very many ties the first are taken from there, instead of comparing a hundred
/// thousand names.
pub(super) fn best(
    mut found: Vec<(u32, Score)>,
    limit: usize,
    by_order: &[u32],
    order: impl Fn(u32, u32) -> Ordering,
) -> Vec<(u32, Score)> {
    if limit == 0 || found.is_empty() {
        return Vec::new();
    }
    if found.len() > FEW.max(limit) {
        let (_, (_, cut), _) = found.select_nth_unstable_by_key(limit - 1, |(_, score)| *score);
        let cut = *cut;
        let (mut selected, tied): (Vec<_>, Vec<_>) = found
            .into_iter()
            .filter(|(_, score)| *score <= cut)
            .partition(|(_, score)| *score < cut);
        let missing = limit - selected.len();
        selected.extend(first_ties(tied, missing, by_order));
        found = selected;
    }
    found.sort_unstable_by(|a, b| a.1.cmp(&b.1).then_with(|| order(a.0, b.0)));
    found.truncate(limit);
    found
}

/// All ties if they are few, else the first `count`.
fn first_ties(tied: Vec<(u32, Score)>, count: usize, by_order: &[u32]) -> Vec<(u32, Score)> {
    if tied.len() <= FEW {
        return tied;
    }
    let score = tied[0].1;
    let slots = tied.iter().map(|(slot, _)| *slot as usize + 1).max().unwrap_or(0);
    let mut is_tied = vec![false; slots];
    for (slot, _) in &tied {
        is_tied[*slot as usize] = true;
    }
    let ordered = by_order.iter().filter(|slot| is_tied.get(**slot as usize) == Some(&true));
    ordered.take(count).map(|slot| (*slot, score)).collect()
}
