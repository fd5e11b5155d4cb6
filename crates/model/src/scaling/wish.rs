//! Why a pool would grow: the first of four reasons that holds.

use serde::{Deserialize, Serialize};

use super::{Pool, Seen, Waiting};
use crate::text_enum::text_enum;
use crate::{Quantity, Resources, Time};

/// Why a pool would grow, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// Somebody waits.
    Waiting,
    /// The largest that may be asked for would fit nowhere.
    Largest,
    /// Less is free than shall always be.
    Slack,
    /// There are fewer clusters than there shall always be.
    Least,
}

text_enum!(Wish {
    Waiting => "waiting",
    Largest => "largest",
    Slack => "slack",
    Least => "least",
});

/// A wish with what it is about.
pub(super) struct Wanted {
    pub(super) wish: Wish,
    /// As a part of a sentence: `2 wait for 4 cpu each`.
    pub(super) because: String,
    /// Since when it is known to hold, if that can be told from what is seen.
    pub(super) since: Option<Time>,
}

impl Wanted {
    fn new(wish: Wish, because: String) -> Self {
        Self { wish, because, since: None }
    }
}

/// Why the pool would grow now, whatever keeps it from that.
pub(super) fn wanted(pool: &Pool, seen: &Seen) -> Option<Wanted> {
    waiting(&seen.waiting)
        .or_else(|| largest(pool, seen))
        .or_else(|| slack(&pool.slack, seen))
        .or_else(|| least(pool, seen))
}

/// Why the pool would want a cluster back that it has taken away, or soon would: half a cluster's worth
/// of new demand must not bring it back.
pub(super) fn missed(pool: &Pool, seen: &Seen) -> Option<Wanted> {
    let half = |kind: &str| Quantity::from_milli(pool.template.capacity.get(kind).milli() / 2);
    let wide = pool.slack.iter().filter(|(_, amount)| !amount.is_zero());
    let wide = wide.map(|(kind, amount)| (kind.to_owned(), amount.plus(half(kind)))).collect();
    wanted(pool, seen).or_else(|| slack(&wide, seen))
}

fn waiting(all: &[Waiting]) -> Option<Wanted> {
    let first = all.iter().min_by_key(|one| (one.since, &one.request))?;
    let count: usize = all.iter().map(|one| one.count).sum();
    let because = match count {
        1 => format!("1 waits for {} that no cluster has", first.request),
        _ => format!("{count} wait for room that no cluster has, the first for {}", first.request),
    };
    Some(Wanted { since: Some(first.since), ..Wanted::new(Wish::Waiting, because) })
}

fn largest(pool: &Pool, seen: &Seen) -> Option<Wanted> {
    let ready = || seen.clusters.iter().filter(|cluster| cluster.is_ready());
    let nodes = || ready().flat_map(|cluster| &cluster.nodes);
    let homeless = pool.largest.iter().find(|one| !nodes().any(|node| one.fits(&node.open())))?;
    let because = format!("{homeless}, the largest that may be asked for, would fit nowhere");
    Some(Wanted::new(Wish::Largest, because))
}

fn slack(slack: &Resources, seen: &Seen) -> Option<Wanted> {
    let missing = slack.shortage(&seen.free());
    if missing.is_empty() {
        return None;
    }
    let because = format!("{slack} shall be free, and {missing} of that is missing");
    Some(Wanted::new(Wish::Slack, because))
}

fn least(pool: &Pool, seen: &Seen) -> Option<Wanted> {
    let live = seen.live();
    if live >= pool.at_least as usize {
        return None;
    }
    let because = format!("there are {live} clusters, and at least {} shall be", pool.at_least);
    Some(Wanted::new(Wish::Least, because))
}
