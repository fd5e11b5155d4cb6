//! Classes: units with the same request and constraints share one queue.
//!
//! If the head of a class cannot be placed, no unit behind it can: they have the same request, a
//! lower rank and see less free capacity. So examining the head stands for a million units.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::unit::{Rank, Target, Unit};
use super::vector::Amounts;
use crate::{OrganizationId, Resources, Time, Xid};

/// What all units of a class share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) organization: OrganizationId,
    pub(super) request: Resources,
    pub(super) target: Target,
    pub(super) selector: BTreeMap<String, String>,
    pub(super) is_container: bool,
    /// The owner, if its replicas have anti-affinity.
    pub(super) spread_owner: Option<Xid>,
}

impl Key {
    pub(super) fn new(unit: &Unit) -> Self {
        Self {
            organization: unit.organization,
            request: unit.request.clone(),
            target: unit.target,
            selector: unit.selector.clone(),
            is_container: unit.is_container,
            spread_owner: unit.is_spread.then_some(unit.id.owner),
        }
    }
}

/// A pool that a class may use.
#[derive(Debug, Clone)]
pub(super) struct CandidatePool {
    pub(super) pool: usize,
    /// The entry in the pool's queue while the class has pending units.
    pub(super) leaf: Option<usize>,
    /// The request in the pool's columns; none if the pool lacks a requested kind.
    pub(super) demand: Option<Amounts>,
    /// What it takes from the machine of the pool, if anything.
    pub(super) machine: Option<MachineDemand>,
}

/// What units of a class take from a machine.
#[derive(Debug, Clone)]
pub(super) struct MachineDemand {
    /// The machine.
    pub(super) slot: usize,
    /// The request in the machines' columns; none if no machine has a requested kind.
    pub(super) demand: Option<Amounts>,
}

/// A class.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub(super) key: Arc<Key>,
    /// Pending units, except those with a promised hold.
    pub(super) pending: BTreeMap<Rank, usize>,
    /// Candidate pools, best first.
    pub(super) candidates: Vec<CandidatePool>,
    /// The request in the columns of the pools that its units are on.
    pub(super) resident_demands: Vec<(usize, Amounts)>,
    /// The request in the machines' columns, once one of its units is on a machine.
    pub(super) machine_demand: Option<Amounts>,
    /// The machines whose queues the class is in, with its entries: their capacity is short.
    pub(super) machine_leaves: Vec<(usize, usize)>,
    /// Number of units, pending or not.
    pub(super) units: usize,
    /// The head as published to all indexes.
    pub(super) published: Option<Rank>,
    /// When the head becomes due for a reservation.
    pub(super) due: Option<Time>,
    /// Could the head preempt if the budget of its organization allowed it?
    pub(super) is_over_budget: bool,
    /// Could the head preempt if other organizations were above their fair shares?
    pub(super) is_share_blocked: bool,
    /// Cached result of [`super::World::never_fits`], with the structure version.
    pub(super) never: Option<(u64, bool)>,
}

impl Class {
    pub(super) fn new(key: Arc<Key>) -> Self {
        Self {
            key,
            pending: BTreeMap::new(),
            candidates: Vec::new(),
            resident_demands: Vec::new(),
            machine_demand: None,
            machine_leaves: Vec::new(),
            units: 0,
            published: None,
            due: None,
            is_over_budget: false,
            is_share_blocked: false,
            never: None,
        }
    }

    pub(super) fn head(&self) -> Option<(Rank, usize)> {
        self.pending.first_key_value().map(|(rank, unit)| (*rank, *unit))
    }

    /// A candidate pool.
    pub(super) fn candidate(&self, pool: usize) -> Option<&CandidatePool> {
        self.candidates.iter().find(|c| c.pool == pool)
    }

    /// The request in the columns of a candidate pool.
    pub(super) fn demand(&self, pool: usize) -> Option<&Amounts> {
        self.candidates.iter().find(|c| c.pool == pool).and_then(|c| c.demand.as_ref())
    }
}
