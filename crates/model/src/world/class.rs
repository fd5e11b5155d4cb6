//! Classes: units with the same request and constraints wait in one line.
//!
//! When the first in a line can't be served, nobody behind it can: they ask for the same, rank
//! lower, and see less room. That is what lets one look at the head stand for a million units.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::unit::{Rank, Target, Unit};
use super::vector::Want;
use crate::{OrganizationId, Resources, Time, Xid};

/// What the units of a class have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) organization: OrganizationId,
    pub(super) request: Resources,
    pub(super) target: Target,
    pub(super) selector: BTreeMap<String, String>,
    /// The owner, if its replicas must be apart.
    pub(super) apart: Option<Xid>,
}

impl Key {
    pub(super) fn of(unit: &Unit) -> Self {
        Self {
            organization: unit.organization,
            request: unit.request.clone(),
            target: unit.target,
            selector: unit.selector.clone(),
            apart: unit.is_spread.then_some(unit.id.owner),
        }
    }
}

/// A class's place in the queue of a pool.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    pub(super) pool: usize,
    /// Which, while anybody waits.
    pub(super) number: Option<usize>,
    /// What it asks for there; nothing when it asks for kinds that the pool does not know.
    pub(super) want: Option<Want>,
}

/// A class.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub(super) key: Arc<Key>,
    /// Who waits, without those whose room is being made.
    pub(super) line: BTreeMap<Rank, usize>,
    /// The pools that it may use, best first.
    pub(super) seats: Vec<Seat>,
    /// How its request reads in the pools that its units are on.
    pub(super) reads: Vec<(usize, Want)>,
    /// How many units are of this class.
    pub(super) units: usize,
    /// The head that all indexes know of.
    pub(super) shown: Option<Rank>,
    /// When the head has waited long enough for room to be kept for it.
    pub(super) due: Option<Time>,
    /// Would it preempt if its organization still might?
    pub(super) is_over_budget: bool,
    /// Does it fit no node even when empty? As of a version of the world's structure.
    pub(super) never: Option<(u64, bool)>,
}

impl Class {
    pub(super) fn new(key: Arc<Key>) -> Self {
        Self {
            key,
            line: BTreeMap::new(),
            seats: Vec::new(),
            reads: Vec::new(),
            units: 0,
            shown: None,
            due: None,
            is_over_budget: false,
            never: None,
        }
    }

    pub(super) fn head(&self) -> Option<(Rank, usize)> {
        self.line.first_key_value().map(|(rank, unit)| (*rank, *unit))
    }

    /// What it asks for in a pool where it waits.
    pub(super) fn want(&self, pool: usize) -> Option<&Want> {
        self.seats.iter().find(|seat| seat.pool == pool).and_then(|seat| seat.want.as_ref())
    }
}
