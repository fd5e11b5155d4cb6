//! Plans: the steps that turn existing resources into the desired state.

mod compare;
mod decide;
mod order;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fingerprint::Fingerprint;
use super::{Context, Executor, Node};
use crate::resource::Status;
use crate::text_enum::text_enum;

pub use decide::forces_replacement;

/// What a step does to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// Create it.
    Create,
    /// Update it in place.
    Update,
    /// Destroy and recreate it.
    Replace,
    /// Destroy it.
    Destroy,
    /// No change.
    Nothing,
}

text_enum!(Act {
    Create => "create",
    Update => "update",
    Replace => "replace",
    Destroy => "destroy",
    Nothing => "nothing",
});

/// An existing resource, possibly only partly applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Existing {
    /// The name.
    pub name: String,
    /// The executor.
    pub executor: Executor,
    /// The status.
    pub status: Status,
    /// The [`super::Node::print`] of the last applied state; none if no apply ever finished.
    pub print: Option<String>,
    /// The last applied configuration, without expressions.
    pub applied: Option<Map<String, Value>>,
    /// The outputs.
    pub outputs: Map<String, Value>,
    /// The resources it depends on.
    pub after: Vec<String>,
    /// The unfinished step; nothing if all steps finished.
    pub act: Act,
    /// Has that step started?
    pub is_begun: bool,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The resource.
    pub name: String,
    /// The executor.
    pub executor: Executor,
    /// What the step does.
    pub act: Act,
    /// Why, for people.
    pub reason: String,
    /// The resources whose steps must finish first.
    pub after: Vec<String>,
}

/// A plan: steps in an executable order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// One step for every existing or desired resource, including unchanged ones.
    pub steps: Vec<Step>,
    /// Identifies the plan: differs whenever the existing or the desired state differs.
    pub hash: String,
}

impl Existing {
    /// Is it completely destroyed?
    fn is_destroyed(&self) -> bool {
        self.status == Status::Destroyed
    }
}

/// Plans the steps from the existing resources to the desired `nodes`. `context` has the outputs of
/// existing resources. Deterministic.
pub fn plan(nodes: &[Node], context: &Context, existing: &[Existing]) -> Plan {
    let by_name: HashMap<&str, &Existing> = existing
        .iter()
        .filter(|one| !one.is_destroyed())
        .map(|one| (one.name.as_str(), one))
        .collect();
    let desired = Desired::new(nodes);
    let decisions = decide::all(&desired, context, &by_name);
    let steps = order::steps(&desired, &decisions, existing, "no longer in any template");
    with_hash(steps, nodes, existing)
}

/// Plans the destruction of all resources: dependents first.
pub fn plan_destruction(existing: &[Existing]) -> Plan {
    let reason = "the environment is being destroyed";
    with_hash(order::steps(&Desired::new(&[]), &[], existing, reason), &[], existing)
}

/// The desired nodes with resolved dependencies.
struct Desired<'a> {
    nodes: &'a [Node],
    positions: HashMap<&'a str, usize>,
    /// The positions of each node's dependencies.
    after: Vec<Vec<usize>>,
}

impl<'a> Desired<'a> {
    fn new(nodes: &'a [Node]) -> Self {
        let positions: HashMap<&str, usize> =
            nodes.iter().enumerate().map(|(i, node)| (node.name.as_str(), i)).collect();
        let position = |name: &String| positions.get(name.as_str()).copied();
        let mut after: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
        for (i, node) in nodes.iter().enumerate() {
            // Neighbours often share dependencies: instances of a counted resource, dependents of a
            // group.
            let same = i.checked_sub(1).filter(|&last| nodes[last].after == node.after);
            after.push(match same {
                Some(last) => after[last].clone(),
                None => node.after.iter().filter_map(position).collect(),
            });
        }
        Self { nodes, positions, after }
    }
}

/// Adds the hash of the steps, of the desired and of the existing state: the steps may be the same
/// when the configuration differs.
fn with_hash(steps: Vec<Step>, nodes: &[Node], existing: &[Existing]) -> Plan {
    let mut fingerprint = Fingerprint::default();
    fingerprint.number(steps.len());
    let mut sorted: Vec<&Step> = steps.iter().collect();
    sorted.sort_unstable_by_key(|step| &step.name);
    for step in sorted {
        fingerprint.text(&step.name).text(step.executor.as_str()).text(step.act.as_str());
        fingerprint.text(&step.reason).number(step.after.len());
        for other in &step.after {
            fingerprint.text(other);
        }
    }
    let mut desired: Vec<&Node> = nodes.iter().collect();
    desired.sort_unstable_by_key(|node| &node.name);
    fingerprint.number(desired.len());
    for node in desired {
        fingerprint.text(&node.name).text(&node.print).text(&node.template).text(&node.description);
        fingerprint.text(node.health.as_deref().unwrap_or("")).number(node.tags.len());
        for (key, value) in &node.tags {
            fingerprint.text(key).text(value);
        }
    }
    let mut existing: Vec<&Existing> = existing.iter().filter(|one| !one.is_destroyed()).collect();
    existing.sort_unstable_by_key(|one| &one.name);
    fingerprint.number(existing.len());
    for one in existing {
        fingerprint.text(&one.name).text(one.executor.as_str()).text(one.status.as_str());
        fingerprint.text(one.act.as_str()).number(usize::from(one.is_begun));
        fingerprint.text(one.print.as_deref().unwrap_or(""));
        fingerprint.map(one.applied.as_ref().unwrap_or(&Map::new())).map(&one.outputs);
    }
    Plan { steps, hash: fingerprint.finish() }
}
