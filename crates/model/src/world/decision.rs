//! What was decided, as plain data.

use std::fmt;

use serde::Serialize;

use super::unit::{Place, UnitId};

/// What to do now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Decisions {
    /// These get their capacity, in this order.
    pub starts: Vec<Start>,
    /// These yield.
    pub preemptions: Vec<Preemption>,
    /// Room is kept for these from now on.
    pub reservations: Vec<Reservation>,
    /// For these the reason to wait is new.
    pub waits: Vec<Waiting>,
    /// Is there nothing left to decide? Otherwise the bound was reached: decide again.
    pub is_complete: bool,
    /// How many steps it took.
    pub steps: usize,
}

impl Decisions {
    /// Is there nothing to carry out?
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty() && self.preemptions.is_empty() && self.reservations.is_empty()
    }
}

/// A unit that gets its capacity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Start {
    /// Who.
    pub unit: UnitId,
    /// Where.
    pub place: Place,
    /// Whom it overtook, if anybody ranks before it and waits who could use that node.
    pub backfill: Option<Backfill>,
}

/// Why somebody may start before one that ranks higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Backfill {
    /// The first of those who were overtaken.
    pub ahead: UnitId,
    /// Why it did not get the node.
    pub why: Why,
}

/// Why somebody did not get a node that somebody behind it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It asks for more than there was room for.
    DoesNotFit,
    /// Room is being made for it elsewhere, or here in addition.
    Promised,
}

/// A unit that yields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preemption {
    /// Who yields.
    pub victim: UnitId,
    /// To whom.
    pub by: UnitId,
    /// Where.
    pub place: Place,
}

/// Room that is kept for a unit that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reservation {
    /// For whom.
    pub unit: UnitId,
    /// Where.
    pub place: Place,
    /// Will all of it be there as soon as those who are stopping have stopped?
    pub is_promised: bool,
}

/// A unit that waits, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Who.
    pub unit: UnitId,
    /// Why.
    pub wait: Wait,
}

/// Why a unit waits, without numbers: those change with every breath, see [`super::World::explain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// No node that it may use is large enough, even when empty.
    Never,
    /// There is too little room now, and nobody lower whose place would do.
    Short,
    /// Others who ask for the same are before it.
    Behind,
    /// Its organization has displaced as many as it may in an hour.
    Budget,
    /// Others are stopping to make room for it.
    Yielding,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wait::Never => "no node that it may use is large enough, even when empty",
            Wait::Short => "waits for room",
            Wait::Behind => "waits behind others who ask for the same",
            Wait::Budget => "could displace lower priorities, but its organization has done so as often as it may in an hour",
            Wait::Yielding => "waits for lower priorities to stop",
        })
    }
}
