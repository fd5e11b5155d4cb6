//! Steps in an order in which they can be done.

use std::collections::{HashMap, HashSet};

use super::decide::Decision;
use super::{Act, Existing, Step};
use crate::template::{Node, graph};

/// The steps for all nodes, and for all that exists and shall not.
///
/// What is made waits for what it needs. What is destroyed waits for whatever needed it, be that
/// destroyed too or changed so that it does without. What is replaced is destroyed for a moment, so it
/// waits for what needed it and is destroyed for good.
pub(super) fn steps(
    nodes: &[Node],
    decisions: &[Decision],
    exists: &[Existing],
    why_over: &str,
) -> Vec<Step> {
    let wanted: HashSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let is_over = |one: &&Existing| !one.is_gone() && !wanted.contains(one.name.as_str());
    let mut over: Vec<&Existing> = exists.iter().filter(is_over).collect();
    over.sort_unstable_by_key(|one| &one.name);
    let places: HashMap<&str, usize> = nodes
        .iter()
        .map(|node| node.name.as_str())
        .chain(over.iter().map(|one| one.name.as_str()))
        .enumerate()
        .map(|(i, name)| (name, i))
        .collect();
    let after = edges(nodes, decisions, exists, over.len(), &places);
    let order = complete(&after);
    let names: Vec<&str> = nodes
        .iter()
        .map(|node| node.name.as_str())
        .chain(over.iter().map(|one| one.name.as_str()))
        .collect();
    let mut is_done = vec![false; names.len()];
    let mut steps = Vec::with_capacity(names.len());
    for i in order {
        let mut before: Vec<String> = after[i]
            .iter()
            .filter(|&&other| is_done[other])
            .map(|&o| names[o].to_owned())
            .collect();
        before.sort_unstable();
        before.dedup();
        let (act, reason) = match decisions.get(i) {
            Some((act, reason)) => (*act, reason.clone()),
            None => (Act::Destroy, why_over.to_owned()),
        };
        let executor =
            nodes.get(i).map_or_else(|| over[i - nodes.len()].executor, |node| node.executor);
        steps.push(Step { name: names[i].to_owned(), executor, act, reason, after: before });
        is_done[i] = true;
    }
    steps
}

/// What each step waits for; nodes come first, then what is destroyed.
fn edges(
    nodes: &[Node],
    decisions: &[Decision],
    exists: &[Existing],
    over: usize,
    places: &HashMap<&str, usize>,
) -> Vec<Vec<usize>> {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); nodes.len() + over];
    let place = |name: &String| places.get(name.as_str()).copied();
    for (i, node) in nodes.iter().enumerate() {
        after[i].extend(node.after.iter().filter_map(place).filter(|&other| other < nodes.len()));
    }
    let is_destroyed = |i: usize| i >= nodes.len();
    // What needed what, among what exists: (needed, needing).
    let needs: Vec<(usize, usize)> = exists
        .iter()
        .filter(|one| !one.is_gone())
        .filter_map(|one| Some((place(&one.name)?, &one.after)))
        .flat_map(|(needing, after)| {
            after.iter().filter_map(place).map(move |needed| (needed, needing))
        })
        .collect();
    for &(needed, needing) in &needs {
        let is_replaced = !is_destroyed(needed) && decisions[needed].0 == Act::Replace;
        if is_destroyed(needing) && (is_destroyed(needed) || is_replaced) {
            after[needed].push(needing);
        }
    }
    let early = before_replaced(&after, nodes.len());
    for &(needed, needing) in &needs {
        // What must be gone before a replaced one is made can't wait for what comes after that.
        if is_destroyed(needed) && !is_destroyed(needing) && !early[needed] {
            after[needed].push(needing);
        }
    }
    after
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

/// The order of all steps. What waits for itself can't be, and comes last if it is.
fn complete(after: &[Vec<usize>]) -> Vec<usize> {
    let mut order = graph::order(after);
    if order.len() < after.len() {
        let found: HashSet<usize> = order.iter().copied().collect();
        order.extend((0..after.len()).filter(|i| !found.contains(i)));
    }
    order
}
