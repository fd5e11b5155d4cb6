//! Values in place of expressions, once what they name is there.

use minijinja::Value as Known;
use serde_json::{Map, Value, json};

use super::expression::{self, Scope};
use super::known::identifier;
use super::{Context, Node, with};
use crate::Invalid;

/// What a node's executor is told: `with`, with values in place of expressions, as the executor takes
/// it. What other resources give must be known.
pub fn fill(node: &Node, context: &Context) -> Result<Map<String, Value>, Invalid> {
    let mut scope = scope(node, context);
    for resource in &node.outputs_of {
        // Only what the node waits for is there for certain; others of that name are on their way out.
        let is_there = |name: &str| is_before(node, name);
        let given = given(resource, &is_there, context).ok_or_else(|| {
            Invalid::new("with", format!("what {resource} gives is not known yet"))
        })?;
        scope.insert(identifier(resource), given);
    }
    let filled = map("with", &node.with, &scope)?;
    with::check(node.executor, &filled)?;
    Ok(filled)
}

fn is_before(node: &Node, name: &str) -> bool {
    node.after.binary_search_by(|other| other.as_str().cmp(name)).is_ok()
}

/// A text with values in place of expressions: a node's health address, or an entry point.
pub fn fill_text(text: &str, node: Option<&Node>, context: &Context) -> Result<String, Invalid> {
    let wrong = |detail: String| Invalid::new("text", detail);
    let mut scope = Scope::new();
    for name in expression::names(text).map_err(wrong)? {
        if name.contains('.') {
            continue;
        }
        let value = named(&name, node, context).ok_or_else(|| {
            wrong(format!(
                "there is no parameter {name}, and what a resource {name} gives is not known yet"
            ))
        })?;
        scope.insert(name, value);
    }
    expression::render(text, &scope).map(expression::as_text).map_err(wrong)
}

/// What a name stands for in a text.
fn named(name: &str, node: Option<&Node>, context: &Context) -> Option<Known> {
    if let Some(node) = node.filter(|node| identifier(&node.of) == name) {
        return context.outputs.get(&node.name).map(Known::from_serialize);
    }
    if let Some(value) = context.parameters.get(name) {
        return Some(Known::from_serialize(value));
    }
    match name {
        "environment" => Some(environment(context)),
        "index" => node.and_then(|node| node.index).map(Known::from),
        _ => {
            let is_there = |name: &str| {
                node.map_or_else(
                    || context.outputs.contains_key(name),
                    |node| is_before(node, name),
                )
            };
            given(resource_called(name, context)?, &is_there, context)
        }
    }
}

/// The resource that expressions call so.
fn resource_called<'a>(name: &str, context: &'a Context) -> Option<&'a str> {
    let called = |resource: &str| identifier(resource) == name;
    let single = context.outputs.keys().find(|resource| called(resource)).map(String::as_str);
    single.or_else(|| {
        let stems = context.outputs.keys().filter_map(|resource| {
            let (stem, number) = resource.rsplit_once('-')?;
            number.bytes().all(|b| b.is_ascii_digit()).then_some(stem)
        });
        stems.into_iter().find(|stem| called(stem))
    })
}

/// All that a node's expressions know without other resources.
fn scope(node: &Node, context: &Context) -> Scope {
    let used = node.parameters.iter().filter_map(|name| {
        Some((name.clone(), Known::from_serialize(context.parameters.get(name)?)))
    });
    let mut scope: Scope = used.collect();
    scope.insert("environment".to_owned(), environment(context));
    if let Some(index) = node.index {
        scope.insert("index".to_owned(), Known::from(index));
    }
    scope
}

pub(super) fn environment(context: &Context) -> Known {
    Known::from_serialize(json!({"id": context.environment_id, "name": context.environment_name}))
}

/// What a resource gives; none if that is not known. One of several is seen as the first of them, with
/// all in `all`.
pub(super) fn given(
    resource: &str,
    is_there: &dyn Fn(&str) -> bool,
    context: &Context,
) -> Option<Known> {
    if is_there(resource) {
        return context.outputs.get(resource).map(Known::from_serialize);
    }
    let mut all = Vec::new();
    loop {
        let name = format!("{resource}-{}", all.len());
        if !is_there(&name) {
            break;
        }
        all.push(context.outputs.get(&name)?);
    }
    let mut first: Map<String, Value> = all.first().map(|&one| one.clone()).unwrap_or_default();
    first.insert("all".to_owned(), json!(all));
    Some(Known::from_serialize(first))
}

fn map(path: &str, map: &Map<String, Value>, scope: &Scope) -> Result<Map<String, Value>, Invalid> {
    map.iter()
        .map(|(name, one)| Ok((name.clone(), value(&format!("{path}.{name}"), one, scope)?)))
        .collect()
}

/// A value, with values in place of the expressions in it.
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
