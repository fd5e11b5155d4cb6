//! Schedules the steps of an environment: which start, which wait, and when the operation ends.

use std::collections::HashMap;

use super::{Environment, Reason, Status};
use crate::resource::{self, Resource};
use crate::template::Act;

/// The next steps of an environment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Positions of the resources whose steps start.
    pub start: Vec<usize>,
    /// Positions of the resources that wait, and why.
    pub waiting: Vec<(usize, resource::Reason)>,
    /// The next status of the environment, and why, if the operation ends.
    pub outcome: Option<(Status, Reason)>,
    /// The progress, in percent.
    pub progress: i64,
    /// The reason for the current status.
    pub reason: Reason,
}

/// Schedules the next steps of an environment; at most `limit` steps run concurrently.
pub fn schedule(environment: &Environment, resources: &[Resource], limit: usize) -> Schedule {
    let scheduler = Scheduler::new(environment, resources);
    let running = resources.iter().filter(|one| one.status.is_running()).count();
    let mut schedule = Schedule { progress: scheduler.progress(), ..Schedule::default() };
    if !environment.is_cancelled {
        for i in 0..resources.len() {
            match scheduler.wait(i) {
                Wait::Ineligible => {}
                Wait::None if running + schedule.start.len() < limit => schedule.start.push(i),
                Wait::None => {
                    let limit = limit as u64;
                    schedule.waiting.push((i, resource::Reason::ConcurrencyLimit { limit }));
                }
                Wait::For(_, reason) => schedule.waiting.push((i, reason)),
            }
        }
        if running == 0 && schedule.start.is_empty() {
            schedule.start.extend(scheduler.break_cycle(schedule.waiting.iter().map(|(i, _)| *i)));
            schedule.waiting.retain(|(i, _)| !schedule.start.contains(i));
        }
    }
    if running == 0 && schedule.start.is_empty() {
        schedule.outcome = Some(scheduler.outcome());
    }
    let done = resources.iter().filter(|one| scheduler.is_settled(one)).count() as u64;
    let running = (running + schedule.start.len()) as u64;
    let resources = resources.len() as u64;
    schedule.reason = if scheduler.is_destroying() {
        // Destroyed resources are deleted: their number is not known here.
        Reason::DestructionProgressing { left: resources - done, running }
    } else {
        Reason::Progressing { done, resources, running }
    };
    schedule
}

/// Whether a step can start.
enum Wait {
    /// The step is not needed, already running, or failed.
    Ineligible,
    /// The step can start.
    None,
    /// The step waits for another resource.
    For(usize, resource::Reason),
}

struct Scheduler<'a> {
    environment: &'a Environment,
    resources: &'a [Resource],
    by_name: HashMap<&'a str, usize>,
    /// For each resource, a dependent that must be destroyed first.
    dependent: Vec<Option<usize>>,
    /// For each resource: must it be destroyed before another one can be replaced?
    is_early: Vec<bool>,
    /// A resource that is to be created, updated or replaced.
    pending_apply: Option<usize>,
}

impl<'a> Scheduler<'a> {
    fn new(environment: &'a Environment, resources: &'a [Resource]) -> Self {
        let by_name: HashMap<&str, usize> =
            resources.iter().enumerate().map(|(i, one)| (one.node.name.as_str(), i)).collect();
        let is_destroying = environment.status == Status::Destroying;
        let mut dependent = vec![None; resources.len()];
        let is_to_destroy = |one: &Resource| is_destroying || one.act == Act::Destroy;
        for (i, one) in resources.iter().enumerate().filter(|(_, one)| is_to_destroy(one)) {
            for before in one.needs().filter_map(|name| by_name.get(name.as_str())) {
                dependent[*before].get_or_insert(i);
            }
        }
        let pending_apply =
            resources.iter().position(|one| !matches!(one.act, Act::Destroy | Act::Nothing));
        let is_early = destroyed_before_replace(resources, &by_name);
        Self { environment, resources, by_name, dependent, is_early, pending_apply }
    }

    fn is_destroying(&self) -> bool {
        self.environment.status == Status::Destroying
    }

    fn is_settled(&self, one: &Resource) -> bool {
        use resource::Status::{Applied, Drifted};
        !self.is_destroying() && one.act == Act::Nothing && matches!(one.status, Applied | Drifted)
    }

    fn wait(&self, i: usize) -> Wait {
        let one = &self.resources[i];
        if one.status.is_running() {
            return Wait::Ineligible;
        }
        if self.is_destroying() || one.act == Act::Destroy {
            return self.wait_to_destroy(i);
        }
        if one.status != resource::Status::Pending {
            return Wait::Ineligible;
        }
        let mut before = one.node.after.iter().filter_map(|name| self.by_name.get(name.as_str()));
        if let Some(&missing) = before.find(|&&before| !self.is_settled(&self.resources[before])) {
            return Wait::For(missing, self.dependency_reason(missing));
        }
        // A replace destroys the resource first, so its dependents must be destroyed before.
        match self.dependent[i] {
            Some(dependent) if one.act == Act::Replace => self.until_destroyed(dependent),
            _ => Wait::None,
        }
    }

    fn wait_to_destroy(&self, i: usize) -> Wait {
        let one = &self.resources[i];
        if one.status == resource::Status::Failed && one.act == Act::Destroy {
            return Wait::Ineligible;
        }
        if let Some(dependent) = self.dependent[i] {
            return self.until_destroyed(dependent);
        }
        // Former dependents are updated first.
        match self.pending_apply {
            Some(other) if !self.is_destroying() && !self.is_early[i] => {
                Wait::For(other, resource::Reason::AwaitingOthers)
            }
            _ => Wait::None,
        }
    }

    fn until_destroyed(&self, dependent: usize) -> Wait {
        let one = &self.resources[dependent];
        let failed = one.status == resource::Status::Failed;
        let resource = one.node.name.clone();
        Wait::For(dependent, resource::Reason::DependentExists { resource, failed })
    }

    /// A resource to destroy out of order if the waiting ones form a cycle: partly applied changes
    /// can leave resources that depend on each other, and nothing would ever be destroyed.
    fn break_cycle(&self, waiting: impl Iterator<Item = usize>) -> Option<usize> {
        let mut round_of = vec![0; self.resources.len()];
        for (round, start) in (1..).zip(waiting) {
            let mut here = start;
            while round_of[here] == 0 {
                round_of[here] = round;
                let Wait::For(next, _) = self.wait(here) else { break };
                if round_of[next] == round {
                    return self.destroyable_on_cycle(next);
                }
                here = next;
            }
        }
        None
    }

    /// A resource to destroy on the cycle through `start`.
    fn destroyable_on_cycle(&self, start: usize) -> Option<usize> {
        let mut here = start;
        loop {
            if self.is_destroying() || self.resources[here].act == Act::Destroy {
                return Some(here);
            }
            match self.wait(here) {
                Wait::For(next, _) if next != start => here = next,
                _ => return None,
            }
        }
    }

    fn dependency_reason(&self, i: usize) -> resource::Reason {
        let Resource { node, status, .. } = &self.resources[i];
        let resource = node.name.clone();
        match status {
            resource::Status::Failed => resource::Reason::DependencyFailed { resource },
            _ => resource::Reason::DependencyPending { resource },
        }
    }

    fn progress(&self) -> i64 {
        let share = |one: &Resource| match one {
            one if self.is_settled(one) => 100,
            one if one.status.is_running() => one.progress.clamp(0, 99),
            _ => 0,
        };
        let count = i64::try_from(self.resources.len()).unwrap_or(i64::MAX);
        if count == 0 { 100 } else { self.resources.iter().map(share).sum::<i64>() / count }
    }

    /// The next status when nothing runs and nothing can start.
    fn outcome(&self) -> (Status, Reason) {
        let failed: Vec<&Resource> =
            self.resources.iter().filter(|one| one.status == resource::Status::Failed).collect();
        let left = self.resources.iter().filter(|one| !self.is_settled(one)).count() as u64;
        if self.environment.is_cancelled && left > 0 {
            return (Status::Failed, Reason::Cancelled { left: Some(left) });
        }
        if self.is_destroying() && self.resources.is_empty() {
            return (Status::Destroyed, Reason::AsExpected);
        }
        if let [first, others @ ..] = failed.as_slice() {
            let reason = Reason::ResourceFailed {
                resource: first.node.name.clone(),
                reason: Box::new(first.reason.clone()),
                others: others.len() as u64,
            };
            return (Status::Failed, reason);
        }
        if left > 0 {
            let resources = self.resources.len() as u64;
            return (Status::Failed, Reason::DependencyCycle { left, resources });
        }
        (Status::Validating, Reason::HealthChecksRunning)
    }
}

/// Marks the resources that must be destroyed before one of their dependencies can be replaced.
fn destroyed_before_replace(resources: &[Resource], by_name: &HashMap<&str, usize>) -> Vec<bool> {
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); resources.len()];
    for (i, one) in resources.iter().enumerate().filter(|(_, one)| one.act == Act::Destroy) {
        for before in one.needs().filter_map(|name| by_name.get(name.as_str())) {
            dependents[*before].push(i);
        }
    }
    let mut is_early = vec![false; resources.len()];
    let replaced = |(_, one): &(usize, &Resource)| one.act == Act::Replace;
    let mut rest: Vec<usize> = resources
        .iter()
        .enumerate()
        .filter(replaced)
        .flat_map(|(i, _)| dependents[i].clone())
        .collect();
    while let Some(i) = rest.pop() {
        if !std::mem::replace(&mut is_early[i], true) {
            rest.extend(&dependents[i]);
        }
    }
    is_early
}

#[cfg(test)]
mod tests;
