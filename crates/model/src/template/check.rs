//! Semantic validation of a template. Errors name the field by its path in the file.

mod declaration;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::declaration::Declaration;
use super::expression::RESERVED;
use super::symbols::{References, Symbols, abbreviate, identifier, instance_name_clash};
use super::{BUILT_IN_NAMES, Template, graph, parameter, version};
use crate::{Invalid, name};

/// The maximum number of resources and actions of a template.
const MAX_DECLARATIONS: usize = 2000;
/// The maximum number of parameters.
const MAX_PARAMETERS: usize = 500;
/// The maximum number of entry points.
const MAX_ENTRY_POINTS: usize = 100;
/// The maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 4096;

pub(super) fn template(template: &Template) -> Result<(), Invalid> {
    identity(template)?;
    parameters(template)?;
    names(template)?;
    let declarations = super::declaration::all(template)?;
    groups(template)?;
    let symbols = Symbols::new(template);
    let names: HashSet<&str> = all_names(template).map(|(_, name)| name).collect();
    let references = declarations
        .iter()
        .map(|one| declaration::check(&names, &symbols, one))
        .collect::<Result<Vec<_>, _>>()?;
    cycles(template, &declarations, &references)?;
    entry_points(template, &symbols)
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
        ("resources", template.resources.len(), MAX_DECLARATIONS),
        ("actions", template.actions.len() + template.resources.len(), MAX_DECLARATIONS),
        ("groups", template.groups.len(), MAX_DECLARATIONS),
        ("needs", template.needs.len(), MAX_DECLARATIONS),
        ("parameters", template.parameters.len(), MAX_PARAMETERS),
        ("entry_points", template.entry_points.len(), MAX_ENTRY_POINTS),
    ] {
        if size > most {
            return Err(Invalid::new(
                list,
                format!("has {size} entries; at most {most} are allowed"),
            ));
        }
    }
    Ok(())
}

fn description(field: &str, text: &str) -> Result<(), Invalid> {
    if text.chars().count() > MAX_DESCRIPTION {
        return Err(Invalid::new(field, format!("must have at most {MAX_DESCRIPTION} characters")));
    }
    Ok(())
}

fn parameters(template: &Template) -> Result<(), Invalid> {
    for (name, one) in &template.parameters {
        let path = format!("parameters.{name}");
        let first = |c: char| c.is_ascii_lowercase() || c == '_';
        let rest = |c: char| first(c) || c.is_ascii_digit();
        if name.len() > 63 || !name.starts_with(first) || !name.chars().all(rest) {
            let detail = "a parameter name must start with a-z or _, contain only a-z, 0-9 and _, \
                          and have at most 63 characters";
            return Err(Invalid::new(path, detail));
        }
        not_reserved(&path, name)?;
        description(&format!("{path}.description"), &one.description)?;
        parameter::check(&path, one)?;
    }
    Ok(())
}

/// Rejects names that are reserved in expressions.
fn not_reserved(path: &str, name: &str) -> Result<(), Invalid> {
    if BUILT_IN_NAMES.contains(&name) || RESERVED.contains(&name) {
        return Err(Invalid::new(path, format!("{name} is reserved in expressions")));
    }
    Ok(())
}

/// All declared names with their paths.
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
        not_reserved(&path, one)?;
        if template.parameters.contains_key(&identifier(one)) {
            let detail = format!("{one} is also a parameter; rename one of them");
            return Err(Invalid::new(path, detail));
        }
        if let Some(other) = seen.insert(one, path.clone()) {
            let detail = format!("\"{one}\" is already the name of {other}");
            return Err(Invalid::new(path, detail));
        }
    }
    // `web` with a count expands to `web-0`, `web-1` and so on.
    for (i, one) in template.resources.iter().enumerate().filter(|(_, one)| one.count.is_some()) {
        if let Some(other) =
            instance_name_clash(&one.name, seen.range(one.name.as_str()..).map(|(k, _)| *k))
        {
            let detail = format!("an instance would be named {other}, which is already in use");
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
                return Err(Invalid::new(path, unknown_name("resource or group", one, &known)));
            }
        }
    }
    Ok(())
}

fn unknown_name(what: &str, name: &str, known: &HashSet<&str>) -> String {
    let mut all: Vec<&str> = known.iter().copied().collect();
    all.sort_unstable();
    format!("unknown {what} {}; available: {}", name.escape_default(), abbreviate(&all))
}

fn cycles(
    template: &Template,
    declarations: &[Declaration],
    references: &[declaration::Referenced],
) -> Result<(), Invalid> {
    let positions: HashMap<&str, usize> =
        declarations.iter().enumerate().map(|(i, one)| (one.name, i)).collect();
    let position = |name: &str| positions.get(name).copied();
    let groups = graph::groups(template, declarations.len(), &position)?;
    let mut edges = graph::Edges::new(declarations.len());
    let mut after = Vec::with_capacity(declarations.len());
    for (one, referenced) in declarations.iter().zip(references) {
        let named = super::expand::dependency_names(one, &referenced.with, &referenced.health);
        let others = graph::expand_groups(named, &groups, &position);
        let all = super::expand::action_dependencies(one, template, 0);
        after.push(edges.collect(&one.after_path(), others.chain(all))?);
    }
    let Some(cycle) = graph::cycle(&after) else { return Ok(()) };
    let cycle_text = graph::format_cycle(&cycle, |i| declarations[i].name);
    // The error points at a dependency that can be removed to break the cycle.
    let (from, to) = (cycle[0], cycle.get(1).copied().unwrap_or(cycle[0]));
    let by_expression = references[from].with.path_of(declarations[to].name);
    let field = if by_expression.is_empty() || !declarations[from].after.is_empty() {
        declarations[from].after_path()
    } else {
        by_expression.to_owned()
    };
    Err(Invalid::new(field, format!("dependency cycle: {cycle_text}")))
}

fn entry_points(template: &Template, symbols: &Symbols) -> Result<(), Invalid> {
    for (i, text) in template.entry_points.iter().enumerate() {
        let path = format!("entry_points[{i}]");
        name::line(&path, text, 2048)?;
        no_index(&symbols.references_in_text(&path, text)?)?;
    }
    Ok(())
}

fn no_index(references: &References) -> Result<(), Invalid> {
    match &references.index {
        Some(path) => Err(Invalid::new(path, "index is available only in resources with a count")),
        None => Ok(()),
    }
}
