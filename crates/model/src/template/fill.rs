//! Evaluates the expressions of nodes once the referenced outputs are known.

use minijinja::Value as JinjaValue;
use serde_json::{Map, Value, json};

use super::expression::{self, Scope};
use super::symbols::identifier;
use super::{Context, Node, configuration};
use crate::Invalid;

/// Evaluates and validates the configuration of a node. The outputs of referenced resources must be
/// known.
pub fn fill(node: &Node, context: &Context) -> Result<Map<String, Value>, Invalid> {
    let mut scope = scope(node, context);
    for resource in &node.outputs_of {
        // Only dependencies exist for certain; other instances of that name are being destroyed.
        let exists = |name: &str| is_dependency(node, name);
        let outputs = outputs(resource, &exists, context).ok_or_else(|| {
            Invalid::new("with", format!("outputs of {resource} are not known yet"))
        })?;
        scope.insert(identifier(resource), outputs);
    }
    let filled = map("with", &node.with, &scope)?;
    configuration::check(node.executor, &filled)?;
    Ok(filled)
}

fn is_dependency(node: &Node, name: &str) -> bool {
    node.after.binary_search_by(|other| other.as_str().cmp(name)).is_ok()
}

/// Evaluates the expressions of a string: the URL of a health check, or an entry point.
pub fn fill_text(text: &str, node: Option<&Node>, context: &Context) -> Result<String, Invalid> {
    let wrong = |detail: String| Invalid::new("text", detail);
    let mut scope = Scope::new();
    for name in expression::names(text).map_err(wrong)? {
        if name.contains('.') {
            continue;
        }
        let value = lookup(&name, node, context).ok_or_else(|| {
            wrong(format!("{name} is neither a parameter nor a resource whose outputs are known"))
        })?;
        scope.insert(name, value);
    }
    expression::render(text, &scope).map(expression::as_text).map_err(wrong)
}

/// The value of a name in a string.
fn lookup(name: &str, node: Option<&Node>, context: &Context) -> Option<JinjaValue> {
    if let Some(node) = node.filter(|node| identifier(&node.of) == name) {
        return context.outputs.get(&node.name).map(JinjaValue::from_serialize);
    }
    if let Some(value) = context.parameters.get(name) {
        return Some(JinjaValue::from_serialize(value));
    }
    match name {
        "environment" => Some(environment(context)),
        "index" => node.and_then(|node| node.index).map(JinjaValue::from),
        _ => {
            let exists = |name: &str| {
                node.map_or_else(
                    || context.outputs.contains_key(name),
                    |node| is_dependency(node, name),
                )
            };
            outputs(resource_by_identifier(name, context)?, &exists, context)
        }
    }
}

/// The resource with this identifier.
fn resource_by_identifier<'a>(name: &str, context: &'a Context) -> Option<&'a str> {
    let matches = |resource: &str| identifier(resource) == name;
    let single = context.outputs.keys().find(|resource| matches(resource)).map(String::as_str);
    single.or_else(|| {
        let stems = context.outputs.keys().filter_map(|resource| {
            let (stem, number) = resource.rsplit_once('-')?;
            number.bytes().all(|b| b.is_ascii_digit()).then_some(stem)
        });
        stems.into_iter().find(|stem| matches(stem))
    })
}

/// The values available to a node's expressions, except outputs of resources.
fn scope(node: &Node, context: &Context) -> Scope {
    let used = node.parameters.iter().filter_map(|name| {
        Some((name.clone(), JinjaValue::from_serialize(context.parameters.get(name)?)))
    });
    let mut scope: Scope = used.collect();
    scope.insert("environment".to_owned(), environment(context));
    if let Some(index) = node.index {
        scope.insert("index".to_owned(), JinjaValue::from(index));
    }
    scope
}

pub(super) fn environment(context: &Context) -> JinjaValue {
    JinjaValue::from_serialize(json!({
        "id": context.environment_id,
        "name": context.environment_name,
        "organization_id": context.organization_id,
    }))
}

/// The outputs of a resource; none if they are not known. A counted resource has the outputs of its
/// first instance, and those of all instances in `all`.
pub(super) fn outputs(
    resource: &str,
    exists: &dyn Fn(&str) -> bool,
    context: &Context,
) -> Option<JinjaValue> {
    if exists(resource) {
        return context.outputs.get(resource).map(JinjaValue::from_serialize);
    }
    let mut all = Vec::new();
    loop {
        let name = format!("{resource}-{}", all.len());
        if !exists(&name) {
            break;
        }
        all.push(context.outputs.get(&name)?);
    }
    let mut first: Map<String, Value> = all.first().map(|&one| one.clone()).unwrap_or_default();
    first.insert("all".to_owned(), json!(all));
    Some(JinjaValue::from_serialize(first))
}

fn map(path: &str, map: &Map<String, Value>, scope: &Scope) -> Result<Map<String, Value>, Invalid> {
    map.iter()
        .map(|(name, one)| Ok((name.clone(), value(&format!("{path}.{name}"), one, scope)?)))
        .collect()
}

/// Evaluates the expressions in a value.
pub(super) fn value(path: &str, one: &Value, scope: &Scope) -> Result<Value, Invalid> {
    match one {
        Value::String(text) => {
            expression::render(text, scope).map_err(|detail| Invalid::new(path, detail))
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(i, item)| value(&format!("{path}[{i}]"), item, scope))
            .collect::<Result<Vec<_>, _>>()
            .map(Value::Array),
        Value::Object(inner) => map(path, inner, scope).map(Value::Object),
        other => Ok(other.clone()),
    }
}
