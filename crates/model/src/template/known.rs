//! What the names in a template's expressions mean.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Names, Template, expression};
use crate::Invalid;

/// The names that a template's expressions may use.
pub(super) struct Known<'a> {
    parameters: BTreeSet<&'a str>,
    /// Resources and actions, of this template and those that it needs, as expressions call them.
    things: BTreeMap<String, &'a str>,
    groups: BTreeSet<String>,
}

/// What expressions use.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Uses {
    pub(super) parameters: Names,
    pub(super) outputs_of: Names,
    /// A place where each of the resources is named.
    places: BTreeMap<String, String>,
    /// Where `index` is used.
    pub(super) index: Option<String>,
    /// Is `environment` used?
    pub(super) environment: bool,
}

impl Uses {
    /// Where a resource is named.
    pub(super) fn place(&self, resource: &str) -> &str {
        self.places.get(resource).map_or("", String::as_str)
    }
}

/// A resource's name, as expressions call it.
pub(super) fn identifier(name: &str) -> String {
    name.replace('-', "_")
}

impl<'a> Known<'a> {
    pub(super) fn of(template: &'a Template) -> Self {
        let resources = template.resources.iter().map(|one| one.name.as_str());
        let actions = template.actions.iter().map(|one| one.name.as_str());
        let things = resources.chain(actions).chain(template.needs.iter().map(String::as_str));
        Self {
            parameters: template.parameters.keys().map(String::as_str).collect(),
            things: things.map(|name| (identifier(name), name)).collect(),
            groups: template.groups.iter().map(|group| identifier(&group.name)).collect(),
        }
    }

    /// What the expressions in a value use; `path` is where the value is.
    pub(super) fn uses(&self, path: &str, value: &Value) -> Result<Uses, Invalid> {
        let mut uses = Uses::default();
        self.look(path, value, &mut uses)?;
        Ok(uses)
    }

    /// What the expressions in a map use.
    pub(super) fn uses_of_map(
        &self,
        path: &str,
        map: &Map<String, Value>,
    ) -> Result<Uses, Invalid> {
        let mut uses = Uses::default();
        self.look_at_map(path, map, &mut uses)?;
        Ok(uses)
    }

    /// What the expressions in a text use.
    pub(super) fn uses_of_text(&self, path: &str, text: &str) -> Result<Uses, Invalid> {
        let mut uses = Uses::default();
        self.look_at_text(path, text, &mut uses)?;
        Ok(uses)
    }

    fn look(&self, path: &str, value: &Value, uses: &mut Uses) -> Result<(), Invalid> {
        match value {
            Value::String(text) => self.look_at_text(path, text, uses),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(i, item)| self.look(&format!("{path}[{i}]"), item, uses)),
            Value::Object(map) => self.look_at_map(path, map, uses),
            _ => Ok(()),
        }
    }

    fn look_at_map(
        &self,
        path: &str,
        map: &Map<String, Value>,
        uses: &mut Uses,
    ) -> Result<(), Invalid> {
        for (name, value) in map {
            let path = format!("{path}.{name}");
            if expression::is_in(name) {
                let detail = "expressions are allowed in values, not in names";
                return Err(Invalid::new(path, detail));
            }
            self.look(&path, value, uses)?;
        }
        Ok(())
    }

    fn look_at_text(&self, path: &str, text: &str, uses: &mut Uses) -> Result<(), Invalid> {
        let names = expression::names(text).map_err(|detail| Invalid::new(path, detail))?;
        names.into_iter().try_for_each(|name| self.note(path, name, uses))
    }

    fn note(&self, path: &str, name: String, uses: &mut Uses) -> Result<(), Invalid> {
        if self.parameters.contains(name.as_str()) {
            uses.parameters.insert(name);
        } else if let Some(&thing) = self.things.get(&name) {
            uses.outputs_of.insert(thing.to_owned());
            uses.places.entry(thing.to_owned()).or_insert_with(|| path.to_owned());
        } else if name == "index" {
            uses.index = Some(path.to_owned());
        } else if matches!(name.as_str(), "environment" | "environment.id" | "environment.name") {
            uses.environment = true;
        } else {
            return Err(Invalid::new(path, self.unknown(&name)));
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> String {
        if self.groups.contains(name) {
            return format!("{name} is a group; name one of its resources");
        }
        if name.starts_with("environment.") {
            return format!("there is no {name}; there are environment.id and environment.name");
        }
        let mut all: Vec<&str> = self.parameters.iter().copied().collect();
        all.extend(self.things.keys().map(String::as_str));
        all.push("environment");
        format!("there is no parameter or resource {name}; there are {}", some(&all))
    }
}

/// Names in a sentence: not more than can be read.
pub(super) fn some(names: &[&str]) -> String {
    const SHOWN: usize = 20;
    match names.len() {
        0 => "none".to_owned(),
        n if n <= SHOWN => names.join(", "),
        n => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
    }
}

/// The first name that one of several with this name could have; `sorted` begins with the name.
pub(super) fn numbered<'a>(name: &str, sorted: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    sorted
        .take_while(|other| other.starts_with(name))
        .find(|other| other[name.len()..].strip_prefix('-').is_some_and(is_number))
}
