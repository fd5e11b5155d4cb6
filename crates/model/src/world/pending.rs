//! Unschedulable pending units grouped by request, for autoscaling.

use std::collections::BTreeMap;

use super::World;
use super::unit::{Target, UnitId};
use crate::{Resources, Time};

/// Pending units with the same request that fit on no node now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingGroup {
    /// The best-ranked unit.
    pub head: UnitId,
    /// Requested resources of each unit.
    pub request: Resources,
    /// Labels that the node must have.
    pub selector: BTreeMap<String, String>,
    /// Number of units.
    pub count: usize,
    /// Since when the best-ranked unit is pending.
    pub since: Time,
}

impl World {
    /// Pending units that may use any cluster and can start on none now, in queue order. Units that
    /// are pinned to a cluster or have a promised hold are left out. The cost depends on the number
    /// of classes, not of units.
    pub fn pending_groups(&mut self) -> Vec<PendingGroup> {
        self.refresh_pools();
        let classes = self.class_of.values().copied();
        let mut lines: Vec<_> = classes.filter_map(|class| self.pending_group(class)).collect();
        lines.sort_by_key(|(rank, _)| *rank);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    fn pending_group(&self, class: usize) -> Option<(super::Rank, PendingGroup)> {
        let class_entry = &self.classes[class];
        let (rank, unit) = class_entry.head()?;
        let is_any = class_entry.key.target == Target::Any;
        let can_start = || {
            self.start_node(class, unit, &rank).is_some()
                || self.future_node(class, unit, &rank).is_some()
        };
        if !is_any || can_start() {
            return None;
        }
        let line = PendingGroup {
            head: rank.id,
            request: class_entry.key.request.clone(),
            selector: class_entry.key.selector.clone(),
            count: class_entry.pending.len(),
            since: rank.since,
        };
        Some((rank, line))
    }
}
