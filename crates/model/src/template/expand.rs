//! From templates and parameters to the nodes of an environment.

mod node;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use serde_json::{Map, Value};

use super::expression::{self, Scope};
use super::known::{Known, Uses, identifier, numbered, some};
use super::thing::{self, Thing};
use super::{Node, Template, graph, parameter};
use crate::Invalid;

/// The most that one resource may be counted.
const MAX_COUNT: u32 = 1000;
/// The most nodes that an environment may have.
const MAX_NODES: usize = 20_000;

/// A template of an environment.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The template.
    pub template: &'a Template,
    /// Changes exactly when the files do that were published with it; empty if there are none.
    pub files_print: &'a str,
}

/// What templates and parameters come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    /// The nodes, each after those that must be there first.
    pub nodes: Vec<Node>,
    /// All parameters, with defaults.
    pub parameters: Map<String, Value>,
    /// Where users of the environment begin, with expressions.
    pub entry_points: Vec<String>,
}

/// A thing of one of the templates.
struct Placed<'a> {
    source: &'a Source<'a>,
    thing: Thing<'a>,
    with: Uses,
    health: Uses,
    /// How many there are; none if it is one and has no number.
    count: Option<u32>,
}

/// Makes the nodes of an environment from its templates and what was set. The same comes out whenever
/// the same goes in.
pub fn expand(sources: &[Source<'_>], given: &Map<String, Value>) -> Result<Expanded, Invalid> {
    once_each(sources)?;
    let parameters = parameter::parameters(sources, given)?;
    let placed = place(sources, &parameters)?;
    let by_name = by_name(&placed)?;
    one_meaning(&placed, &parameters)?;
    met_needs(sources, &by_name)?;
    let after = after(sources, &placed, &by_name)?;
    if let Some(cycle) = graph::cycle(&after) {
        let words = graph::cycle_words(&cycle, |i| placed[i].thing.name);
        return Err(Invalid::new("templates", format!("they wait for each other: {words}")));
    }
    Ok(Expanded {
        nodes: node::all(&placed, &after, &parameters)?,
        parameters,
        entry_points: sources.iter().flat_map(|one| one.template.entry_points.clone()).collect(),
    })
}

fn once_each(sources: &[Source<'_>]) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for (i, source) in sources.iter().enumerate() {
        if !seen.insert(&source.template.name) {
            let detail = format!("{} is there twice", source.template.name);
            return Err(Invalid::new(format!("templates[{i}]"), detail));
        }
    }
    Ok(())
}

fn place<'a>(
    sources: &'a [Source<'a>],
    parameters: &Map<String, Value>,
) -> Result<Vec<Placed<'a>>, Invalid> {
    let mut placed = Vec::new();
    let known: Scope = parameters
        .iter()
        .map(|(name, value)| (name.clone(), minijinja::Value::from_serialize(value)))
        .collect();
    for source in sources {
        let names = Known::of(source.template);
        for thing in thing::all(source.template)? {
            let (with, health) = uses(&names, &thing)?;
            let count = thing.count.map(|count| count_with(thing.name, count, &known));
            placed.push(Placed { source, with, health, count: count.transpose()?, thing });
        }
    }
    let total: usize = placed.iter().map(|one| one.count.unwrap_or(1) as usize).sum();
    if total > MAX_NODES {
        let detail = format!("they come to {total} resources; at most {MAX_NODES} are allowed");
        return Err(Invalid::new("templates", detail));
    }
    Ok(placed)
}

/// What the expressions of a thing use: in what its executor is told, and in its health.
pub(super) fn uses(known: &Known, one: &Thing) -> Result<(Uses, Uses), Invalid> {
    let with = known.uses_of_map(&one.with_path(), &one.with)?;
    let health = match one.health {
        Some(text) => known.uses_of_text(&format!("{}.status.http", one.path), text)?,
        None => Uses::default(),
    };
    Ok((with, health))
}

fn count_with(name: &str, count: &Value, known: &Scope) -> Result<u32, Invalid> {
    let path = format!("resources.{name}.count");
    let Some(text) = count.as_str() else { return count_of(&path, count) };
    let value = expression::render(text, known).map_err(|detail| Invalid::new(&path, detail))?;
    count_of(&path, &value)
}

/// A number of resources.
pub(super) fn count_of(path: &str, count: &Value) -> Result<u32, Invalid> {
    let number = count.as_u64().and_then(|number| u32::try_from(number).ok());
    number.filter(|&number| number <= MAX_COUNT).ok_or_else(|| {
        let detail = format!("must be a whole number from 0 to {MAX_COUNT}, and is {count}");
        Invalid::new(path, detail)
    })
}

/// The things by their names, which only one may have.
fn by_name<'a>(placed: &'a [Placed<'a>]) -> Result<HashMap<&'a str, usize>, Invalid> {
    let mut by_name = HashMap::with_capacity(placed.len());
    for (i, one) in placed.iter().enumerate() {
        if let Some(other) = by_name.insert(one.thing.name, i) {
            let detail = format!(
                "{} is in {} and in {}; a name may be in one template of an environment only",
                one.thing.name,
                placed[other].source.template.reference(),
                one.source.template.reference(),
            );
            return Err(Invalid::new("templates", detail));
        }
    }
    Ok(by_name)
}

/// What is one thing in each template must not be two in all of them.
fn one_meaning(placed: &[Placed<'_>], parameters: &Map<String, Value>) -> Result<(), Invalid> {
    let names: BTreeMap<&str, &Placed<'_>> =
        placed.iter().map(|one| (one.thing.name, one)).collect();
    for (&name, one) in &names {
        let template = one.source.template.reference();
        if parameters.contains_key(&identifier(name)) {
            let detail = format!(
                "{name} is a resource in {template} and a parameter in another one; call one of \
                 them something else"
            );
            return Err(Invalid::new("templates", detail));
        }
        let others = names.range(name..).map(|(other, _)| *other);
        if let Some(other) = one.count.and_then(|_| numbered(name, others)) {
            let detail = format!(
                "{name} of {template} is counted, so one of several may be called {other}, and {} \
                 has something called so",
                names[other].source.template.reference()
            );
            return Err(Invalid::new("templates", detail));
        }
    }
    Ok(())
}

fn met_needs(sources: &[Source<'_>], by_name: &HashMap<&str, usize>) -> Result<(), Invalid> {
    for (i, source) in sources.iter().enumerate() {
        for need in &source.template.needs {
            if by_name.contains_key(need.as_str()) {
                continue;
            }
            let mut all: Vec<&str> = by_name.keys().copied().collect();
            all.sort_unstable();
            let detail = format!(
                "{} needs {need} of another template, and none has it; there are {}",
                source.template.reference(),
                some(&all)
            );
            return Err(Invalid::new(format!("templates[{i}]"), detail));
        }
    }
    Ok(())
}

fn after(
    sources: &[Source<'_>],
    placed: &[Placed<'_>],
    by_name: &HashMap<&str, usize>,
) -> Result<Vec<Vec<usize>>, Invalid> {
    let place = |name: &str| by_name.get(name).copied();
    let mut edges = graph::Edges::new(placed.len());
    let mut after = Vec::with_capacity(placed.len());
    for source in sources {
        let groups = graph::groups(source.template, placed.len(), &place)?;
        let offset = after.len();
        let size = source.template.resources.len() + source.template.actions.len();
        for one in &placed[offset..offset + size] {
            let named = names_before(&one.thing, &one.with, &one.health);
            let others = graph::taken_apart(named, &groups, &place);
            let all = before_action(&one.thing, source.template, offset);
            after.push(edges.of("templates", others.chain(all))?);
        }
    }
    Ok(after)
}

/// The names of what must be there before a thing: said, and by expressions.
pub(super) fn names_before<'a>(
    one: &'a Thing<'a>,
    with: &'a Uses,
    health: &'a Uses,
) -> impl Iterator<Item = &'a str> {
    let seen_later = health.outputs_of.iter().filter(|name| *name != one.name);
    let used = with.outputs_of.iter().chain(seen_later).map(String::as_str);
    graph::each_once(one.after).chain(used)
}

/// An action that does not say when it runs does so after all resources of its template, which begin
/// at `offset`.
pub(super) fn before_action(one: &Thing, template: &Template, offset: usize) -> Range<usize> {
    let is_last = one.is_action && one.after.is_empty();
    offset..offset + if is_last { template.resources.len() } else { 0 }
}
