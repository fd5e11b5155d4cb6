//! What would happen if something were asked for now, without doing it.

use std::collections::HashMap;

use serde::Serialize;

use super::decision::Wait;
use super::explain::Explanation;
use super::preempt::Victims;
use super::unit::{Place, Rank, Unit, UnitId};
use super::{State, World};
use crate::Time;

/// What would become of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It would start at once.
    Start {
        /// Where.
        place: Place,
    },
    /// It would start as soon as others have stopped.
    Displace {
        /// Where.
        place: Place,
        /// Who would have to yield; nobody if they are stopping anyway.
        victims: Vec<UnitId>,
    },
    /// It would wait.
    Wait {
        /// Why.
        explanation: Box<Explanation>,
    },
}

impl World {
    /// Tells what would happen to units if they were asked for now, one after the other. Nothing
    /// is changed; units that are known already are left out.
    pub fn dry_run(&mut self, units: &[Unit], now: Time) -> Vec<(UnitId, Outcome)> {
        self.settle();
        let mut tried = Vec::new();
        let mut stopped = Vec::new();
        let mut outcomes = Vec::new();
        let mut said = HashMap::new();
        let mut units: Vec<&Unit> =
            units.iter().filter(|unit| !self.index.contains_key(&unit.id)).collect();
        units.sort_by_key(|unit| (std::cmp::Reverse(unit.priority), unit.since, unit.id));
        units.dedup_by_key(|unit| unit.id);
        for unit in units {
            self.wait(unit);
            tried.push(unit.id);
            outcomes.push((unit.id, self.try_one(unit.id, now, &mut stopped, &mut said)));
        }
        tried.into_iter().rev().for_each(|id| self.gone(id));
        stopped.into_iter().rev().for_each(|(unit, state)| self.resume(unit, &state));
        outcomes
    }

    /// `said` has what was said to the first of a class who has to wait, as it also holds for those
    /// behind it.
    fn try_one(
        &mut self,
        id: UnitId,
        now: Time,
        stopped: &mut Vec<(usize, State)>,
        said: &mut HashMap<usize, Explanation>,
    ) -> Outcome {
        let unit = self.index[&id];
        let (class, rank) = (self.entries[unit].class, self.entries[unit].rank());
        if self.classes[class].shown != Some(rank) {
            return self.would_wait(unit, Wait::Behind, now, said);
        }
        if let Some(spot) = self.seek_start(class, unit, &rank) {
            self.leave_line(unit);
            self.occupy(unit, spot, now);
            return Outcome::Start { place: self.place(spot) };
        }
        match self.would_displace(class, unit, &rank, now) {
            Ok(victims) => {
                let place = self.place(victims.spot);
                let ids = victims.units.iter().map(|&victim| self.entries[victim].id).collect();
                for &victim in &victims.units {
                    stopped.push((victim, self.entries[victim].state.clone()));
                    self.stop(victim, Some(id));
                }
                self.leave_line(unit);
                self.occupy(unit, victims.spot, now);
                Outcome::Displace { place, victims: ids }
            }
            Err(wait) => self.would_wait(unit, wait, now, said),
        }
    }

    fn would_displace(
        &mut self,
        class: usize,
        unit: usize,
        rank: &Rank,
        now: Time,
    ) -> Result<Victims, Wait> {
        match self.seek_coming(class, unit, rank) {
            Some(spot) => Ok(Victims::none(spot)),
            None => self.seek_victims(class, rank, now),
        }
    }

    fn would_wait(
        &mut self,
        unit: usize,
        wait: Wait,
        now: Time,
        said: &mut HashMap<usize, Explanation>,
    ) -> Outcome {
        let (class, rank) = (self.entries[unit].class, self.entries[unit].rank());
        let explanation = match said.get(&class).filter(|_| wait == Wait::Behind) {
            None => self.explain_wait(unit, None, Some(wait), now),
            Some(said) => Explanation {
                unit: rank.id,
                wait: Some(wait),
                position: Some(self.position(class, &rank)),
                ..said.clone()
            },
        };
        said.insert(class, explanation.clone());
        Outcome::Wait { explanation: Box::new(explanation) }
    }

    /// Somebody who was stopped for a trial is where it was.
    fn resume(&mut self, unit: usize, state: &State) {
        let State::Placed { spot: Some(spot), started, .. } = *state else { return };
        self.vacate(unit);
        self.occupy(unit, spot, started);
    }
}
