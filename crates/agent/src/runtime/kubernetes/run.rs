//! A started replica and its evaluation.

use std::sync::atomic::{AtomicBool, Ordering};

use model::agent::{Observed, ReplicaId};
use model::deployment::Reason;

use super::cache::CacheState;
use super::evaluate::{Evaluation, Workload};
use super::names;
use super::object::ObjectRef;
use super::ready::{self, Message, State};

/// A started replica.
pub(super) struct Run {
    pub(super) id: ReplicaId,
    /// Applied objects that are watched.
    pub(super) objects: Vec<ObjectRef>,
    /// Properties of its image's workload; none if it consists of manifests.
    pub(super) workload: Option<Workload>,
    pub(super) endpoints: Vec<String>,
    /// Whether all objects were observed once; one that is missing afterwards was deleted.
    pub(super) was_observed: AtomicBool,
}

impl Run {
    /// Evaluates the replica. A running one need not become ready again.
    pub(super) fn evaluate(&self, state: &CacheState, is_running: bool) -> Evaluation {
        for object in &self.objects {
            let found = state.object(&object.key());
            if found.is_none() && self.was_observed.load(Ordering::Relaxed) {
                let message = format!("{object} was deleted by a third party");
                return Evaluation::Settled(Observed::Failed {
                    reason: Reason::ContainerLost { message },
                });
            }
            if found.is_none() {
                return Evaluation::Waiting(None);
            }
        }
        self.was_observed.store(true, Ordering::Relaxed);
        match &self.workload {
            Some(workload) => self.evaluate_image(state, workload, is_running),
            None => self.evaluate_manifests(state),
        }
    }

    fn evaluate_image(
        &self,
        state: &CacheState,
        workload: &Workload,
        is_running: bool,
    ) -> Evaluation {
        let pods = state.pods_of(&names::label(self.id));
        let needs_readiness = workload.needs_readiness && !is_running;
        let workload = Workload { needs_readiness, ..workload.clone() };
        match workload.evaluate(&pods) {
            Evaluation::Waiting(None) => self.evaluate_controller(state, &workload),
            other => other,
        }
    }

    /// The condition of its Deployment or Job, for pods that can't be created or are deleted.
    fn evaluate_controller(&self, state: &CacheState, workload: &Workload) -> Evaluation {
        let Some(object) = self.objects.last() else { return Evaluation::Waiting(None) };
        match state.object(&object.key()).map(|found| ready::state(&object.kind, found)) {
            Some(State::Completed) => Evaluation::Settled(Observed::Completed),
            Some(State::Failed(message)) if workload.is_job => {
                Evaluation::Settled(Observed::Failed { reason: message.failed() })
            }
            Some(State::Waiting(Some(message))) => Evaluation::Waiting(Some(message.failed())),
            _ => Evaluation::Waiting(None),
        }
    }

    /// All objects must be ready or completed.
    fn evaluate_manifests(&self, state: &CacheState) -> Evaluation {
        let mut is_completed = !self.objects.is_empty();
        for object in &self.objects {
            let Some(found) = state.object(&object.key()) else { return Evaluation::Waiting(None) };
            match ready::state(&object.kind, found) {
                State::Completed => {}
                State::Ready => is_completed = false,
                State::Failed(message) => {
                    let text = format!("{object}: {}", message.message);
                    let reason = Message { message: text, ..message }.failed();
                    return Evaluation::Settled(Observed::Failed { reason });
                }
                State::Waiting(message) => {
                    return Evaluation::Waiting(message.map(|message| message.unready(object)));
                }
            }
        }
        if is_completed {
            return Evaluation::Settled(Observed::Completed);
        }
        Evaluation::Settled(Observed::Running { endpoints: self.endpoints.clone() })
    }
}
