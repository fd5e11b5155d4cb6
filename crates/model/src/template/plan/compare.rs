//! What an executor would be told, compared with what it was told last.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::Existing;
use super::decide::is_changed_in_place;
use crate::template::expression::{self, Scope};
use crate::template::known::identifier;
use crate::template::{Context, Node, fill};

/// What is different.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Fields that differ for certain.
    pub(super) differ: Vec<String>,
    /// Resources that are changed first, so that what they give is not known before.
    pub(super) may_change: BTreeSet<String>,
    /// Can one of the fields that they have a say in not be changed in place?
    pub(super) may_replace: bool,
    /// Why fields can't be known.
    pub(super) unknown: BTreeSet<String>,
}

/// Compares the nodes of one plan.
pub(super) struct Compared<'a> {
    context: &'a Context,
    names: HashSet<&'a str>,
    /// What resources give, each worked out once.
    given: RefCell<HashMap<String, Option<minijinja::Value>>>,
}

impl<'a> Compared<'a> {
    pub(super) fn new(nodes: &'a [Node], context: &'a Context) -> Self {
        let names = nodes.iter().map(|node| node.name.as_str()).collect();
        Self { context, names, given: RefCell::default() }
    }

    /// Compares field by field, as far as the fields can be known before the plan is carried out.
    pub(super) fn compare(
        &self,
        node: &Node,
        existing: &Existing,
        changing: &HashSet<&str>,
    ) -> Comparison {
        // The print says all, if no other resource has a say.
        if node.outputs_of.is_empty() && existing.print.as_ref() == Some(&node.print) {
            return Comparison::default();
        }
        let nothing = Map::new();
        let applied = existing.applied.as_ref().unwrap_or(&nothing);
        let mut comparison = Comparison::default();
        let scope = self.scope(node, changing);
        for (field, value) in &node.with {
            let before = applied.get(field);
            if !expression::is_within(value) {
                comparison.note(field, before == Some(value));
                continue;
            }
            let named = resources_in(value, node);
            let moving: Vec<&String> =
                named.iter().filter(|name| changing.contains(name.as_str())).collect();
            if !moving.is_empty() {
                comparison.may_change.extend(moving.into_iter().cloned());
                comparison.may_replace |= !is_changed_in_place(node.executor, field);
                continue;
            }
            match fill::value(field, value, &scope) {
                Ok(value) => comparison.note(field, before == Some(&value)),
                Err(invalid) => drop(comparison.unknown.insert(invalid.to_string())),
            }
        }
        let gone = applied.keys().filter(|field| !node.with.contains_key(*field));
        comparison.differ.extend(gone.cloned());
        comparison.differ.sort_unstable();
        comparison
    }

    fn scope(&self, node: &Node, changing: &HashSet<&str>) -> Scope {
        let mut scope = fill::scope(node, self.context);
        for resource in node.outputs_of.iter().filter(|name| !changing.contains(name.as_str())) {
            if let Some(given) = self.given_by(resource) {
                scope.insert(identifier(resource), given);
            }
        }
        scope
    }

    fn given_by(&self, resource: &str) -> Option<minijinja::Value> {
        if let Some(known) = self.given.borrow().get(resource) {
            return known.clone();
        }
        let is_there = |name: &str| self.names.contains(name);
        let given = fill::given(resource, &is_there, self.context);
        self.given.borrow_mut().insert(resource.to_owned(), given.clone());
        given
    }
}

impl Comparison {
    fn note(&mut self, field: &str, is_same: bool) {
        if !is_same {
            self.differ.push(field.to_owned());
        }
    }
}

/// The resources that a value's expressions name.
fn resources_in(value: &Value, node: &Node) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect(value, &mut names);
    node.outputs_of.iter().filter(|name| names.contains(&identifier(name))).cloned().collect()
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => names.extend(expression::names(text).unwrap_or_default()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(map) => map.values().for_each(|value| collect(value, names)),
        _ => {}
    }
}
