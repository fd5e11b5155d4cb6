//! What is done to each node, and why.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::compare::{Compared, Comparison};
use super::{Act, Existing, Wanted};
use crate::resource::Status;
use crate::template::{Context, Executor, Node, graph};

/// What is done to a node, and why.
pub(super) type Decision = (Act, String);

/// Decides on every node, in the order of the nodes.
pub(super) fn all(
    wanted: &Wanted,
    context: &Context,
    there: &HashMap<&str, &Existing>,
) -> Vec<Decision> {
    let compared = Compared::new(wanted, context);
    let mut changing: HashSet<&str> = HashSet::new();
    let mut decisions: Vec<Decision> = vec![(Act::Nothing, String::new()); wanted.nodes.len()];
    for i in in_order(wanted) {
        let node = &wanted.nodes[i];
        decisions[i] = match there.get(node.name.as_str()) {
            None => (Act::Create, "it is not there yet".to_owned()),
            Some(existing) => one(node, existing, &compared, &changing),
        };
        if decisions[i].0 != Act::Nothing {
            changing.insert(&node.of);
        }
    }
    decisions
}

/// The places of nodes, each after those whose outputs it may use.
fn in_order(wanted: &Wanted) -> Vec<usize> {
    let is_sorted = |(i, after): (usize, &Vec<usize>)| after.iter().all(|&other| other < i);
    if wanted.after.iter().enumerate().all(is_sorted) {
        return (0..wanted.nodes.len()).collect();
    }
    graph::complete_order(&wanted.after)
}

fn one(
    node: &Node,
    existing: &Existing,
    compared: &Compared,
    changing: &HashSet<&str>,
) -> Decision {
    if existing.executor != node.executor {
        let reason = format!("its executor was {} and is {}", existing.executor, node.executor);
        return (Act::Replace, reason);
    }
    let Some(print) = &existing.print else {
        return (Act::Create, never_made(existing.status).to_owned());
    };
    if is_half_gone(existing) {
        return (Act::Replace, "its destruction began and did not come to its end".to_owned());
    }
    let has_same_print = *print == node.print;
    let comparison = compared.compare(node, existing, changing);
    changed(node.executor, &comparison)
        .or_else(|| unfinished(existing.status))
        .or_else(|| unsure(node.executor, has_same_print, &comparison))
        .unwrap_or_else(|| (Act::Nothing, unchanged(existing.status, has_same_print).to_owned()))
}

/// May some of it be destroyed already?
fn is_half_gone(existing: &Existing) -> bool {
    let is_destructive = matches!(existing.act, Act::Replace | Act::Destroy);
    // What only shall go, because its environment did, is whole.
    let is_whole = matches!(existing.status, Status::Applied | Status::Drifted);
    existing.status == Status::Destroying || is_destructive && existing.is_begun && !is_whole
}

fn never_made(status: Status) -> &'static str {
    match status {
        Status::Failed => "its last step failed, and it is made again",
        Status::Pending => "it is not there yet",
        _ => "it was never made to its end",
    }
}

fn changed(executor: Executor, comparison: &Comparison) -> Option<Decision> {
    let fixed: Vec<&str> = comparison
        .differ
        .iter()
        .map(String::as_str)
        .filter(|field| !is_changed_in_place(executor, field))
        .collect();
    let all: Vec<&str> = comparison.differ.iter().map(String::as_str).collect();
    match (&fixed[..], &all[..]) {
        (_, []) => None,
        ([], all) => Some((Act::Update, differ(all))),
        (fixed, _) => {
            Some((Act::Replace, format!("{}; that can't be changed in place", differ(fixed))))
        }
    }
}

fn differ(fields: &[&str]) -> String {
    match fields {
        [one] => format!("{one} differs"),
        [first @ .., last] => format!("{} and {last} differ", first.join(", ")),
        [] => String::new(),
    }
}

/// Must what was made when the executor was told `before` be replaced, for it to be told `now`?
pub fn is_replaced(
    executor: Executor,
    before: &Map<String, Value>,
    now: &Map<String, Value>,
) -> bool {
    let differs = |field: &&String| before.get(*field) != now.get(*field);
    before
        .keys()
        .chain(now.keys())
        .filter(differs)
        .any(|field| !is_changed_in_place(executor, field))
}

/// Can the executor change a field of what is there?
pub(super) fn is_changed_in_place(executor: Executor, field: &str) -> bool {
    match executor {
        Executor::Terraform | Executor::Command => true,
        Executor::ConsulKv => !matches!(field, "prefix" | "datacenter"),
        Executor::VaultSecret => !matches!(field, "path" | "mount"),
        Executor::Service => false,
        Executor::Deployment => field == "replicas",
    }
}

fn unfinished(status: Status) -> Option<Decision> {
    let reason = match status {
        Status::Failed => "its last step failed, and is tried again",
        Status::Planning | Status::Applying => "its last step did not come to its end",
        Status::Pending => "its last step did not begin",
        _ => return None,
    };
    Some((Act::Update, reason.to_owned()))
}

fn unsure(executor: Executor, has_same_print: bool, comparison: &Comparison) -> Option<Decision> {
    if !comparison.may_change.is_empty() {
        let given: Vec<&str> = comparison.may_change.iter().map(String::as_str).collect();
        let then = if comparison.may_replace { "; if it does, this is replaced" } else { "" };
        let reason = format!("what {} gives may change{then}", given.join(", "));
        return Some((Act::Update, reason));
    }
    if let Some(unknown) = comparison.unknown.first() {
        return Some((Act::Update, format!("what it is told is not known yet: {unknown}")));
    }
    // What a module's files say is not in what the executor was told.
    let is_module = executor == Executor::Terraform && !has_same_print;
    is_module.then(|| (Act::Update, "the files of its template differ".to_owned()))
}

fn unchanged(status: Status, has_same_print: bool) -> &'static str {
    match (status, has_same_print) {
        (Status::Drifted, _) => "it is not as it was made; ask for its repair to have it mended",
        (_, true) => "it is as it should be",
        (_, false) => "its expressions give the same as before",
    }
}
