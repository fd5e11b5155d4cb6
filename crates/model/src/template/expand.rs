//! Expands templates and parameters to the nodes of an environment.

mod node;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use serde_json::{Map, Value};

use super::declaration::{self, Declaration};
use super::expression::{self, Scope};
use super::symbols::{References, Symbols, abbreviate, identifier, instance_name_clash};
use super::{Node, Template, graph, parameter};
use crate::Invalid;

/// The maximum `count` of a resource.
const MAX_COUNT: u32 = 1000;
/// The maximum number of nodes of an environment.
const MAX_NODES: usize = 20_000;

/// A template of an environment.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The template.
    pub template: &'a Template,
    /// Fingerprint of the files published with it; empty if it has none.
    pub files_print: &'a str,
}

/// The desired state: the result of expanding templates with parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    /// The nodes in dependency order.
    pub nodes: Vec<Node>,
    /// All parameters, including defaults.
    pub parameters: Map<String, Value>,
    /// Entry points of the environment, with unevaluated expressions.
    pub entry_points: Vec<String>,
}

/// A declaration with its template, its references and its count.
struct Resolved<'a> {
    source: &'a Source<'a>,
    declaration: Declaration<'a>,
    with: References,
    health: References,
    /// The number of instances; none for a single instance without an index.
    count: Option<u32>,
}

/// Expands templates with the given parameters to the nodes of an environment. Deterministic.
pub fn expand(sources: &[Source<'_>], given: &Map<String, Value>) -> Result<Expanded, Invalid> {
    unique_templates(sources)?;
    let parameters = parameter::parameters(sources, given)?;
    let resolved = resolve(sources, &parameters)?;
    let by_name = by_name(&resolved)?;
    unambiguous_names(&resolved, &parameters)?;
    check_needs(sources, &by_name)?;
    let after = dependencies(sources, &resolved, &by_name)?;
    if let Some(cycle) = graph::cycle(&after) {
        let cycle_text = graph::format_cycle(&cycle, |i| resolved[i].declaration.name);
        return Err(Invalid::new("templates", format!("dependency cycle: {cycle_text}")));
    }
    Ok(Expanded {
        nodes: node::all(&resolved, &after, &parameters)?,
        parameters,
        entry_points: sources.iter().flat_map(|one| one.template.entry_points.clone()).collect(),
    })
}

fn unique_templates(sources: &[Source<'_>]) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for (i, source) in sources.iter().enumerate() {
        if !seen.insert(&source.template.name) {
            let detail = format!("{} is listed twice", source.template.name);
            return Err(Invalid::new(format!("templates[{i}]"), detail));
        }
    }
    Ok(())
}

fn resolve<'a>(
    sources: &'a [Source<'a>],
    parameters: &Map<String, Value>,
) -> Result<Vec<Resolved<'a>>, Invalid> {
    let mut resolved = Vec::new();
    let scope: Scope = parameters
        .iter()
        .map(|(name, value)| (name.clone(), minijinja::Value::from_serialize(value)))
        .collect();
    for source in sources {
        let symbols = Symbols::new(source.template);
        for declaration in declaration::all(source.template)? {
            let (with, health) = references(&symbols, &declaration)?;
            let count =
                declaration.count.map(|count| evaluate_count(declaration.name, count, &scope));
            resolved.push(Resolved {
                source,
                with,
                health,
                count: count.transpose()?,
                declaration,
            });
        }
    }
    let total: usize = resolved.iter().map(|one| one.count.unwrap_or(1) as usize).sum();
    if total > MAX_NODES {
        let detail = format!("they expand to {total} resources; at most {MAX_NODES} are allowed");
        return Err(Invalid::new("templates", detail));
    }
    Ok(resolved)
}

/// The references of a declaration: of its configuration, and of its health check.
pub(super) fn references(
    symbols: &Symbols,
    one: &Declaration,
) -> Result<(References, References), Invalid> {
    let with = symbols.references_in_map(&one.with_path(), &one.with)?;
    let health = match one.health {
        Some(text) => symbols.references_in_text(&format!("{}.status.http", one.path), text)?,
        None => References::default(),
    };
    Ok((with, health))
}

fn evaluate_count(name: &str, count: &Value, scope: &Scope) -> Result<u32, Invalid> {
    let path = format!("resources.{name}.count");
    let Some(text) = count.as_str() else { return parse_count(&path, count) };
    let value = expression::render(text, scope).map_err(|detail| Invalid::new(&path, detail))?;
    parse_count(&path, &value)
}

/// Reads a count from a value.
pub(super) fn parse_count(path: &str, count: &Value) -> Result<u32, Invalid> {
    let number = count.as_u64().and_then(|number| u32::try_from(number).ok());
    number.filter(|&number| number <= MAX_COUNT).ok_or_else(|| {
        let detail = format!("must be a whole number from 0 to {MAX_COUNT}, got {count}");
        Invalid::new(path, detail)
    })
}

/// The declarations by name; names are unique across templates.
fn by_name<'a>(resolved: &'a [Resolved<'a>]) -> Result<HashMap<&'a str, usize>, Invalid> {
    let mut by_name = HashMap::with_capacity(resolved.len());
    for (i, one) in resolved.iter().enumerate() {
        if let Some(other) = by_name.insert(one.declaration.name, i) {
            let detail = format!(
                "{} is declared by {} and by {}; names must be unique within an environment",
                one.declaration.name,
                resolved[other].source.template.reference(),
                one.source.template.reference(),
            );
            return Err(Invalid::new("templates", detail));
        }
    }
    Ok(by_name)
}

/// Rejects names that are unambiguous in each template, but not in all of them together.
fn unambiguous_names(
    resolved: &[Resolved<'_>],
    parameters: &Map<String, Value>,
) -> Result<(), Invalid> {
    let names: BTreeMap<&str, &Resolved<'_>> =
        resolved.iter().map(|one| (one.declaration.name, one)).collect();
    for (&name, one) in &names {
        let template = one.source.template.reference();
        if parameters.contains_key(&identifier(name)) {
            let detail = format!(
                "{name} is a resource in {template} and a parameter in another template; rename \
                 one of them"
            );
            return Err(Invalid::new("templates", detail));
        }
        let others = names.range(name..).map(|(other, _)| *other);
        if let Some(other) = one.count.and_then(|_| instance_name_clash(name, others)) {
            let detail = format!(
                "{name} of {template} has a count, and an instance of it could be named {other}, \
                 which {} declares",
                names[other].source.template.reference()
            );
            return Err(Invalid::new("templates", detail));
        }
    }
    Ok(())
}

fn check_needs(sources: &[Source<'_>], by_name: &HashMap<&str, usize>) -> Result<(), Invalid> {
    for (i, source) in sources.iter().enumerate() {
        for need in &source.template.needs {
            if by_name.contains_key(need.as_str()) {
                continue;
            }
            let mut all: Vec<&str> = by_name.keys().copied().collect();
            all.sort_unstable();
            let detail = format!(
                "{} needs {need} from another template, and none declares it; available: {}",
                source.template.reference(),
                abbreviate(&all)
            );
            return Err(Invalid::new(format!("templates[{i}]"), detail));
        }
    }
    Ok(())
}

fn dependencies(
    sources: &[Source<'_>],
    resolved: &[Resolved<'_>],
    by_name: &HashMap<&str, usize>,
) -> Result<Vec<Vec<usize>>, Invalid> {
    let position = |name: &str| by_name.get(name).copied();
    let mut edges = graph::Edges::new(resolved.len());
    let mut after = Vec::with_capacity(resolved.len());
    for source in sources {
        let groups = graph::groups(source.template, resolved.len(), &position)?;
        let offset = after.len();
        let size = source.template.resources.len() + source.template.actions.len();
        for one in &resolved[offset..offset + size] {
            let named = dependency_names(&one.declaration, &one.with, &one.health);
            let others = graph::expand_groups(named, &groups, &position);
            let all = action_dependencies(&one.declaration, source.template, offset);
            after.push(edges.collect("templates", others.chain(all))?);
        }
    }
    Ok(after)
}

/// The names of a declaration's dependencies: explicit ones, and those implied by expressions.
pub(super) fn dependency_names<'a>(
    one: &'a Declaration<'a>,
    with: &'a References,
    health: &'a References,
) -> impl Iterator<Item = &'a str> {
    let of_health = health.outputs_of.iter().filter(|name| *name != one.name);
    let used = with.outputs_of.iter().chain(of_health).map(String::as_str);
    graph::distinct(one.after).chain(used)
}

/// The implicit dependencies of an action without `after`: all resources of its template, which
/// start at `offset`.
pub(super) fn action_dependencies(
    one: &Declaration,
    template: &Template,
    offset: usize,
) -> Range<usize> {
    let is_last = one.is_action && one.after.is_empty();
    offset..offset + if is_last { template.resources.len() } else { 0 }
}
