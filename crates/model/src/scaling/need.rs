//! Why a pool needs to grow: the first of four causes that applies.

use serde::{Deserialize, Serialize};

use super::{Observed, PendingWorkloads, Pool};
use crate::text_enum::text_enum;
use crate::{Quantity, Resources, Time};

/// Why a pool needs to grow, most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleUpCause {
    /// Workloads are pending.
    Waiting,
    /// The largest request fits on no node.
    Largest,
    /// Free capacity is below the slack.
    Slack,
    /// There are fewer clusters than `at_least`.
    Least,
}

text_enum!(ScaleUpCause {
    Waiting => "waiting",
    Largest => "largest",
    Slack => "slack",
    Least => "least",
});

/// A cause with its details.
pub(super) struct Need {
    pub(super) wish: ScaleUpCause,
    /// The cause as a clause: `2 cpu below the slack of 4 cpu`.
    pub(super) cause: String,
    /// Since when the cause applies, if the observed state tells.
    pub(super) since: Option<Time>,
}

impl Need {
    fn new(wish: ScaleUpCause, cause: String) -> Self {
        Self { wish, cause, since: None }
    }
}

/// Why the pool needs to grow now, even if it is blocked.
pub(super) fn need(pool: &Pool, seen: &Observed) -> Option<Need> {
    waiting(&seen.waiting)
        .or_else(|| largest(pool, seen))
        .or_else(|| slack(&pool.slack, seen))
        .or_else(|| least(pool, seen))
}

/// Why the pool needs to grow, now or after new demand of half a cluster: removing a cluster must
/// not lead to adding it again soon.
pub(super) fn need_with_margin(pool: &Pool, seen: &Observed) -> Option<Need> {
    let half = |kind: &str| Quantity::from_milli(pool.template.capacity.get(kind).milli() / 2);
    let wide = pool.slack.iter().filter(|(_, amount)| !amount.is_zero());
    let wide = wide.map(|(kind, amount)| (kind.to_owned(), amount.plus(half(kind)))).collect();
    need(pool, seen).or_else(|| slack(&wide, seen))
}

fn waiting(all: &[PendingWorkloads]) -> Option<Need> {
    let first = all.iter().min_by_key(|one| (one.since, &one.request))?;
    let count: usize = all.iter().map(|one| one.count).sum();
    let cause = match count {
        1 => format!("1 pending workload needs {}", first.request),
        _ => format!("{count} pending workloads need capacity, the first {}", first.request),
    };
    Some(Need { since: Some(first.since), ..Need::new(ScaleUpCause::Waiting, cause) })
}

fn largest(pool: &Pool, seen: &Observed) -> Option<Need> {
    let ready = || seen.clusters.iter().filter(|cluster| cluster.is_ready());
    let nodes = || ready().flat_map(|cluster| &cluster.nodes);
    let too_large = pool.largest.iter().find(|one| !nodes().any(|node| one.fits(&node.open())))?;
    let cause = format!("{too_large}, the largest request, fits on no node");
    Some(Need::new(ScaleUpCause::Largest, cause))
}

fn slack(slack: &Resources, seen: &Observed) -> Option<Need> {
    let missing = slack.shortage(&seen.free());
    if missing.is_empty() {
        return None;
    }
    let cause = format!("free capacity is {missing} below the slack of {slack}");
    Some(Need::new(ScaleUpCause::Slack, cause))
}

fn least(pool: &Pool, seen: &Observed) -> Option<Need> {
    let live = seen.live();
    if live >= pool.at_least as usize {
        return None;
    }
    let cause = format!("{live} of at least {} clusters exist", pool.at_least);
    Some(Need::new(ScaleUpCause::Least, cause))
}
