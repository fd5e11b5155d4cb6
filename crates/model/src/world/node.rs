//! One node: its residents, stopping units and holds.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::order::{NOWHERE, Sort};
use super::unit::{Rank, UnitId};
use super::vector::Amounts;
use crate::{ClusterId, OrganizationId, Time};

/// A unit on a node that may be preempted. The cheapest victim sorts first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resident {
    pub(super) priority: i64,
    pub(super) started: Reverse<Time>,
    pub(super) id: UnitId,
    pub(super) unit: usize,
    pub(super) organization: OrganizationId,
    pub(super) demand: Amounts,
}

/// Capacity used by all residents of one priority.
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub(super) priority: i64,
    pub(super) used: Vec<i64>,
    residents: usize,
}

/// Capacity held for a pending unit against all lower ranks.
#[derive(Debug, Clone)]
pub(super) struct Hold {
    pub(super) rank: Rank,
    pub(super) unit: usize,
    pub(super) demand: Amounts,
}

/// A node.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) cluster: ClusterId,
    pub(super) name: Arc<str>,
    /// Its labels, merged over those of the cluster.
    pub(super) labels: BTreeMap<String, String>,
    /// Does it accept units: is it registered, and its cluster ready?
    pub(super) is_open: bool,
    pub(super) residents: Vec<Resident>,
    pub(super) levels: Vec<Level>,
    /// Stopping units with their requests.
    pub(super) stopping: Vec<(usize, Amounts)>,
    /// Holds by rank.
    pub(super) holds: Vec<Hold>,
    /// Sort key in the orders, once it is part of them.
    pub(super) sort: Option<Sort>,
    /// Its positions in the pool's order and in its cluster's.
    pub(super) positions: [usize; 2],
    /// Its cluster's group in the pool.
    pub(super) group: usize,
}

impl Node {
    pub(super) fn new(cluster: ClusterId, name: Arc<str>, group: usize) -> Self {
        Self {
            cluster,
            name,
            labels: BTreeMap::new(),
            is_open: false,
            residents: Vec::new(),
            levels: Vec::new(),
            stopping: Vec::new(),
            holds: Vec::new(),
            sort: None,
            positions: [NOWHERE; 2],
            group,
        }
    }

    pub(super) fn has_labels(&self, selector: &BTreeMap<String, String>) -> bool {
        selector.iter().all(|(key, value)| self.labels.get(key) == Some(value))
    }

    /// The cheapest victim, which [`super::pool::Group::by_loss`] is ordered by.
    pub(super) fn cheapest(&self) -> Option<(i64, Reverse<Time>)> {
        self.residents.first().map(|first| (first.priority, first.started))
    }

    pub(super) fn add_resident(&mut self, resident: Resident) {
        let at = self.levels.partition_point(|level| level.priority < resident.priority);
        if self.levels.get(at).is_none_or(|level| level.priority != resident.priority) {
            let new = Level { priority: resident.priority, used: Vec::new(), residents: 0 };
            self.levels.insert(at, new);
        }
        self.levels[at].count(&resident.demand, 1);
        self.levels[at].residents += 1;
        let at = self.residents.partition_point(|other| *other < resident);
        self.residents.insert(at, resident);
    }

    /// Removes a resident.
    pub(super) fn remove_resident(
        &mut self,
        id: UnitId,
        priority: i64,
        started: Time,
    ) -> Option<Resident> {
        let key = (priority, Reverse(started), id);
        let at =
            self.residents.binary_search_by_key(&key, |r| (r.priority, r.started, r.id)).ok()?;
        let resident = self.residents.remove(at);
        let at = self.levels.partition_point(|level| level.priority < priority);
        self.levels[at].count(&resident.demand, -1);
        self.levels[at].residents -= 1;
        if self.levels[at].residents == 0 {
            self.levels.remove(at);
        }
        Some(resident)
    }

    /// How much of a column residents below `priority` use.
    pub(super) fn used_below(&self, priority: i64, column: usize) -> i64 {
        let below = self.levels.iter().take_while(|level| level.priority < priority);
        let held = below.map(|level| level.used.get(column).copied().unwrap_or(0));
        held.fold(0, i64::saturating_add)
    }

    /// How much of a column is held for ranks before `rank`.
    pub(super) fn held_ahead(&self, rank: &Rank, column: usize) -> i64 {
        let ahead = self.holds.iter().take_while(|hold| hold.rank < *rank);
        ahead.map(|hold| amount(&hold.demand, column)).fold(0, i64::saturating_add)
    }
}

impl Level {
    fn count(&mut self, demand: &[(usize, i64)], sign: i64) {
        for &(column, amount) in demand {
            if self.used.len() <= column {
                self.used.resize(column + 1, 0);
            }
            self.used[column] = self.used[column].wrapping_add(sign * amount);
        }
    }
}

/// The requested amount of one column.
pub(super) fn amount(demand: &[(usize, i64)], column: usize) -> i64 {
    demand.iter().find(|(k, _)| *k == column).map_or(0, |(_, amount)| *amount)
}
