//! What an executor would be told, compared with what it was told last.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::decide::is_changed_in_place;
use super::{Existing, Wanted};
use crate::template::expression::{self, Scope};
use crate::template::known::identifier;
use crate::template::{Context, Names, Node, fill};

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
    wanted: &'a Wanted<'a>,
    /// What parameters and the environment are.
    known: Scope,
    /// What resources give, each worked out once.
    given: RefCell<HashMap<String, Option<minijinja::Value>>>,
}

impl<'a> Compared<'a> {
    pub(super) fn new(wanted: &'a Wanted<'a>, context: &'a Context) -> Self {
        let parameters = context.parameters.iter();
        let mut known: Scope = parameters
            .map(|(name, value)| (name.clone(), minijinja::Value::from_serialize(value)))
            .collect();
        known.insert("environment".to_owned(), fill::environment(context));
        Self { context, wanted, known, given: RefCell::default() }
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
        let may_move = node.outputs_of.iter().any(|name| changing.contains(name.as_str()));
        for (field, value) in &node.with {
            let before = applied.get(field);
            if !expression::is_within(value) {
                comparison.note(field, before == Some(value));
                continue;
            }
            let mut moving = if may_move { resources_in(value, node) } else { Names::new() };
            moving.retain(|name| changing.contains(name.as_str()));
            if !moving.is_empty() {
                comparison.may_change.extend(moving);
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
        let names = node.parameters.iter().map(String::as_str).chain(["environment"]);
        let known = names.filter_map(|name| Some((name.to_owned(), self.known.get(name)?.clone())));
        let mut scope: Scope = known.collect();
        if let Some(index) = node.index {
            scope.insert("index".to_owned(), minijinja::Value::from(index));
        }
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
        let is_there = |name: &str| self.wanted.places.contains_key(name);
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
fn resources_in(value: &Value, node: &Node) -> Names {
    let mut names = Names::new();
    collect(value, &mut names);
    node.outputs_of.iter().filter(|name| names.contains(&identifier(name))).cloned().collect()
}

fn collect(value: &Value, names: &mut Names) {
    match value {
        Value::String(text) => names.extend(expression::names(text).unwrap_or_default()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(map) => map.values().for_each(|value| collect(value, names)),
        _ => {}
    }
}
