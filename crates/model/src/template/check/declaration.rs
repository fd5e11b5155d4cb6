//! Validation of one resource or action.

use std::collections::HashSet;

use serde_json::Value;

use super::{description, no_index, unknown_name};
use crate::template::declaration::Declaration;
use crate::template::symbols::{References, Symbols};
use crate::template::{configuration, expand, expression};
use crate::{Invalid, name};

/// Names referenced by the expressions of a declaration.
pub(super) struct Referenced {
    pub(super) with: References,
    pub(super) health: References,
}

pub(super) fn check(
    names: &HashSet<&str>,
    symbols: &Symbols,
    one: &Declaration,
) -> Result<Referenced, Invalid> {
    description(&format!("{}.description", one.path), one.description)?;
    if let Some(tags) = one.tags {
        name::labels(&format!("{}.tags", one.path), tags)?;
    }
    after(names, one)?;
    let (with, health) = expand::references(symbols, one)?;
    if let Some(path) = with.outputs_of.contains(one.name).then(|| with.path_of(one.name)) {
        let detail = format!("{} can't reference its own outputs", one.name);
        return Err(Invalid::new(path, detail));
    }
    count(symbols, one)?;
    if one.count.is_none() {
        no_index(&with)?;
        no_index(&health)?;
    }
    configuration(one)?;
    Ok(Referenced { with, health })
}

fn after(known: &HashSet<&str>, one: &Declaration) -> Result<(), Invalid> {
    for (i, name) in one.after.iter().enumerate() {
        if !known.contains(name.as_str()) {
            let path = format!("{}[{i}]", one.after_path());
            return Err(Invalid::new(path, unknown_name("resource or group", name, known)));
        }
    }
    Ok(())
}

fn count(symbols: &Symbols, one: &Declaration) -> Result<(), Invalid> {
    let Some(count) = one.count else { return Ok(()) };
    let path = format!("{}.count", one.path);
    let is_expression = count.as_str().is_some_and(expression::has_expression);
    if !is_expression {
        return expand::parse_count(&path, count).map(drop);
    }
    let references = symbols.references(&path, count)?;
    let environment = references.environment.then_some("environment");
    match references.outputs_of.first().map(String::as_str).or(environment) {
        Some(other) => {
            let detail = format!("count can't depend on {other}; use parameters only");
            Err(Invalid::new(path, detail))
        }
        None => no_index(&references),
    }
}

/// Checks field names always, and values when none of them is an expression.
fn configuration(one: &Declaration) -> Result<(), Invalid> {
    let wrong = |invalid| one.locate(invalid);
    configuration::check_fields(one.executor, &one.with).map_err(wrong)?;
    let has_expressions = one.with.values().any(expression::value_has_expression);
    if has_expressions {
        return check_size(&one.with_path(), &one.with);
    }
    configuration::check(one.executor, &one.with).map_err(wrong)
}

fn check_size(path: &str, with: &serde_json::Map<String, Value>) -> Result<(), Invalid> {
    let size: usize = with.values().map(|value| value.to_string().len()).sum();
    if size > 1 << 20 {
        return Err(Invalid::new(path, "must not exceed 1 MiB"));
    }
    Ok(())
}
