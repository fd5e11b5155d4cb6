//! One node: who is on it, who is on the way out, and for whom room is kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::order::{NOWHERE, Sort};
use super::unit::{Rank, UnitId};
use super::vector::Want;
use crate::{ClusterId, Time};

/// Somebody on a node who may be asked to yield. In order: who hurts least comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resident {
    pub(super) priority: i64,
    pub(super) started: Reverse<Time>,
    pub(super) id: UnitId,
    pub(super) unit: usize,
    pub(super) want: Want,
}

/// What all residents of one priority hold together.
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub(super) priority: i64,
    pub(super) held: Vec<i64>,
    residents: usize,
}

/// Room that is kept for somebody who waits, against all who rank behind.
#[derive(Debug, Clone)]
pub(super) struct Hold {
    pub(super) rank: Rank,
    pub(super) unit: usize,
    pub(super) want: Want,
}

/// A node.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) cluster: ClusterId,
    pub(super) name: Arc<str>,
    /// Its own labels over its cluster's.
    pub(super) labels: BTreeMap<String, String>,
    /// Does it take units: is it there, and its cluster ready?
    pub(super) is_open: bool,
    pub(super) residents: Vec<Resident>,
    pub(super) levels: Vec<Level>,
    /// Those who are stopping, as units.
    pub(super) leaving: Vec<(usize, Want)>,
    /// By rank.
    pub(super) holds: Vec<Hold>,
    /// Where it belongs in these orders, once it is in them.
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
            leaving: Vec::new(),
            holds: Vec::new(),
            sort: None,
            positions: [NOWHERE; 2],
            group,
        }
    }

    pub(super) fn has_labels(&self, selector: &BTreeMap<String, String>) -> bool {
        selector.iter().all(|(key, value)| self.labels.get(key) == Some(value))
    }

    /// Who would hurt least to lose; what [`super::pool::Group::yielding`] is ordered by.
    pub(super) fn cheapest(&self) -> Option<(i64, Reverse<Time>)> {
        self.residents.first().map(|first| (first.priority, first.started))
    }

    pub(super) fn join(&mut self, resident: Resident) {
        let at = self.levels.partition_point(|level| level.priority < resident.priority);
        if self.levels.get(at).is_none_or(|level| level.priority != resident.priority) {
            let new = Level { priority: resident.priority, held: Vec::new(), residents: 0 };
            self.levels.insert(at, new);
        }
        self.levels[at].count(&resident.want, 1);
        self.levels[at].residents += 1;
        let at = self.residents.partition_point(|other| *other < resident);
        self.residents.insert(at, resident);
    }

    /// Removes a resident; it must be one.
    pub(super) fn part(&mut self, id: UnitId, priority: i64, started: Time) -> Option<Resident> {
        let key = (priority, Reverse(started), id);
        let at =
            self.residents.binary_search_by_key(&key, |r| (r.priority, r.started, r.id)).ok()?;
        let resident = self.residents.remove(at);
        let at = self.levels.partition_point(|level| level.priority < priority);
        self.levels[at].count(&resident.want, -1);
        self.levels[at].residents -= 1;
        if self.levels[at].residents == 0 {
            self.levels.remove(at);
        }
        Some(resident)
    }

    /// How much of a column those below `priority` hold.
    pub(super) fn held_below(&self, priority: i64, column: usize) -> i64 {
        let below = self.levels.iter().take_while(|level| level.priority < priority);
        let held = below.map(|level| level.held.get(column).copied().unwrap_or(0));
        held.fold(0, i64::saturating_add)
    }

    /// How much of a column is kept for those who rank before `rank`.
    pub(super) fn held_for(&self, rank: &Rank, column: usize) -> i64 {
        let ahead = self.holds.iter().take_while(|hold| hold.rank < *rank);
        ahead.map(|hold| amount(&hold.want, column)).fold(0, i64::saturating_add)
    }
}

impl Level {
    fn count(&mut self, want: &[(usize, i64)], sign: i64) {
        for &(column, amount) in want {
            if self.held.len() <= column {
                self.held.resize(column + 1, 0);
            }
            self.held[column] = self.held[column].wrapping_add(sign * amount);
        }
    }
}

/// What is asked of one column.
pub(super) fn amount(want: &[(usize, i64)], column: usize) -> i64 {
    want.iter().find(|(k, _)| *k == column).map_or(0, |(_, amount)| *amount)
}
