//! The symbol table of a template's expressions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Names, Template, expression};
use crate::Invalid;

/// The fields of `environment`.
const ENVIRONMENT: [&str; 4] =
    ["environment", "environment.id", "environment.name", "environment.organization_id"];

/// The names that a template's expressions may reference.
pub(super) struct Symbols<'a> {
    parameters: BTreeSet<&'a str>,
    /// Resources and actions of this template, and those it needs, by identifier.
    declarations: BTreeMap<String, &'a str>,
    groups: BTreeSet<String>,
}

/// Names referenced by expressions.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct References {
    pub(super) parameters: Names,
    pub(super) outputs_of: Names,
    /// A path at which each resource is referenced.
    paths: BTreeMap<String, String>,
    /// The path at which `index` is used.
    pub(super) index: Option<String>,
    /// Is `environment` used?
    pub(super) environment: bool,
}

impl References {
    /// The path at which a resource is referenced.
    pub(super) fn path_of(&self, resource: &str) -> &str {
        self.paths.get(resource).map_or("", String::as_str)
    }
}

/// The identifier of a resource in expressions.
pub(super) fn identifier(name: &str) -> String {
    name.replace('-', "_")
}

impl<'a> Symbols<'a> {
    pub(super) fn new(template: &'a Template) -> Self {
        let resources = template.resources.iter().map(|resource| resource.name.as_str());
        let actions = template.actions.iter().map(|action| action.name.as_str());
        let declarations =
            resources.chain(actions).chain(template.needs.iter().map(String::as_str));
        Self {
            parameters: template.parameters.keys().map(String::as_str).collect(),
            declarations: declarations.map(|name| (identifier(name), name)).collect(),
            groups: template.groups.iter().map(|group| identifier(&group.name)).collect(),
        }
    }

    /// The references of all expressions in the value at `path`.
    pub(super) fn references(&self, path: &str, value: &Value) -> Result<References, Invalid> {
        let mut found = References::default();
        self.collect(path, value, &mut found)?;
        Ok(found)
    }

    /// The references of all expressions in a map.
    pub(super) fn references_in_map(
        &self,
        path: &str,
        map: &Map<String, Value>,
    ) -> Result<References, Invalid> {
        let mut found = References::default();
        self.collect_map(path, map, &mut found)?;
        Ok(found)
    }

    /// The references of all expressions in a string.
    pub(super) fn references_in_text(&self, path: &str, text: &str) -> Result<References, Invalid> {
        let mut found = References::default();
        self.collect_text(path, text, &mut found)?;
        Ok(found)
    }

    fn collect(&self, path: &str, value: &Value, found: &mut References) -> Result<(), Invalid> {
        match value {
            Value::String(text) => self.collect_text(path, text, found),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(i, item)| self.collect(&format!("{path}[{i}]"), item, found)),
            Value::Object(map) => self.collect_map(path, map, found),
            _ => Ok(()),
        }
    }

    fn collect_map(
        &self,
        path: &str,
        map: &Map<String, Value>,
        found: &mut References,
    ) -> Result<(), Invalid> {
        for (name, value) in map {
            let path = format!("{path}.{name}");
            if expression::has_expression(name) {
                let detail = "expressions are allowed in values, not in names";
                return Err(Invalid::new(path, detail));
            }
            self.collect(&path, value, found)?;
        }
        Ok(())
    }

    fn collect_text(&self, path: &str, text: &str, found: &mut References) -> Result<(), Invalid> {
        let names = expression::names(text).map_err(|detail| Invalid::new(path, detail))?;
        names.into_iter().try_for_each(|name| self.add(path, name, found))
    }

    fn add(&self, path: &str, name: String, found: &mut References) -> Result<(), Invalid> {
        if self.parameters.contains(name.as_str()) {
            found.parameters.insert(name);
        } else if let Some(&resource) = self.declarations.get(&name) {
            found.outputs_of.insert(resource.to_owned());
            found.paths.entry(resource.to_owned()).or_insert_with(|| path.to_owned());
        } else if name == "index" {
            found.index = Some(path.to_owned());
        } else if ENVIRONMENT.contains(&name.as_str()) {
            found.environment = true;
        } else {
            return Err(Invalid::new(path, self.unknown_name(&name)));
        }
        Ok(())
    }

    fn unknown_name(&self, name: &str) -> String {
        if self.groups.contains(name) {
            return format!("{name} is a group; reference one of its resources instead");
        }
        if name.starts_with("environment.") {
            return format!(
                "unknown field {name}; available: environment.id, environment.name, \
                 environment.organization_id"
            );
        }
        let mut all: Vec<&str> = self.parameters.iter().copied().collect();
        all.extend(self.declarations.keys().map(String::as_str));
        all.push("environment");
        format!("unknown parameter or resource {name}; available: {}", abbreviate(&all))
    }
}

/// Joins names for an error message, showing the first 20.
pub(super) fn abbreviate(names: &[&str]) -> String {
    const SHOWN: usize = 20;
    match names.len() {
        0 => "none".to_owned(),
        n if n <= SHOWN => names.join(", "),
        n => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
    }
}

/// The first name that an instance of the counted resource `name` could also have (`web-0`);
/// `sorted` starts at `name`.
pub(super) fn instance_name_clash<'a>(
    name: &str,
    sorted: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    sorted
        .take_while(|other| other.starts_with(name))
        .find(|other| other[name.len()..].strip_prefix('-').is_some_and(is_number))
}
