//! Creates nodes from resolved declarations.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Resolved;
use crate::Invalid;
use crate::template::fingerprint::Fingerprint;
use crate::template::{Executor, Node, graph};

/// The maximum size of the configuration of all nodes, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// The nodes of all declarations, in dependency order.
pub(super) fn all(
    resolved: &[Resolved<'_>],
    after: &[Vec<usize>],
    parameters: &Map<String, Value>,
) -> Result<Vec<Node>, Invalid> {
    let names: Vec<Vec<String>> = resolved.iter().map(names).collect();
    unique_names(&names)?;
    limit_edges(&names, after)?;
    limit_bytes(resolved)?;
    let sorted = Sorted::new(&names);
    let mut nodes = Vec::with_capacity(names.iter().map(Vec::len).sum());
    for i in graph::order(after) {
        let before = sorted.names_of(&after[i]);
        let fingerprint = common_fingerprint(&resolved[i], parameters);
        for (index, name) in names[i].iter().enumerate() {
            nodes.push(node(&resolved[i], name, index, &before, &fingerprint));
        }
    }
    Ok(nodes)
}

/// All node names sorted, and the positions of each declaration's nodes among them: sorting numbers
/// is much faster than sorting names.
struct Sorted<'a> {
    all: Vec<&'a String>,
    positions: Vec<Vec<usize>>,
}

impl<'a> Sorted<'a> {
    fn new(names: &'a [Vec<String>]) -> Self {
        let own = names.iter().enumerate();
        let mut all: Vec<(&String, usize)> =
            own.flat_map(|(i, names)| names.iter().map(move |name| (name, i))).collect();
        all.sort_unstable();
        let mut positions = vec![Vec::new(); names.len()];
        for (position, (_, i)) in all.iter().enumerate() {
            positions[*i].push(position);
        }
        Self { all: all.into_iter().map(|(name, _)| name).collect(), positions }
    }

    /// The node names of some declarations, sorted.
    fn names_of(&self, declarations: &[usize]) -> Vec<&'a String> {
        let mut positions: Vec<usize> =
            declarations.iter().flat_map(|&i| &self.positions[i]).copied().collect();
        positions.sort_unstable();
        positions.into_iter().map(|position| self.all[position]).collect()
    }
}

fn names(one: &Resolved<'_>) -> Vec<String> {
    let name = one.declaration.name;
    match one.count {
        None => vec![name.to_owned()],
        Some(count) => (0..count).map(|i| format!("{name}-{i}")).collect(),
    }
}

fn unique_names(names: &[Vec<String>]) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    match names.iter().flatten().find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(name) => {
            let detail =
                format!("two resources expand to the name {name}; rename the one without a count");
            Err(Invalid::new("templates", detail))
        }
    }
}

fn limit_edges(names: &[Vec<String>], after: &[Vec<usize>]) -> Result<(), Invalid> {
    let before = |others: &[usize]| others.iter().map(|&other| names[other].len()).sum::<usize>();
    let edges = names.iter().zip(after).map(|(own, others)| own.len() * before(others));
    if edges.sum::<usize>() > graph::MAX_EDGES {
        return Err(Invalid::new("templates", graph::too_many_edges()));
    }
    Ok(())
}

/// The configuration of a counted resource is stored once per instance.
fn limit_bytes(resolved: &[Resolved<'_>]) -> Result<(), Invalid> {
    let tags = |tags: &BTreeMap<String, String>| tags.iter().map(|(k, v)| k.len() + v.len()).sum();
    let each = |one: &Resolved<'_>| -> usize {
        let configuration: usize =
            one.declaration.with.iter().map(|(name, value)| name.len() + size(value)).sum();
        configuration + one.declaration.description.len() + one.declaration.tags.map_or(0, tags)
    };
    let sizes =
        resolved.iter().map(|one| each(one).saturating_mul(one.count.unwrap_or(1) as usize));
    let total = sizes.fold(0, usize::saturating_add);
    if total > MAX_BYTES {
        let detail = format!(
            "the configuration of all resources exceeds {} MiB; lower counts or shorten `with`",
            MAX_BYTES >> 20
        );
        return Err(Invalid::new("templates", detail));
    }
    Ok(())
}

/// The approximate size of a value in memory.
fn size(value: &Value) -> usize {
    let inner: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.iter().map(|(name, value)| name.len() + size(value)).sum(),
        _ => 0,
    };
    inner + size_of::<Value>()
}

/// The fingerprint of what all nodes of a declaration have in common.
fn common_fingerprint(one: &Resolved<'_>, parameters: &Map<String, Value>) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    fingerprint.text(one.declaration.executor.as_str()).map(&one.declaration.with);
    for name in &one.with.parameters {
        fingerprint.text(name).value(parameters.get(name).unwrap_or(&Value::Null));
    }
    if one.declaration.executor == Executor::Terraform {
        fingerprint.text(one.source.files_print);
    }
    fingerprint
}

fn node(
    resolved: &Resolved<'_>,
    name: &str,
    index: usize,
    before: &[&String],
    fingerprint: &Fingerprint,
) -> Node {
    let index = resolved.count.and_then(|_| u32::try_from(index).ok());
    let mut fingerprint = fingerprint.clone();
    fingerprint.value(&Value::from(index));
    Node {
        name: name.to_owned(),
        of: resolved.declaration.name.to_owned(),
        index,
        template: resolved.source.template.reference(),
        executor: resolved.declaration.executor,
        is_action: resolved.declaration.is_action,
        description: resolved.declaration.description.to_owned(),
        tags: resolved.declaration.tags.cloned().unwrap_or_default(),
        with: resolved.declaration.with.clone().into_owned(),
        health: resolved.declaration.health.map(str::to_owned),
        after: before.iter().map(|&other| other.clone()).collect(),
        needs: None,
        parameters: resolved.with.parameters.clone(),
        outputs_of: resolved.with.outputs_of.clone(),
        print: fingerprint.finish(),
    }
}
