//! The rules that a template must keep, beyond its shape. Errors name the field by its path in the file.

mod thing;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::expression::RESERVED;
use super::known::{Known, identifier, numbered, some};
use super::thing::Thing;
use super::{KNOWN_NAMES, Template, graph, parameter, version};
use crate::{Invalid, name};

/// The most resources and actions that a template may declare.
const MAX_THINGS: usize = 2000;
/// The most parameters.
const MAX_PARAMETERS: usize = 500;
/// The most entry points.
const MAX_ENTRY_POINTS: usize = 100;
/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 4096;

pub(super) fn template(template: &Template) -> Result<(), Invalid> {
    identity(template)?;
    parameters(template)?;
    names(template)?;
    let things = super::thing::all(template)?;
    groups(template)?;
    let known = Known::of(template);
    let names: HashSet<&str> = all_names(template).map(|(_, name)| name).collect();
    let uses = things
        .iter()
        .map(|one| thing::check(&names, &known, one))
        .collect::<Result<Vec<_>, _>>()?;
    cycles(template, &things, &uses)?;
    entry_points(template, &known)
}

fn identity(template: &Template) -> Result<(), Invalid> {
    name::dns_label("name", &template.name)?;
    version::check("version", &template.version)?;
    description("description", &template.description)?;
    name::labels("tags", &template.tags)?;
    if let Some(commit) = &template.commit {
        name::line("commit", commit, 128)?;
    }
    for (list, size, most) in [
        ("resources", template.resources.len(), MAX_THINGS),
        ("actions", template.actions.len() + template.resources.len(), MAX_THINGS),
        ("groups", template.groups.len(), MAX_THINGS),
        ("needs", template.needs.len(), MAX_THINGS),
        ("parameters", template.parameters.len(), MAX_PARAMETERS),
        ("entry_points", template.entry_points.len(), MAX_ENTRY_POINTS),
    ] {
        if size > most {
            return Err(Invalid::new(list, format!("{size}; at most {most} are allowed")));
        }
    }
    Ok(())
}

fn description(field: &str, text: &str) -> Result<(), Invalid> {
    if text.chars().count() > MAX_DESCRIPTION {
        return Err(Invalid::new(field, format!("at most {MAX_DESCRIPTION} characters")));
    }
    Ok(())
}

fn parameters(template: &Template) -> Result<(), Invalid> {
    for (name, one) in &template.parameters {
        let path = format!("parameters.{name}");
        let first = |c: char| c.is_ascii_lowercase() || c == '_';
        let rest = |c: char| first(c) || c.is_ascii_digit();
        if name.len() > 63 || !name.starts_with(first) || !name.chars().all(rest) {
            let detail = "a parameter's name begins with a-z or _, goes on with a-z, 0-9 and _, \
                          and has at most 63 characters";
            return Err(Invalid::new(path, detail));
        }
        not_taken(&path, name)?;
        description(&format!("{path}.description"), &one.description)?;
        parameter::check(&path, one)?;
    }
    Ok(())
}

/// Nothing is called like what expressions know already.
fn not_taken(path: &str, name: &str) -> Result<(), Invalid> {
    if KNOWN_NAMES.contains(&name) || RESERVED.contains(&name) {
        return Err(Invalid::new(path, format!("{name} means something else in expressions")));
    }
    Ok(())
}

/// Every name with its place.
fn all_names(template: &Template) -> impl Iterator<Item = (String, &str)> {
    let resources = template.resources.iter().map(|one| one.name.as_str());
    let groups = template.groups.iter().map(|one| one.name.as_str());
    let actions = template.actions.iter().map(|one| one.name.as_str());
    let needs = template.needs.iter().map(String::as_str);
    let named = |list: &'static str, suffix: &'static str| {
        move |(i, name)| (format!("{list}[{i}]{suffix}"), name)
    };
    let resources = resources.enumerate().map(named("resources", ".name"));
    let groups = groups.enumerate().map(named("groups", ".name"));
    let actions = actions.enumerate().map(named("actions", ".name"));
    resources.chain(groups).chain(actions).chain(needs.enumerate().map(named("needs", "")))
}

fn names(template: &Template) -> Result<(), Invalid> {
    let mut seen: BTreeMap<&str, String> = BTreeMap::new();
    for (path, one) in all_names(template) {
        name::dns_label(&path, one)?;
        not_taken(&path, one)?;
        if template.parameters.contains_key(&identifier(one)) {
            let detail = format!("{one} is a parameter, too; call one of them something else");
            return Err(Invalid::new(path, detail));
        }
        if let Some(other) = seen.insert(one, path.clone()) {
            let detail = format!("\"{one}\" is there twice: {other} is called so, too");
            return Err(Invalid::new(path, detail));
        }
    }
    // `web` with a count becomes `web-0` and so on.
    for (i, one) in template.resources.iter().enumerate().filter(|(_, one)| one.count.is_some()) {
        if let Some(other) = numbered(&one.name, seen.range(one.name.as_str()..).map(|(k, _)| *k)) {
            let detail = format!("one of several is called {other}, and so is something else");
            return Err(Invalid::new(format!("resources[{i}].count"), detail));
        }
    }
    Ok(())
}

fn groups(template: &Template) -> Result<(), Invalid> {
    let mut known: HashSet<&str> = template.resources.iter().map(|one| one.name.as_str()).collect();
    known.extend(template.groups.iter().map(|one| one.name.as_str()));
    known.extend(template.needs.iter().map(String::as_str));
    for (i, group) in template.groups.iter().enumerate() {
        name::labels(&format!("groups[{i}].tags"), &group.tags)?;
        for (j, one) in group.resources.iter().enumerate() {
            if !known.contains(one.as_str()) {
                let path = format!("groups[{i}].resources[{j}]");
                return Err(Invalid::new(path, no_such("resource or group", one, &known)));
            }
        }
    }
    Ok(())
}

fn no_such(what: &str, name: &str, known: &HashSet<&str>) -> String {
    let mut all: Vec<&str> = known.iter().copied().collect();
    all.sort_unstable();
    format!("there is no {what} {}; there are {}", name.escape_default(), some(&all))
}

fn cycles(template: &Template, things: &[Thing], uses: &[thing::Used]) -> Result<(), Invalid> {
    let places: HashMap<&str, usize> =
        things.iter().enumerate().map(|(i, one)| (one.name, i)).collect();
    let place = |name: &str| places.get(name).copied();
    let groups = graph::groups(template, things.len(), &place)?;
    let mut edges = graph::Edges::new(things.len());
    let mut after = Vec::with_capacity(things.len());
    for (one, uses) in things.iter().zip(uses) {
        let named = super::expand::names_before(one, &uses.with, &uses.health);
        let others = graph::taken_apart(named, &groups, &place);
        let all = super::expand::before_action(one, template, 0);
        after.push(edges.of(&one.after_path(), others.chain(all))?);
    }
    let Some(cycle) = graph::cycle(&after) else { return Ok(()) };
    let words = graph::cycle_words(&cycle, |i| things[i].name);
    // The line of the dependency is where the cycle can be cut.
    let (from, to) = (cycle[0], cycle.get(1).copied().unwrap_or(cycle[0]));
    let by_expression = uses[from].with.place(things[to].name);
    let field = if by_expression.is_empty() || !things[from].after.is_empty() {
        things[from].after_path()
    } else {
        by_expression.to_owned()
    };
    Err(Invalid::new(field, format!("they wait for each other: {words}")))
}

fn entry_points(template: &Template, known: &Known) -> Result<(), Invalid> {
    for (i, text) in template.entry_points.iter().enumerate() {
        let path = format!("entry_points[{i}]");
        name::line(&path, text, 2048)?;
        no_index(&known.uses_of_text(&path, text)?)?;
    }
    Ok(())
}

fn no_index(uses: &super::known::Uses) -> Result<(), Invalid> {
    match &uses.index {
        Some(path) => Err(Invalid::new(path, "index is known only where a resource has a count")),
        None => Ok(()),
    }
}
