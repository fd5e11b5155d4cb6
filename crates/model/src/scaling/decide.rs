//! Decides whether a pool adds or removes a cluster, and why.

use std::time::Duration;

use serde::Serialize;

use super::need::{Need, need, need_with_margin};
use super::{Observed, ObservedCluster, Pool, ScaleUpCause};
use crate::cluster::Status;
use crate::{ClusterId, Time};

/// Number of failed clusters after which an administrator has to intervene.
pub const MAX_FAILURES: usize = 3;
/// Delay after the first failed cluster.
const FIRST_BACKOFF: Duration = Duration::from_mins(1);
/// Maximum delay.
const LONGEST_BACKOFF: Duration = Duration::from_hours(1);

/// The action of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Add a cluster.
    Grow,
    /// Remove this empty cluster.
    Shrink(ClusterId),
    /// No change.
    Stay,
}

/// A scaling decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The action.
    pub action: Action,
    /// The message.
    pub reason: String,
    /// Why the pool needs to grow, even if it is blocked.
    pub wish: Option<ScaleUpCause>,
    /// When the passage of time alone may change the decision.
    pub reconsider_at: Option<Time>,
}

impl Decision {
    fn stay(reason: impl Into<String>) -> Self {
        Self { action: Action::Stay, reason: reason.into(), wish: None, reconsider_at: None }
    }

    fn until(self, at: Time) -> Self {
        Self { reconsider_at: Some(at), ..self }
    }

    /// Name of the action: `grow`, `shrink`, `stay`.
    pub fn name(&self) -> &'static str {
        match self.action {
            Action::Grow => "grow",
            Action::Shrink(_) => "shrink",
            Action::Stay => "stay",
        }
    }
}

/// Decides the next action of a pool, independently of the order of clusters.
pub fn decide(pool: &Pool, seen: &Observed, now: Time) -> Decision {
    match need(pool, seen) {
        Some(need) => {
            let decision = grow(pool, seen, &need, now);
            Decision { wish: Some(need.wish), ..decision }
        }
        None => shrink(pool, seen, now),
    }
}

/// Grows the pool, unless it is blocked.
fn grow(pool: &Pool, seen: &Observed, need: &Need, now: Time) -> Decision {
    let cause = &need.cause;
    let consumed = seen.consumed();
    if let Some((kind, most)) = pool.limit.iter().find(|(kind, most)| consumed.get(kind) >= *most) {
        return Decision::stay(format!(
            "Scale-up blocked by the limit of {} {kind} ({} used): {cause}.",
            most.to_short_string(),
            consumed.get(kind).to_short_string()
        ));
    }
    if let Some(cluster) = arriving(seen) {
        return Decision::stay(format!("{} before adding another: {cause}.", waiting_for(cluster)));
    }
    if seen.existing() >= pool.at_most as usize {
        return Decision::stay(format!(
            "Scale-up blocked by `at_most`: {} of {} clusters exist; {cause}.",
            seen.existing(),
            pool.at_most
        ));
    }
    if let Some(stay) = failed(seen, cause, now) {
        return stay;
    }
    if let Some(end) = cools_until(seen.memory.shrunk_at, pool, now) {
        return Decision::stay(format!(
            "Scaling up at {} (cool-down after a scale-down): {cause}.",
            to_second(end)
        ))
        .until(end);
    }
    let begins = match need.wish {
        ScaleUpCause::Waiting => need.since.unwrap_or(now) + pool.pace.grow_after_waiting,
        wish if seen.memory.wish == Some(wish) => {
            seen.memory.wish_since.unwrap_or(now) + pool.pace.grow_after
        }
        _ => now + pool.pace.grow_after,
    };
    if now < begins {
        let reason = format!("Scaling up at {} unless resolved: {cause}.", to_second(begins));
        return Decision::stay(reason).until(begins);
    }
    let reason = format!("Scaling up: {cause}.");
    Decision { action: Action::Grow, ..Decision::stay(reason) }
}

fn arriving(seen: &Observed) -> Option<&ObservedCluster> {
    seen.clusters.iter().filter(|cluster| cluster.is_arriving()).min_by_key(|cluster| cluster.id)
}

fn waiting_for(cluster: &ObservedCluster) -> String {
    format!("Waiting for cluster {} ({})", cluster.name, cluster.status)
}

/// Delay before the next attempt after so many failures.
pub fn backoff(failures: usize) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    FIRST_BACKOFF.saturating_mul(1 << doublings).min(LONGEST_BACKOFF)
}

/// Delays the next cluster after failures, and stops after too many.
fn failed(seen: &Observed, cause: &str, now: Time) -> Option<Decision> {
    let failed = || seen.clusters.iter().filter(|cluster| cluster.status == Status::Failed);
    let last = failed().max_by_key(|cluster| (cluster.since, cluster.id))?;
    let (count, name) = (failed().count(), &last.name);
    if count >= MAX_FAILURES {
        return Some(Decision::stay(format!(
            "Scale-up stopped after {count} failed clusters, the last is {name}: {cause}. Fix the cause of \
             the failures and delete these clusters."
        )));
    }
    let again = last.since + backoff(count);
    let at = to_second(again);
    let reason = format!("Scaling up at {at} (backoff after {name} failed): {cause}.");
    (now < again).then(|| Decision::stay(reason).until(again))
}

/// A time truncated to the second.
fn to_second(at: Time) -> Time {
    Time(at.0 - at.0.rem_euclid(1_000_000))
}

/// The end of the cool-down, if it is in the future.
fn cools_until(changed_at: Option<Time>, pool: &Pool, now: Time) -> Option<Time> {
    changed_at.map(|at| at + pool.pace.cool_down).filter(|end| now < *end)
}

/// Removes an empty cluster that is not needed.
fn shrink(pool: &Pool, seen: &Observed, now: Time) -> Decision {
    if let Some(cluster) = arriving(seen) {
        return Decision::stay(format!("{}.", waiting_for(cluster)));
    }
    if seen.clusters.is_empty() {
        return Decision::stay("No pending workload needs a cluster.");
    }
    let Some((cluster, empty_since)) = idlest(seen) else {
        return Decision::stay("Capacity is sufficient, and no cluster is empty.");
    };
    let name = &cluster.name;
    if seen.live() <= pool.at_least as usize {
        let at_least = pool.at_least;
        return Decision::stay(format!("Cluster {name} is empty, but `at_least` is {at_least}."));
    }
    if let Some(need) = need_with_margin(pool, &seen.without(cluster.id)) {
        let reason = format!("Cluster {name} is empty, but needed: without it {}.", need.cause);
        return Decision::stay(reason);
    }
    let idle = empty_since + pool.pace.idle_for;
    let cool = cools_until(seen.memory.grown_at, pool, now).unwrap_or(now);
    let end = idle.max(cool);
    let since = to_second(empty_since);
    if now < end {
        let at = to_second(end);
        let reason = format!("Cluster {name} is empty since {since}. Scaling down at {at}.");
        return Decision::stay(reason).until(end);
    }
    let reason = format!("Scaling down: cluster {name} is empty since {since}.");
    Decision { action: Action::Shrink(cluster.id), ..Decision::stay(reason) }
}

/// The ready cluster that has been empty for longest.
fn idlest(seen: &Observed) -> Option<(&ObservedCluster, Time)> {
    let ready = seen.clusters.iter().filter(|cluster| cluster.is_ready());
    let empty = ready.filter_map(|cluster| Some((cluster, cluster.empty_since?)));
    empty.min_by_key(|(cluster, since)| (*since, cluster.id))
}
