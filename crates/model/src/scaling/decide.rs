//! What a pool does next, and why.

use std::time::Duration;

use serde::Serialize;

use super::wish::{Wanted, missed, wanted};
use super::{Pool, Seen, SeenCluster, Wish};
use crate::cluster::Status;
use crate::{ClusterId, Time};

/// So many clusters may have failed before no more is tried: somebody has to look.
pub const MOST_FAILURES: usize = 3;
/// How long to wait after a first cluster has failed.
const FIRST_BACKOFF: Duration = Duration::from_mins(1);
/// How long to wait at most.
const LONGEST_BACKOFF: Duration = Duration::from_hours(1);

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Make one more cluster.
    Grow,
    /// Remove this one, which is empty.
    Shrink(ClusterId),
    /// Nothing.
    Stay,
}

/// What to do, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// What.
    pub action: Action,
    /// Why, as a sentence.
    pub reason: String,
    /// Why the pool would like to grow, whether it does or not.
    pub wish: Option<Wish>,
    /// When time alone may change the decision.
    pub look_again: Option<Time>,
}

impl Decision {
    fn stay(reason: impl Into<String>) -> Self {
        Self { action: Action::Stay, reason: reason.into(), wish: None, look_again: None }
    }

    fn until(self, at: Time) -> Self {
        Self { look_again: Some(at), ..self }
    }

    /// What it is called: `grow`, `shrink`, `stay`.
    pub fn name(&self) -> &'static str {
        match self.action {
            Action::Grow => "grow",
            Action::Shrink(_) => "shrink",
            Action::Stay => "stay",
        }
    }
}

/// What the pool does next. The same for the same arguments, in whatever order clusters are named.
pub fn decide(pool: &Pool, seen: &Seen, now: Time) -> Decision {
    match wanted(pool, seen) {
        Some(wanted) => {
            let decision = grow(pool, seen, &wanted, now);
            Decision { wish: Some(wanted.wish), ..decision }
        }
        None => shrink(pool, seen, now),
    }
}

/// Something is wanted: is anything in the way?
fn grow(pool: &Pool, seen: &Seen, wanted: &Wanted, now: Time) -> Decision {
    let because = &wanted.because;
    let consumed = seen.consumed();
    if let Some((kind, most)) = pool.limit.iter().find(|(kind, most)| consumed.get(kind) >= *most) {
        return Decision::stay(format!(
            "Would grow, because {because}; but {} {kind} are consumed, and the limit is {}.",
            consumed.get(kind).brief(),
            most.brief()
        ));
    }
    if let Some(coming) = arriving(seen) {
        return Decision::stay(format!("{}: {because}.", on_its_way(coming)));
    }
    if seen.there() >= pool.at_most as usize {
        return Decision::stay(format!(
            "Would grow, because {because}; but there are {} clusters, and at most {} may be.",
            seen.there(),
            pool.at_most
        ));
    }
    if let Some(stay) = failed(seen, because, now) {
        return stay;
    }
    if let Some(end) = cools_until(seen.memory.shrunk_at, pool, now) {
        return Decision::stay(format!(
            "Will grow at {}, because {because}; a cluster was removed a short while ago.",
            shown(end)
        ))
        .until(end);
    }
    let begins = match wanted.wish {
        Wish::Waiting => wanted.since.unwrap_or(now) + pool.pace.grow_after_waiting,
        wish if seen.memory.wish == Some(wish) => {
            seen.memory.wish_since.unwrap_or(now) + pool.pace.grow_after
        }
        _ => now + pool.pace.grow_after,
    };
    if now < begins {
        let reason = format!("Will grow at {} if it is still so: {because}.", shown(begins));
        return Decision::stay(reason).until(begins);
    }
    let reason = format!("One more cluster, because {because}.");
    Decision { action: Action::Grow, ..Decision::stay(reason) }
}

fn arriving(seen: &Seen) -> Option<&SeenCluster> {
    seen.clusters.iter().filter(|cluster| cluster.is_arriving()).min_by_key(|cluster| cluster.id)
}

fn on_its_way(cluster: &SeenCluster) -> String {
    format!("{} is on its way ({}), and one comes at a time", cluster.name, cluster.status)
}

/// How long to wait before the next try after so many have failed.
pub fn backoff(failures: usize) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    FIRST_BACKOFF.saturating_mul(1 << doublings).min(LONGEST_BACKOFF)
}

/// Clusters that failed slow the next one down, and in the end stop it.
fn failed(seen: &Seen, because: &str, now: Time) -> Option<Decision> {
    let failed = || seen.clusters.iter().filter(|cluster| cluster.status == Status::Failed);
    let last = failed().max_by_key(|cluster| (cluster.since, cluster.id))?;
    let (count, name) = (failed().count(), &last.name);
    if count >= MOST_FAILURES {
        return Some(Decision::stay(format!(
            "Would grow, because {because}; but {count} clusters have failed, the last one is {name}: \
             fix the cause and delete them."
        )));
    }
    let again = last.since + backoff(count);
    let at = shown(again);
    let reason = format!("Will grow at {at}, because {because}; {name} has failed before.");
    (now < again).then(|| Decision::stay(reason).until(again))
}

/// A time as sentences tell it: to the second.
fn shown(at: Time) -> Time {
    Time(at.0 - at.0.rem_euclid(1_000_000))
}

/// When the other direction is allowed again, if that is later.
fn cools_until(changed_at: Option<Time>, pool: &Pool, now: Time) -> Option<Time> {
    changed_at.map(|at| at + pool.pace.cool_down).filter(|end| now < *end)
}

/// Nothing is wanted: is there one too many?
fn shrink(pool: &Pool, seen: &Seen, now: Time) -> Decision {
    if let Some(coming) = arriving(seen) {
        return Decision::stay(format!("{}.", on_its_way(coming)));
    }
    if seen.clusters.is_empty() {
        return Decision::stay("Nothing waits that it would make a cluster for.");
    }
    let Some((cluster, empty_since)) = idlest(seen) else {
        return Decision::stay("There is room enough, and no cluster is empty.");
    };
    let name = &cluster.name;
    if seen.live() <= pool.at_least as usize {
        let at_least = pool.at_least;
        return Decision::stay(format!("{name} is empty; but at least {at_least} shall be there."));
    }
    if let Some(missed) = missed(pool, &seen.without(cluster.id)) {
        let reason = format!("{name} is empty and stays; without it {}.", missed.because);
        return Decision::stay(reason);
    }
    let idle = empty_since + pool.pace.idle_for;
    let cool = cools_until(seen.memory.grown_at, pool, now).unwrap_or(now);
    let end = idle.max(cool);
    let since = shown(empty_since);
    if now < end {
        let at = shown(end);
        let reason = format!("{name} is empty since {since}, and goes at {at} if it stays so.");
        return Decision::stay(reason).until(end);
    }
    let reason = format!("{name} goes: it is empty since {since}, and nothing needs its room.");
    Decision { action: Action::Shrink(cluster.id), ..Decision::stay(reason) }
}

/// The ready cluster that has been empty for longest.
fn idlest(seen: &Seen) -> Option<(&SeenCluster, Time)> {
    let ready = seen.clusters.iter().filter(|cluster| cluster.is_ready());
    let empty = ready.filter_map(|cluster| Some((cluster, cluster.empty_since?)));
    empty.min_by_key(|(cluster, since)| (*since, cluster.id))
}
