//! Scheduling decisions as plain data.

use std::fmt;

use serde::Serialize;

use super::unit::{Place, UnitId};

/// The outcome of a scheduling round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Decisions {
    /// Units to start, in this order.
    pub starts: Vec<Start>,
    /// Units to preempt.
    pub preemptions: Vec<Preemption>,
    /// New reservations.
    pub reservations: Vec<Reservation>,
    /// Pending units whose reason changed.
    pub pending: Vec<PendingUnit>,
    /// False if the step limit was reached: decide again.
    pub is_complete: bool,
    /// Number of steps taken.
    pub steps: usize,
}

impl Decisions {
    /// Is there nothing to execute?
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty() && self.preemptions.is_empty() && self.reservations.is_empty()
    }
}

/// A unit that starts on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Start {
    /// The unit.
    pub unit: UnitId,
    /// The node.
    pub place: Place,
    /// Set if a pending unit of better rank could use the node when empty.
    pub backfill: Option<Backfill>,
}

/// Why a unit starts before a pending one of better rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Backfill {
    /// The best-ranked unit that was overtaken.
    pub ahead: UnitId,
    /// Why that unit did not get the node.
    pub why: BackfillReason,
}

/// Why a unit did not get a node that a lower-ranked one got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BackfillReason {
    /// Its request exceeds the free capacity.
    DoesNotFit,
    /// Capacity is being freed for it, on this node or another.
    Promised,
}

/// A unit that is preempted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preemption {
    /// The preemption victim.
    pub victim: UnitId,
    /// The unit it is preempted by.
    pub by: UnitId,
    /// The node.
    pub place: Place,
}

/// Capacity reserved for a pending unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reservation {
    /// The unit.
    pub unit: UnitId,
    /// The node.
    pub place: Place,
    /// Is the capacity complete once the stopping units have stopped?
    pub is_promised: bool,
}

/// A pending unit and why it is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PendingUnit {
    /// The unit.
    pub unit: UnitId,
    /// The reason.
    pub reason: PendingReason,
}

/// Why a unit is pending. Carries no numbers, which change constantly: see
/// [`super::World::explain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PendingReason {
    /// No usable node is large enough, even when empty.
    Never,
    /// Free capacity is insufficient and preemption does not help.
    Short,
    /// Units with the same request are ahead in the queue.
    Behind,
    /// The preemption budget of its organization is used up.
    Budget,
    /// Only organizations within their fair share could be preempted.
    FairShare,
    /// Preemption victims are stopping.
    Yielding,
}

impl fmt::Display for PendingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PendingReason::Never => "no usable node is large enough, even when empty",
            PendingReason::Short => "waiting for capacity",
            PendingReason::Behind => "waiting behind units with the same request",
            PendingReason::Budget => "preemption budget of the organization is used up",
            PendingReason::FairShare => {
                "waiting for capacity; organizations within their fair share are not preempted"
            }
            PendingReason::Yielding => "waiting for preemption victims to stop",
        })
    }
}
