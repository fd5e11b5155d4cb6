//! Who starts, who yields, who waits and why: one cluster's queue against its capacity.
//!
//! Pure: the caller loads the cluster, carries the plan out and asks again when something changed.
//! Carrying it out may fail half-way; the next plan starts from what is then true.

use std::cmp::Reverse;
use std::fmt;

use crate::{DeploymentId, Quantity, Resources, Time};

/// Something that holds capacity of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Which deployment.
    pub id: DeploymentId,
    /// What it holds.
    pub request: Resources,
    /// Who may make it yield: anything higher.
    pub priority: i64,
    /// Since when it holds it; the longer, the more work would be lost.
    pub since: Time,
    /// Is it on its way out, so that its capacity will be free soon?
    pub is_stopping: bool,
}

/// Something that waits for capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Which deployment.
    pub id: DeploymentId,
    /// What it needs.
    pub request: Resources,
    /// Higher goes first.
    pub priority: i64,
    /// Among equals, who waits longer goes first.
    pub since: Time,
    /// Would another cluster take it right now? Then nobody here has to yield for it.
    pub fits_elsewhere: bool,
}

/// Why something still waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// The cluster is too small, even when empty.
    Never {
        /// What is missing of the cluster's total.
        missing: Resources,
    },
    /// There is too little free capacity now.
    Short {
        /// What is missing of what is free.
        missing: Resources,
    },
    /// Others are stopping to make room.
    Yielding,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::Never { missing } => write!(f, "can never fit: {missing} more than there is"),
            Wait::Short { missing } => write!(f, "waits for capacity: {missing} more than is free"),
            Wait::Yielding => write!(f, "waits for lower priorities to stop"),
        }
    }
}

/// What to do now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// These get their capacity.
    pub starts: Vec<DeploymentId>,
    /// The first of each pair yields to the second.
    pub preemptions: Vec<(DeploymentId, DeploymentId)>,
    /// These wait.
    pub waits: Vec<(DeploymentId, Wait)>,
}

/// Decides for one cluster that has `total`, of which `held` holds a part and `free` is free.
///
/// `free` comes from the caller because capacity can also be taken by hand.
pub fn plan(total: &Resources, free: &Resources, held: &[Held], waiting: &[Waiting]) -> Plan {
    let mut round = Round::new(free, held);
    let mut queue: Vec<&Waiting> = waiting.iter().collect();
    queue.sort_by_key(|w| (Reverse(w.priority), w.since, w.id));
    for waiting in queue {
        round.place(total, waiting);
    }
    round.plan
}

/// One walk through the queue.
struct Round<'a> {
    /// What nobody holds now.
    free: Resources,
    /// What will be free once everything that stops has stopped, less what is promised of it.
    soon: Resources,
    /// Who could yield, the one that hurts least first.
    yielding: Vec<&'a Held>,
    plan: Plan,
}

impl<'a> Round<'a> {
    fn new(free: &Resources, held: &'a [Held]) -> Self {
        let mut soon = free.clone();
        let (stopping, mut yielding): (Vec<&Held>, Vec<&Held>) =
            held.iter().partition(|h| h.is_stopping);
        for held in stopping {
            soon.add(&held.request);
        }
        // Lowest priority first; among equals the youngest, which loses the least work.
        yielding.sort_by_key(|h| (h.priority, Reverse(h.since), h.id));
        Self { free: free.clone(), soon, yielding, plan: Plan::default() }
    }

    fn place(&mut self, total: &Resources, waiting: &Waiting) {
        let request = &waiting.request;
        let missing = request.shortage(total);
        if !missing.is_empty() {
            return self.plan.waits.push((waiting.id, Wait::Never { missing }));
        }
        if self.start(waiting) || waiting.fits_elsewhere {
            return;
        }
        if !request.fits(&self.soon) {
            let Some(victims) = self.victims(waiting) else {
                let missing = request.shortage(&self.usable());
                return self.plan.waits.push((waiting.id, Wait::Short { missing }));
            };
            self.preempt(&victims, waiting.id);
        }
        // With more on its way to those before it, it may be able to start right now.
        if !self.start(waiting) {
            self.soon.subtract(request);
            self.plan.waits.push((waiting.id, Wait::Yielding));
        }
    }

    fn start(&mut self, waiting: &Waiting) -> bool {
        if !waiting.request.fits(&self.usable()) {
            return false;
        }
        self.plan.starts.push(waiting.id);
        self.free.subtract(&waiting.request);
        self.soon.subtract(&waiting.request);
        true
    }

    /// What is free now and not promised to somebody further up the queue.
    fn usable(&self) -> Resources {
        self.free
            .iter()
            .map(|(kind, now)| (kind.to_owned(), now.min(self.soon.get(kind))))
            .collect()
    }

    /// The least that must yield so that `waiting` fits; none if even all lower ones don't help.
    fn victims(&self, waiting: &Waiting) -> Option<Vec<&'a Held>> {
        let request = &waiting.request;
        let mut room = self.soon.clone();
        let mut victims = Vec::new();
        for held in self.yielding.iter().take_while(|h| h.priority < waiting.priority) {
            if request.fits(&room) {
                break;
            }
            if helps(held, &request.shortage(&room)) {
                room.add(&held.request);
                victims.push(*held);
            }
        }
        if !request.fits(&room) {
            return None;
        }
        // Whoever turns out not to be needed stays, the highest priority first.
        for i in (0..victims.len()).rev() {
            let mut without = room.clone();
            without.subtract(&victims[i].request);
            if request.fits(&without) {
                room = without;
                victims.remove(i);
            }
        }
        Some(victims)
    }

    fn preempt(&mut self, victims: &[&'a Held], by: DeploymentId) {
        for victim in victims {
            self.soon.add(&victim.request);
            self.plan.preemptions.push((victim.id, by));
            self.yielding.retain(|held| held.id != victim.id);
        }
    }
}

/// Does it hold anything of what is missing?
fn helps(held: &Held, missing: &Resources) -> bool {
    missing.iter().any(|(kind, _)| held.request.get(kind) > Quantity::ZERO)
}

#[cfg(test)]
mod tests;
