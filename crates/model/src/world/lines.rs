//! Who waits and fits nowhere now, those together who ask for the same: for whoever could make room.

use std::collections::BTreeMap;

use super::World;
use super::unit::{Target, UnitId};
use crate::{Resources, Time};

/// Some who wait for the same, and fit nowhere now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The first of them.
    pub head: UnitId,
    /// What each asks for.
    pub request: Resources,
    /// Which labels the node must have.
    pub selector: BTreeMap<String, String>,
    /// How many they are.
    pub count: usize,
    /// Since when the first of them waits.
    pub since: Time,
}

impl World {
    /// Everybody who waits for any cluster and could start on none now, the first in line first. Who
    /// waits for one cluster alone is left out, and for whom room is being made. Costs as much as
    /// there are different requests, however many make them.
    pub fn lines(&mut self) -> Vec<Line> {
        self.settle();
        let classes = self.class_of.values().copied();
        let mut lines: Vec<_> = classes.filter_map(|class| self.line_of(class)).collect();
        lines.sort_by_key(|(rank, _)| *rank);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    fn line_of(&self, class: usize) -> Option<(super::Rank, Line)> {
        let of = &self.classes[class];
        let (rank, unit) = of.head()?;
        let is_any = of.key.target == Target::Any;
        let can_start = || {
            self.seek_start(class, unit, &rank).is_some()
                || self.seek_coming(class, unit, &rank).is_some()
        };
        if !is_any || can_start() {
            return None;
        }
        let line = Line {
            head: rank.id,
            request: of.key.request.clone(),
            selector: of.key.selector.clone(),
            count: of.line.len(),
            since: rank.since,
        };
        Some((rank, line))
    }
}
