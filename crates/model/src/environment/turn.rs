//! What happens next in an environment: which steps begin, what waits for what, and when it is over.

use std::collections::HashMap;

use super::{Environment, Reason, Status};
use crate::resource::{self, Resource};
use crate::template::Act;

/// What happens next.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Resources whose step begins, as numbers in the list.
    pub begin: Vec<usize>,
    /// Resources that wait, and for what.
    pub waits: Vec<(usize, resource::Reason)>,
    /// Where the environment goes, and why.
    pub outcome: Option<(Status, Reason)>,
    /// How much is as it should be, in percent.
    pub progress: i64,
    /// What is being done.
    pub reason: Reason,
}

/// What happens next in an environment whose resources are made, changed or destroyed; so many steps
/// run at once.
pub fn turn(environment: &Environment, all: &[Resource], at_once: usize) -> Turn {
    let seen = Seen::new(environment, all);
    let running = all.iter().filter(|one| one.status.is_running()).count();
    let mut turn = Turn { progress: seen.progress(), ..Turn::default() };
    if !environment.is_cancelled {
        for i in 0..all.len() {
            match seen.wait(i) {
                Wait::Over => {}
                Wait::None if running + turn.begin.len() < at_once => turn.begin.push(i),
                Wait::None => {
                    let limit = at_once as u64;
                    turn.waits.push((i, resource::Reason::ConcurrencyLimit { limit }));
                }
                Wait::For(_, reason) => turn.waits.push((i, reason)),
            }
        }
        if running == 0 && turn.begin.is_empty() {
            turn.begin.extend(seen.way_out(turn.waits.iter().map(|(i, _)| *i)));
            turn.waits.retain(|(i, _)| !turn.begin.contains(i));
        }
    }
    if running == 0 && turn.begin.is_empty() {
        turn.outcome = Some(seen.outcome());
    }
    turn.reason = Reason::Progressing {
        done: all.iter().filter(|one| seen.is_settled(one)).count() as u64,
        resources: all.len() as u64,
        running: (running + turn.begin.len()) as u64,
    };
    turn
}

/// Why a step does not begin.
enum Wait {
    /// There is nothing to do, or it is being done, or it failed.
    Over,
    /// It can begin.
    None,
    /// It waits for another one.
    For(usize, resource::Reason),
}

struct Seen<'a> {
    environment: &'a Environment,
    all: &'a [Resource],
    by_name: HashMap<&'a str, usize>,
    /// One that is still there and has to go before each, because it needs it.
    user: Vec<Option<usize>>,
    /// Must each be gone before something else can be replaced?
    is_early: Vec<bool>,
    /// One that is to be made or changed.
    making: Option<usize>,
}

impl<'a> Seen<'a> {
    fn new(environment: &'a Environment, all: &'a [Resource]) -> Self {
        let by_name: HashMap<&str, usize> =
            all.iter().enumerate().map(|(i, one)| (one.node.name.as_str(), i)).collect();
        let is_leaving = environment.status == Status::Destroying;
        let mut user = vec![None; all.len()];
        let leaves = |one: &Resource| is_leaving || one.act == Act::Destroy;
        for (i, one) in all.iter().enumerate().filter(|(_, one)| leaves(one)) {
            for before in one.needs().filter_map(|name| by_name.get(name.as_str())) {
                user[*before].get_or_insert(i);
            }
        }
        let making = all.iter().position(|one| !matches!(one.act, Act::Destroy | Act::Nothing));
        let is_early = early(all, &by_name);
        Self { environment, all, by_name, user, is_early, making }
    }

    fn is_leaving(&self) -> bool {
        self.environment.status == Status::Destroying
    }

    fn is_settled(&self, one: &Resource) -> bool {
        use resource::Status::{Applied, Drifted};
        !self.is_leaving() && one.act == Act::Nothing && matches!(one.status, Applied | Drifted)
    }

    fn wait(&self, i: usize) -> Wait {
        let one = &self.all[i];
        if one.status.is_running() {
            return Wait::Over;
        }
        if self.is_leaving() || one.act == Act::Destroy {
            return self.wait_to_go(i);
        }
        if one.status != resource::Status::Pending {
            return Wait::Over;
        }
        let mut before = one.node.after.iter().filter_map(|name| self.by_name.get(name.as_str()));
        if let Some(&missing) = before.find(|&&before| !self.is_settled(&self.all[before])) {
            return Wait::For(missing, self.waits_for(missing));
        }
        // It is destroyed for a moment, so it is like one that goes.
        match self.user[i] {
            Some(user) if one.act == Act::Replace => self.until_gone(user),
            _ => Wait::None,
        }
    }

    fn wait_to_go(&self, i: usize) -> Wait {
        let one = &self.all[i];
        if one.status == resource::Status::Failed && one.act == Act::Destroy {
            return Wait::Over;
        }
        if let Some(user) = self.user[i] {
            return self.until_gone(user);
        }
        // Who used it is changed first.
        match self.making {
            Some(other) if !self.is_leaving() && !self.is_early[i] => {
                Wait::For(other, resource::Reason::AwaitingOthers)
            }
            _ => Wait::None,
        }
    }

    fn until_gone(&self, user: usize) -> Wait {
        let one = &self.all[user];
        let failed = one.status == resource::Status::Failed;
        let resource = one.node.name.clone();
        Wait::For(user, resource::Reason::DependentExists { resource, failed })
    }

    /// One that goes all the same, if those that wait do so for each other: what was half changed may
    /// need what needs it by now, and nothing would ever go.
    fn way_out(&self, waiting: impl Iterator<Item = usize>) -> Option<usize> {
        let mut round_of = vec![0; self.all.len()];
        for (round, start) in (1..).zip(waiting) {
            let mut here = start;
            while round_of[here] == 0 {
                round_of[here] = round;
                let Wait::For(next, _) = self.wait(here) else { break };
                if round_of[next] == round {
                    return self.leaving_on_the_way(next);
                }
                here = next;
            }
        }
        None
    }

    /// One that goes, on the way from `start` back to it.
    fn leaving_on_the_way(&self, start: usize) -> Option<usize> {
        let mut here = start;
        loop {
            if self.is_leaving() || self.all[here].act == Act::Destroy {
                return Some(here);
            }
            match self.wait(here) {
                Wait::For(next, _) if next != start => here = next,
                _ => return None,
            }
        }
    }

    fn waits_for(&self, i: usize) -> resource::Reason {
        let Resource { node, status, .. } = &self.all[i];
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
        let count = i64::try_from(self.all.len()).unwrap_or(i64::MAX);
        if count == 0 { 100 } else { self.all.iter().map(share).sum::<i64>() / count }
    }

    /// Where it goes when nothing goes on and nothing can begin.
    fn outcome(&self) -> (Status, Reason) {
        let failed: Vec<&Resource> =
            self.all.iter().filter(|one| one.status == resource::Status::Failed).collect();
        let left = self.all.iter().filter(|one| !self.is_settled(one)).count() as u64;
        if self.environment.is_cancelled && left > 0 {
            return (Status::Failed, Reason::Cancelled { left: Some(left) });
        }
        if self.is_leaving() && self.all.is_empty() {
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
            let resources = self.all.len() as u64;
            return (Status::Failed, Reason::DependencyCycle { left, resources });
        }
        (Status::Validating, Reason::HealthChecksRunning)
    }
}

/// What has to go before something that it needs can be replaced.
fn early(all: &[Resource], by_name: &HashMap<&str, usize>) -> Vec<bool> {
    let mut needing: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    for (i, one) in all.iter().enumerate().filter(|(_, one)| one.act == Act::Destroy) {
        for before in one.needs().filter_map(|name| by_name.get(name.as_str())) {
            needing[*before].push(i);
        }
    }
    let mut is_early = vec![false; all.len()];
    let replaced = |(_, one): &(usize, &Resource)| one.act == Act::Replace;
    let mut rest: Vec<usize> =
        all.iter().enumerate().filter(replaced).flat_map(|(i, _)| needing[i].clone()).collect();
    while let Some(i) = rest.pop() {
        if !std::mem::replace(&mut is_early[i], true) {
            rest.extend(&needing[i]);
        }
    }
    is_early
}

#[cfg(test)]
mod tests;
