//! Something that shall run, and how it looks.

use std::sync::atomic::{AtomicBool, Ordering};

use model::agent::{Observed, ReplicaId};
use model::deployment::Reason;

use super::judge::{Facts, Look};
use super::names;
use super::object::Place;
use super::ready::{self, Said, State};
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
                let message = format!("{} was removed by someone else", place.words());
                return Look::Is(Observed::Failed { reason: Reason::ContainerLost { message } });
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
            Some(State::Completed) => Look::Is(Observed::Completed),
            Some(State::Failed(said)) if facts.is_job => {
                Look::Is(Observed::Failed { reason: said.failed() })
            }
            Some(State::Waiting(Some(said))) => Look::Waiting(Some(said.failed())),
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
                State::Failed(said) => {
                    let message = format!("{}: {}", place.words(), said.message);
                    let reason = Said { message, ..said }.failed();
                    return Look::Is(Observed::Failed { reason });
                }
                State::Waiting(said) => {
                    return Look::Waiting(said.map(|said| said.unready(place)));
                }
            }
        }
        if is_over {
            return Look::Is(Observed::Completed);
        }
        Look::Is(Observed::Running { endpoints: self.endpoints.clone() })
    }
}
