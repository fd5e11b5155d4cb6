//! Steps in an order in which they can be done.

use super::decide::Decision;
use super::{Act, Existing, Step, Wanted};
use crate::template::{Executor, graph};

/// The steps for all nodes, and for all that exists and shall not.
///
/// What is made waits for what it needs. What is destroyed waits for whatever needed it, be that
/// destroyed too or changed so that it does without. What is replaced is destroyed for a moment, so it
/// waits for what needed it and is destroyed for good.
pub(super) fn steps(
    wanted: &Wanted,
    decisions: &[Decision],
    exists: &[Existing],
    why_over: &str,
) -> Vec<Step> {
    let is_over =
        |one: &&Existing| !one.is_gone() && !wanted.places.contains_key(one.name.as_str());
    let mut over: Vec<&Existing> = exists.iter().filter(is_over).collect();
    over.sort_unstable_by_key(|one| &one.name);
    let after = edges(wanted, decisions, exists, &over);
    let own = wanted.nodes.iter().map(|node| (&node.name, node.executor));
    let all: Vec<_> = own.chain(over.iter().map(|one| (&one.name, one.executor))).collect();
    let (sorted, ranks) = ranks(&all);
    let mut is_done = vec![false; all.len()];
    let mut steps = Vec::with_capacity(all.len());
    for i in graph::complete_order(&after) {
        let before = after[i].iter().filter(|&&other| is_done[other]);
        let mut before: Vec<usize> = before.map(|&other| ranks[other]).collect();
        before.sort_unstable();
        before.dedup();
        let before = before.into_iter().map(|rank| all[sorted[rank]].0.clone()).collect();
        let (act, reason) = match decisions.get(i) {
            Some((act, reason)) => (*act, reason.clone()),
            None => (Act::Destroy, why_over.to_owned()),
        };
        let (name, executor) = (all[i].0.clone(), all[i].1);
        steps.push(Step { name, executor, act, reason, after: before });
        is_done[i] = true;
    }
    steps
}

/// The places in the order of their names, and where in that order each is: numbers are sorted much
/// faster than names.
fn ranks(all: &[(&String, Executor)]) -> (Vec<usize>, Vec<usize>) {
    let mut sorted: Vec<usize> = (0..all.len()).collect();
    sorted.sort_unstable_by_key(|&i| all[i].0);
    let mut ranks = vec![0; all.len()];
    for (rank, &i) in sorted.iter().enumerate() {
        ranks[i] = rank;
    }
    (sorted, ranks)
}

/// What each step waits for; nodes come first, then what is destroyed.
fn edges(
    wanted: &Wanted,
    decisions: &[Decision],
    exists: &[Existing],
    over: &[&Existing],
) -> Vec<Vec<usize>> {
    let count = wanted.nodes.len();
    let mut after = wanted.after.clone();
    after.resize(count + over.len(), Vec::new());
    let is_replaced = |i: usize| decisions.get(i).is_some_and(|(act, _)| *act == Act::Replace);
    let is_destroyed = |i: usize| i >= count;
    if over.is_empty() && !(0..count).any(is_replaced) {
        return after;
    }
    let needs = needs(wanted, exists, over);
    for &(needed, needing) in &needs {
        if is_destroyed(needing) && (is_destroyed(needed) || is_replaced(needed)) {
            after[needed].push(needing);
        }
    }
    let early = before_replaced(&after, count);
    for &(needed, needing) in &needs {
        // What must be gone before a replaced one is made can't wait for what comes after that.
        if is_destroyed(needed) && !is_destroyed(needing) && !early[needed] {
            after[needed].push(needing);
        }
    }
    after
}

/// What needed what, among what exists: (needed, needing).
fn needs(wanted: &Wanted, exists: &[Existing], over: &[&Existing]) -> Vec<(usize, usize)> {
    let count = wanted.nodes.len();
    let mut places = wanted.places.clone();
    places.extend(over.iter().enumerate().map(|(i, one)| (one.name.as_str(), count + i)));
    let place = |name: &String| places.get(name.as_str()).copied();
    let there = exists.iter().filter(|one| !one.is_gone());
    there
        .filter_map(|one| Some((place(&one.name)?, &one.after)))
        .flat_map(|(needing, after)| {
            after.iter().filter_map(place).map(move |needed| (needed, needing))
        })
        .collect()
}

/// What is destroyed before something that is replaced.
fn before_replaced(after: &[Vec<usize>], nodes: usize) -> Vec<bool> {
    let mut early = vec![false; after.len()];
    let mut rest: Vec<usize> = after[..nodes].iter().flatten().copied().collect();
    rest.retain(|&other| other >= nodes);
    while let Some(i) = rest.pop() {
        if !std::mem::replace(&mut early[i], true) {
            rest.extend(after[i].iter().copied());
        }
    }
    early
}
