//! Decides what to do with each node, and why.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::compare::{Comparer, Comparison};
use super::{Act, Desired, Existing};
use crate::resource::Status;
use crate::template::{Context, Executor, Node, graph};

/// What to do with a node, and why.
pub(super) type Decision = (Act, String);

const NOT_CREATED: &str = "does not exist yet";

/// Decides on every node, in the order of the nodes.
pub(super) fn all(
    desired: &Desired,
    context: &Context,
    existing: &HashMap<&str, &Existing>,
) -> Vec<Decision> {
    let comparer = Comparer::new(desired, context);
    let mut changing: HashSet<&str> = HashSet::new();
    let mut decisions: Vec<Decision> = vec![(Act::Nothing, String::new()); desired.nodes.len()];
    for i in in_order(desired) {
        let node = &desired.nodes[i];
        decisions[i] = match existing.get(node.name.as_str()) {
            None => (Act::Create, NOT_CREATED.to_owned()),
            Some(existing) => decide(node, existing, &comparer, &changing),
        };
        if decisions[i].0 != Act::Nothing {
            changing.insert(&node.of);
        }
    }
    decisions
}

/// The positions of nodes in dependency order.
fn in_order(desired: &Desired) -> Vec<usize> {
    let is_sorted = |(i, after): (usize, &Vec<usize>)| after.iter().all(|&other| other < i);
    if desired.after.iter().enumerate().all(is_sorted) {
        return (0..desired.nodes.len()).collect();
    }
    graph::complete_order(&desired.after)
}

fn decide(
    node: &Node,
    existing: &Existing,
    comparer: &Comparer,
    changing: &HashSet<&str>,
) -> Decision {
    if existing.executor != node.executor {
        let reason = format!("executor changes from {} to {}", existing.executor, node.executor);
        return (Act::Replace, reason);
    }
    let Some(print) = &existing.print else {
        return (Act::Create, never_created(existing.status).to_owned());
    };
    if is_partly_destroyed(existing) {
        return (Act::Replace, "a previous destroy did not finish".to_owned());
    }
    let has_same_print = *print == node.print;
    let comparison = comparer.compare(node, existing, changing);
    changed(node.executor, &comparison)
        .or_else(|| unfinished(existing.status))
        .or_else(|| unknown_until_apply(node.executor, has_same_print, &comparison))
        .unwrap_or_else(|| (Act::Nothing, unchanged(existing.status, has_same_print).to_owned()))
}

/// May parts of it be destroyed already?
fn is_partly_destroyed(existing: &Existing) -> bool {
    let is_destructive = matches!(existing.act, Act::Replace | Act::Destroy);
    // Only marked for destruction because its environment was: nothing is destroyed yet.
    let is_intact = matches!(existing.status, Status::Applied | Status::Drifted);
    existing.status == Status::Destroying || is_destructive && existing.is_begun && !is_intact
}

fn never_created(status: Status) -> &'static str {
    match status {
        Status::Failed => "the last create failed; retrying",
        Status::Pending => NOT_CREATED,
        _ => "the last create did not finish",
    }
}

fn changed(executor: Executor, comparison: &Comparison) -> Option<Decision> {
    let fixed: Vec<&str> = comparison
        .changed_fields
        .iter()
        .map(String::as_str)
        .filter(|field| !can_update_in_place(executor, field))
        .collect();
    let all: Vec<&str> = comparison.changed_fields.iter().map(String::as_str).collect();
    match (&fixed[..], &all[..]) {
        (_, []) => None,
        ([], all) => Some((Act::Update, fields_changed(all))),
        (fixed, _) => {
            Some((Act::Replace, format!("{}; forces replacement", fields_changed(fixed))))
        }
    }
}

fn fields_changed(fields: &[&str]) -> String {
    match fields {
        [one] => format!("{one} changed"),
        [first @ .., last] => format!("{} and {last} changed", first.join(", ")),
        [] => String::new(),
    }
}

/// Does changing the configuration from `before` to `now` force a replacement?
pub fn forces_replacement(
    executor: Executor,
    before: &Map<String, Value>,
    now: &Map<String, Value>,
) -> bool {
    let differs = |field: &&String| before.get(*field) != now.get(*field);
    before
        .keys()
        .chain(now.keys())
        .filter(differs)
        .any(|field| !can_update_in_place(executor, field))
}

/// Can the executor update this field in place?
pub(super) fn can_update_in_place(executor: Executor, field: &str) -> bool {
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
        Status::Failed => "the last step failed; retrying",
        Status::Planning | Status::Applying => "the last step did not finish",
        Status::Pending => "the last step did not start",
        _ => return None,
    };
    Some((Act::Update, reason.to_owned()))
}

fn unknown_until_apply(
    executor: Executor,
    has_same_print: bool,
    comparison: &Comparison,
) -> Option<Decision> {
    if !comparison.may_change.is_empty() {
        let names: Vec<&str> = comparison.may_change.iter().map(String::as_str).collect();
        let effect = if comparison.may_replace { " and force replacement" } else { "" };
        let reason = format!("outputs of {} may change{effect}", names.join(", "));
        return Some((Act::Update, reason));
    }
    if let Some(unknown) = comparison.unknown.first() {
        return Some((Act::Update, format!("configuration is not known yet: {unknown}")));
    }
    // The content of a module's files is not part of the applied configuration.
    let is_module = executor == Executor::Terraform && !has_same_print;
    is_module.then(|| (Act::Update, "template files changed".to_owned()))
}

fn unchanged(status: Status, has_same_print: bool) -> &'static str {
    match (status, has_same_print) {
        (Status::Drifted, _) => "drifted; request a repair to restore the applied state",
        (_, true) => "up to date",
        (_, false) => "expressions evaluate to the applied values",
    }
}
