//! The best few of many that were found.

use std::cmp::Ordering;

use super::Score;

/// As many as can be sorted by their names in no time; fewer in tests, whose documents are few.
const FEW: usize = if cfg!(test) { 5 } else { 500 };

/// The best `limit`, best first. Those that are equally good are in `order`, in which `by_order` has all
/// that there are: when very many are equally good, the first of those are looked for there, so that the
/// names of a hundred thousand need not be compared.
pub(super) fn take(
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
        let (mut kept, tied): (Vec<_>, Vec<_>) = found
            .into_iter()
            .filter(|(_, score)| *score <= cut)
            .partition(|(_, score)| *score < cut);
        let room = limit - kept.len();
        kept.extend(first(tied, room, by_order));
        found = kept;
    }
    found.sort_unstable_by(|a, b| a.1.cmp(&b.1).then_with(|| order(a.0, b.0)));
    found.truncate(limit);
    found
}

/// All of them if they are few, else those that come first.
fn first(tied: Vec<(u32, Score)>, room: usize, by_order: &[u32]) -> Vec<(u32, Score)> {
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
    ordered.take(room).map(|slot| (*slot, score)).collect()
}
