//! Dry runs: where units would be placed, without changing anything.

use std::collections::HashMap;

use serde::Serialize;

use super::decision::PendingReason;
use super::explain::Explanation;
use super::preempt::Victims;
use super::unit::{Place, Rank, Unit, UnitId};
use super::{State, World};
use crate::Time;

/// The outcome of a dry run for one unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It starts at once.
    Start {
        /// The node.
        place: Place,
    },
    /// It starts once other units have stopped.
    Preempt {
        /// The node.
        place: Place,
        /// The preemption victims; empty if units are already stopping.
        victims: Vec<UnitId>,
    },
    /// It is pending.
    Wait {
        /// The reason.
        explanation: Box<Explanation>,
    },
}

impl World {
    /// Returns where each unit would be placed, one after the other. Changes nothing; units that
    /// are already registered are skipped.
    pub fn dry_run(&mut self, units: &[Unit], now: Time) -> Vec<(UnitId, Outcome)> {
        self.refresh_pools();
        let mut tried = Vec::new();
        let mut stopped = Vec::new();
        let mut outcomes = Vec::new();
        let mut explanations = HashMap::new();
        let mut units: Vec<&Unit> =
            units.iter().filter(|unit| !self.index.contains_key(&unit.id)).collect();
        units.sort_by_key(|unit| (std::cmp::Reverse(unit.priority), unit.since, unit.id));
        units.dedup_by_key(|unit| unit.id);
        for unit in units {
            self.add_pending(unit);
            tried.push(unit.id);
            outcomes.push((unit.id, self.try_place(unit.id, now, &mut stopped, &mut explanations)));
        }
        tried.into_iter().rev().for_each(|id| self.remove(id));
        stopped.into_iter().rev().for_each(|(unit, state)| self.resume(unit, &state));
        outcomes
    }

    /// `explanations` caches that of the first pending unit of each class, which also holds for
    /// those behind it.
    fn try_place(
        &mut self,
        id: UnitId,
        now: Time,
        stopped: &mut Vec<(usize, State)>,
        explanations: &mut HashMap<usize, Explanation>,
    ) -> Outcome {
        let unit = self.index[&id];
        let (class, rank) = (self.entries[unit].class, self.entries[unit].rank());
        if self.classes[class].published != Some(rank) {
            return self.explain_pending(unit, PendingReason::Behind, now, explanations);
        }
        if let Some(spot) = self.start_node(class, unit, &rank) {
            self.dequeue(unit);
            self.occupy(unit, spot, now);
            return Outcome::Start { place: self.place(spot) };
        }
        match self.find_preemption(class, unit, &rank, now) {
            Ok(victims) => {
                let place = self.place(victims.spot);
                let ids = victims.units.iter().map(|&victim| self.entries[victim].id).collect();
                for &victim in &victims.units {
                    stopped.push((victim, self.entries[victim].state.clone()));
                    self.stop(victim, Some(id));
                }
                self.dequeue(unit);
                self.occupy(unit, victims.spot, now);
                Outcome::Preempt { place, victims: ids }
            }
            Err(wait) => self.explain_pending(unit, wait, now, explanations),
        }
    }

    fn find_preemption(
        &mut self,
        class: usize,
        unit: usize,
        rank: &Rank,
        now: Time,
    ) -> Result<Victims, PendingReason> {
        match self.future_node(class, unit, rank) {
            Some(spot) => Ok(Victims::none(spot)),
            None => self.find_victims(class, rank, now),
        }
    }

    fn explain_pending(
        &mut self,
        unit: usize,
        wait: PendingReason,
        now: Time,
        explanations: &mut HashMap<usize, Explanation>,
    ) -> Outcome {
        let (class, rank) = (self.entries[unit].class, self.entries[unit].rank());
        let explanation = match explanations.get(&class).filter(|_| wait == PendingReason::Behind) {
            None => self.explain_wait(unit, None, Some(wait), now),
            Some(first) => Explanation {
                unit: rank.id,
                wait: Some(wait),
                position: Some(self.position(class, &rank)),
                ..first.clone()
            },
        };
        explanations.insert(class, explanation.clone());
        Outcome::Wait { explanation: Box::new(explanation) }
    }

    /// Restores a unit that was stopped by the dry run.
    fn resume(&mut self, unit: usize, state: &State) {
        let State::Placed { spot: Some(spot), started, .. } = *state else { return };
        self.vacate(unit);
        self.occupy(unit, spot, started);
    }
}
