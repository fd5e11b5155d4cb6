//! Compares desired with applied configurations.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::decide::can_update_in_place;
use super::{Desired, Existing};
use crate::template::expression::{self, Scope};
use crate::template::symbols::identifier;
use crate::template::{Context, Names, Node, fill};

/// The differences between a desired and an applied configuration.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Fields that certainly change.
    pub(super) changed_fields: Vec<String>,
    /// Referenced resources that change first, so that their outputs are not known yet.
    pub(super) may_change: BTreeSet<String>,
    /// Would a change of their outputs force a replacement?
    pub(super) may_replace: bool,
    /// Why other fields can't be evaluated.
    pub(super) unknown: BTreeSet<String>,
}

/// Compares the nodes of one plan.
pub(super) struct Comparer<'a> {
    context: &'a Context,
    desired: &'a Desired<'a>,
    /// The values of parameters and of the environment.
    scope: Scope,
    /// Cached outputs of resources.
    outputs: RefCell<HashMap<String, Option<minijinja::Value>>>,
}

impl<'a> Comparer<'a> {
    pub(super) fn new(desired: &'a Desired<'a>, context: &'a Context) -> Self {
        let parameters = context.parameters.iter();
        let mut scope: Scope = parameters
            .map(|(name, value)| (name.clone(), minijinja::Value::from_serialize(value)))
            .collect();
        scope.insert("environment".to_owned(), fill::environment(context));
        Self { context, desired, scope, outputs: RefCell::default() }
    }

    /// Compares field by field, as far as fields can be evaluated before the plan is executed.
    pub(super) fn compare(
        &self,
        node: &Node,
        existing: &Existing,
        changing: &HashSet<&str>,
    ) -> Comparison {
        // Without references to other resources the fingerprint is conclusive.
        if node.outputs_of.is_empty() && existing.print.as_ref() == Some(&node.print) {
            return Comparison::default();
        }
        let nothing = Map::new();
        let applied = existing.applied.as_ref().unwrap_or(&nothing);
        let mut comparison = Comparison::default();
        let scope = self.scope(node, changing);
        let uses_changing = node.outputs_of.iter().any(|name| changing.contains(name.as_str()));
        for (field, value) in &node.with {
            let before = applied.get(field);
            if !expression::value_has_expression(value) {
                comparison.record(field, before == Some(value));
                continue;
            }
            let mut sources = if uses_changing { resources_in(value, node) } else { Names::new() };
            sources.retain(|name| changing.contains(name.as_str()));
            if !sources.is_empty() {
                comparison.may_change.extend(sources);
                comparison.may_replace |= !can_update_in_place(node.executor, field);
                continue;
            }
            match fill::value(field, value, &scope) {
                Ok(value) => comparison.record(field, before == Some(&value)),
                Err(invalid) => drop(comparison.unknown.insert(invalid.to_string())),
            }
        }
        let removed = applied.keys().filter(|field| !node.with.contains_key(*field));
        comparison.changed_fields.extend(removed.cloned());
        comparison.changed_fields.sort_unstable();
        comparison
    }

    fn scope(&self, node: &Node, changing: &HashSet<&str>) -> Scope {
        let names = node.parameters.iter().map(String::as_str).chain(["environment"]);
        let known = names.filter_map(|name| Some((name.to_owned(), self.scope.get(name)?.clone())));
        let mut scope: Scope = known.collect();
        if let Some(index) = node.index {
            scope.insert("index".to_owned(), minijinja::Value::from(index));
        }
        for resource in node.outputs_of.iter().filter(|name| !changing.contains(name.as_str())) {
            if let Some(outputs) = self.outputs_of(resource) {
                scope.insert(identifier(resource), outputs);
            }
        }
        scope
    }

    fn outputs_of(&self, resource: &str) -> Option<minijinja::Value> {
        if let Some(cached) = self.outputs.borrow().get(resource) {
            return cached.clone();
        }
        let exists = |name: &str| self.desired.positions.contains_key(name);
        let outputs = fill::outputs(resource, &exists, self.context);
        self.outputs.borrow_mut().insert(resource.to_owned(), outputs.clone());
        outputs
    }
}

impl Comparison {
    fn record(&mut self, field: &str, is_same: bool) {
        if !is_same {
            self.changed_fields.push(field.to_owned());
        }
    }
}

/// The resources referenced by a value's expressions.
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
