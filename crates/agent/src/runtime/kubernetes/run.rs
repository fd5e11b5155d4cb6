//! Something that shall run, and how it looks.

use std::sync::atomic::{AtomicBool, Ordering};

use model::agent::ReplicaId;
use runtime::Condition;

use super::judge::{Facts, Look};
use super::names;
use super::object::Place;
use super::ready::{self, State};
use super::seen::Known;

/// Something that shall run.
pub(super) struct Run {
    pub(super) id: ReplicaId,
    /// What was applied and is watched.
    pub(super) places: Vec<Place>,
    /// Of an image; none if it is made of manifests.
    pub(super) facts: Option<Facts>,
    pub(super) endpoints: Vec<String>,
    /// Was all of it seen? What was seen and is gone was removed.
    pub(super) was_seen: AtomicBool,
}

impl Run {
    /// How it looks. Who runs already need not answer again.
    pub(super) fn look(&self, known: &Known, runs_already: bool) -> Look {
        for place in &self.places {
            let found = known.object(&place.at());
            if found.is_none() && self.was_seen.load(Ordering::Relaxed) {
                let why =
                    format!("Its {} was removed by someone else: start it again.", place.words());
                return Look::Is(Condition::Failed(why));
            }
            if found.is_none() {
                return Look::Waiting(None);
            }
        }
        self.was_seen.store(true, Ordering::Relaxed);
        match &self.facts {
            Some(facts) => self.image(known, facts, runs_already),
            None => self.manifests(known),
        }
    }

    fn image(&self, known: &Known, facts: &Facts, runs_already: bool) -> Look {
        let pods = known.pods_of(&names::label(self.id));
        let facts = Facts { must_answer: facts.must_answer && !runs_already, ..facts.clone() };
        match facts.judge(&pods) {
            Look::Waiting(None) => self.of_workload(known, &facts),
            other => other,
        }
    }

    /// What its Deployment or Job says of pods that can't be made, or are gone.
    fn of_workload(&self, known: &Known, facts: &Facts) -> Look {
        let Some(place) = self.places.last() else { return Look::Waiting(None) };
        match known.object(&place.at()).map(|object| ready::state(&place.kind, object)) {
            Some(State::Completed) => Look::Is(Condition::Completed),
            Some(State::Failed(why)) if facts.is_job => {
                Look::Is(Condition::Failed(format!("It failed: {why}")))
            }
            Some(State::Waiting(Some(why))) => {
                Look::Waiting(Some(format!("Its pod can't be made: {why} It is tried again.")))
            }
            _ => Look::Waiting(None),
        }
    }

    /// All must be ready; what ran to its end, too.
    fn manifests(&self, known: &Known) -> Look {
        let mut is_over = !self.places.is_empty();
        for place in &self.places {
            let Some(object) = known.object(&place.at()) else { return Look::Waiting(None) };
            match ready::state(&place.kind, object) {
                State::Completed => {}
                State::Ready => is_over = false,
                State::Failed(why) => {
                    return Look::Is(Condition::Failed(format!(
                        "Its {} failed: {why}",
                        place.words()
                    )));
                }
                State::Waiting(why) => {
                    let why = why.map(|why| format!("Its {} is not ready: {why}", place.words()));
                    return Look::Waiting(why);
                }
            }
        }
        if is_over {
            return Look::Is(Condition::Completed);
        }
        Look::Is(Condition::Running { endpoints: self.endpoints.clone() })
    }
}
