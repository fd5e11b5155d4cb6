//! Nodes, made from things whose order and number are known.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Placed;
use crate::Invalid;
use crate::template::print::Print;
use crate::template::{Executor, Node, graph};

/// The most that the executors of all nodes are told, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// The nodes of all things, each after those that must be there first.
pub(super) fn all(
    placed: &[Placed<'_>],
    after: &[Vec<usize>],
    parameters: &Map<String, Value>,
) -> Result<Vec<Node>, Invalid> {
    let names: Vec<Vec<String>> = placed.iter().map(names).collect();
    distinct(&names)?;
    few_edges(&names, after)?;
    few_bytes(placed)?;
    let sorted = Sorted::new(&names);
    let mut nodes = Vec::with_capacity(names.iter().map(Vec::len).sum());
    for i in graph::order(after) {
        let before = sorted.of(&after[i]);
        let print = common_print(&placed[i], parameters);
        for (index, name) in names[i].iter().enumerate() {
            nodes.push(one(&placed[i], name, index, &before, &print));
        }
    }
    Ok(nodes)
}

/// All names in order, and where those of each thing are among them: numbers are sorted much faster
/// than names.
struct Sorted<'a> {
    all: Vec<&'a String>,
    places: Vec<Vec<usize>>,
}

impl<'a> Sorted<'a> {
    fn new(names: &'a [Vec<String>]) -> Self {
        let own = names.iter().enumerate();
        let mut all: Vec<(&String, usize)> =
            own.flat_map(|(i, names)| names.iter().map(move |name| (name, i))).collect();
        all.sort_unstable();
        let mut places = vec![Vec::new(); names.len()];
        for (place, (_, i)) in all.iter().enumerate() {
            places[*i].push(place);
        }
        Self { all: all.into_iter().map(|(name, _)| name).collect(), places }
    }

    /// The names of some things, in order.
    fn of(&self, things: &[usize]) -> Vec<&'a String> {
        let mut places: Vec<usize> =
            things.iter().flat_map(|&i| &self.places[i]).copied().collect();
        places.sort_unstable();
        places.into_iter().map(|place| self.all[place]).collect()
    }
}

fn names(one: &Placed<'_>) -> Vec<String> {
    let name = one.thing.name;
    match one.count {
        None => vec![name.to_owned()],
        Some(count) => (0..count).map(|i| format!("{name}-{i}")).collect(),
    }
}

fn distinct(names: &[Vec<String>]) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    match names.iter().flatten().find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(name) => {
            let detail = format!("two resources come to the name {name}; one of them is counted");
            Err(Invalid::new("templates", detail))
        }
    }
}

fn few_edges(names: &[Vec<String>], after: &[Vec<usize>]) -> Result<(), Invalid> {
    let before = |others: &[usize]| others.iter().map(|&other| names[other].len()).sum::<usize>();
    let edges = names.iter().zip(after).map(|(own, others)| own.len() * before(others));
    if edges.sum::<usize>() > graph::MAX_EDGES {
        return Err(Invalid::new("templates", graph::too_many()));
    }
    Ok(())
}

/// What is said once is kept for every one of several.
fn few_bytes(placed: &[Placed<'_>]) -> Result<(), Invalid> {
    let tags = |tags: &BTreeMap<String, String>| tags.iter().map(|(k, v)| k.len() + v.len()).sum();
    let each = |one: &Placed<'_>| -> usize {
        let told: usize = one.thing.with.iter().map(|(name, value)| name.len() + size(value)).sum();
        told + one.thing.description.len() + one.thing.tags.map_or(0, tags)
    };
    let sizes = placed.iter().map(|one| each(one).saturating_mul(one.count.unwrap_or(1) as usize));
    let total = sizes.fold(0, usize::saturating_add);
    if total > MAX_BYTES {
        let detail = format!(
            "what their executors are told comes to more than {} MiB; count fewer, or tell them less",
            MAX_BYTES >> 20
        );
        return Err(Invalid::new("templates", detail));
    }
    Ok(())
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    let inner: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.iter().map(|(name, value)| name.len() + size(value)).sum(),
        _ => 0,
    };
    inner + size_of::<Value>()
}

/// The print of what all nodes of one thing have in common.
fn common_print(one: &Placed<'_>, parameters: &Map<String, Value>) -> Print {
    let mut print = Print::default();
    print.text(one.thing.executor.as_str()).map(&one.thing.with);
    for name in &one.with.parameters {
        print.text(name).value(parameters.get(name).unwrap_or(&Value::Null));
    }
    if one.thing.executor == Executor::Terraform {
        print.text(one.source.files_print);
    }
    print
}

fn one(placed: &Placed<'_>, name: &str, index: usize, before: &[&String], print: &Print) -> Node {
    let index = placed.count.and_then(|_| u32::try_from(index).ok());
    let mut print = print.clone();
    print.value(&Value::from(index));
    Node {
        name: name.to_owned(),
        of: placed.thing.name.to_owned(),
        index,
        template: placed.source.template.reference(),
        executor: placed.thing.executor,
        is_action: placed.thing.is_action,
        description: placed.thing.description.to_owned(),
        tags: placed.thing.tags.cloned().unwrap_or_default(),
        with: placed.thing.with.clone().into_owned(),
        health: placed.thing.health.map(str::to_owned),
        after: before.iter().map(|&other| other.clone()).collect(),
        needs: None,
        parameters: placed.with.parameters.clone(),
        outputs_of: placed.with.outputs_of.clone(),
        print: print.done(),
    }
}
