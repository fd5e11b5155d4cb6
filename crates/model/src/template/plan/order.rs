//! Orders the steps of a plan.

use super::decide::Decision;
use super::{Act, Desired, Existing, Step};
use crate::template::{Executor, graph};

/// The steps for all nodes, and for existing resources that are no longer desired.
///
/// A create or update waits for its dependencies. A destroy waits for all former dependents,
/// whether they are destroyed too or updated to do without. A replace destroys the resource
/// temporarily, so it waits for former dependents that are destroyed for good.
pub(super) fn steps(
    desired: &Desired,
    decisions: &[Decision],
    existing: &[Existing],
    destroy_reason: &str,
) -> Vec<Step> {
    let is_obsolete =
        |one: &&Existing| !one.is_destroyed() && !desired.positions.contains_key(one.name.as_str());
    let mut obsolete: Vec<&Existing> = existing.iter().filter(is_obsolete).collect();
    obsolete.sort_unstable_by_key(|one| &one.name);
    let after = edges(desired, decisions, existing, &obsolete);
    let own = desired.nodes.iter().map(|node| (&node.name, node.executor));
    let all: Vec<_> = own.chain(obsolete.iter().map(|one| (&one.name, one.executor))).collect();
    let (sorted, ranks) = ranks(&all);
    let mut is_planned = vec![false; all.len()];
    let mut steps = Vec::with_capacity(all.len());
    for i in graph::complete_order(&after) {
        let before = after[i].iter().filter(|&&other| is_planned[other]);
        let mut before: Vec<usize> = before.map(|&other| ranks[other]).collect();
        before.sort_unstable();
        before.dedup();
        let before = before.into_iter().map(|rank| all[sorted[rank]].0.clone()).collect();
        let (act, reason) = match decisions.get(i) {
            Some((act, reason)) => (*act, reason.clone()),
            None => (Act::Destroy, destroy_reason.to_owned()),
        };
        let (name, executor) = (all[i].0.clone(), all[i].1);
        steps.push(Step { name, executor, act, reason, after: before });
        is_planned[i] = true;
    }
    steps
}

/// All steps sorted by name, and the rank of each: sorting ranks is much faster than sorting names.
fn ranks(all: &[(&String, Executor)]) -> (Vec<usize>, Vec<usize>) {
    let mut sorted: Vec<usize> = (0..all.len()).collect();
    sorted.sort_unstable_by_key(|&i| all[i].0);
    let mut ranks = vec![0; all.len()];
    for (rank, &i) in sorted.iter().enumerate() {
        ranks[i] = rank;
    }
    (sorted, ranks)
}

/// The dependencies of each step; nodes come first, then obsolete resources.
fn edges(
    desired: &Desired,
    decisions: &[Decision],
    existing: &[Existing],
    obsolete: &[&Existing],
) -> Vec<Vec<usize>> {
    let count = desired.nodes.len();
    let mut after = desired.after.clone();
    after.resize(count + obsolete.len(), Vec::new());
    let is_replaced = |i: usize| decisions.get(i).is_some_and(|(act, _)| *act == Act::Replace);
    let is_obsolete = |i: usize| i >= count;
    if obsolete.is_empty() && !(0..count).any(is_replaced) {
        return after;
    }
    let dependencies = dependencies(desired, existing, obsolete);
    for &(dependency, dependent) in &dependencies {
        if is_obsolete(dependent) && (is_obsolete(dependency) || is_replaced(dependency)) {
            after[dependency].push(dependent);
        }
    }
    let is_early = destroyed_before_replace(&after, count);
    for &(dependency, dependent) in &dependencies {
        // A resource that must be destroyed before a replace can't wait for steps after that
        // replace.
        if is_obsolete(dependency) && !is_obsolete(dependent) && !is_early[dependency] {
            after[dependency].push(dependent);
        }
    }
    after
}

/// The dependencies among existing resources, as (dependency, dependent).
fn dependencies(
    desired: &Desired,
    existing: &[Existing],
    obsolete: &[&Existing],
) -> Vec<(usize, usize)> {
    let count = desired.nodes.len();
    let mut positions = desired.positions.clone();
    positions.extend(obsolete.iter().enumerate().map(|(i, one)| (one.name.as_str(), count + i)));
    let position = |name: &String| positions.get(name.as_str()).copied();
    let current = existing.iter().filter(|one| !one.is_destroyed());
    current
        .filter_map(|one| Some((position(&one.name)?, &one.after)))
        .flat_map(|(dependent, after)| {
            after.iter().filter_map(position).map(move |dependency| (dependency, dependent))
        })
        .collect()
}

/// Marks the resources that are destroyed before a replace.
fn destroyed_before_replace(after: &[Vec<usize>], nodes: usize) -> Vec<bool> {
    let mut is_early = vec![false; after.len()];
    let mut rest: Vec<usize> = after[..nodes].iter().flatten().copied().collect();
    rest.retain(|&other| other >= nodes);
    while let Some(i) = rest.pop() {
        if !std::mem::replace(&mut is_early[i], true) {
            rest.extend(after[i].iter().copied());
        }
    }
    is_early
}
