//! The rules of one resource or action.

use std::collections::HashSet;

use serde_json::Value;

use super::{description, no_index, no_such};
use crate::template::known::{Known, Uses};
use crate::template::thing::Thing;
use crate::template::{expand, expression, with};
use crate::{Invalid, name};

/// What the expressions of a thing use.
pub(super) struct Used {
    pub(super) with: Uses,
    pub(super) health: Uses,
}

pub(super) fn check(names: &HashSet<&str>, known: &Known, one: &Thing) -> Result<Used, Invalid> {
    description(&format!("{}.description", one.path), one.description)?;
    if let Some(tags) = one.tags {
        name::labels(&format!("{}.tags", one.path), tags)?;
    }
    after(names, one)?;
    let (with, health) = expand::uses(known, one)?;
    if let Some(place) = with.outputs_of.contains(one.name).then(|| with.place(one.name)) {
        let detail = format!("{} does not know itself before it is there", one.name);
        return Err(Invalid::new(place, detail));
    }
    count(known, one)?;
    if one.count.is_none() {
        no_index(&with)?;
        no_index(&health)?;
    }
    told(one)?;
    Ok(Used { with, health })
}

fn after(known: &HashSet<&str>, one: &Thing) -> Result<(), Invalid> {
    for (i, name) in one.after.iter().enumerate() {
        if !known.contains(name.as_str()) {
            let path = format!("{}[{i}]", one.after_path());
            return Err(Invalid::new(path, no_such("resource or group", name, known)));
        }
    }
    Ok(())
}

fn count(known: &Known, one: &Thing) -> Result<(), Invalid> {
    let Some(count) = one.count else { return Ok(()) };
    let path = format!("{}.count", one.path);
    let is_expression = count.as_str().is_some_and(expression::is_in);
    if !is_expression {
        return expand::count_of(&path, count).map(drop);
    }
    let uses = known.uses(&path, count)?;
    let environment = uses.environment.then_some("environment");
    match uses.outputs_of.first().map(String::as_str).or(environment) {
        Some(other) => {
            let detail = format!("how many there are is known before {other} is; use parameters");
            Err(Invalid::new(path, detail))
        }
        None => no_index(&uses),
    }
}

/// What its executor is told: names always, values as far as they are known.
fn told(one: &Thing) -> Result<(), Invalid> {
    let wrong = |invalid| one.placed(invalid);
    with::check_names(one.executor, &one.with).map_err(wrong)?;
    let has_expressions = one.with.values().any(expression::is_within);
    if has_expressions {
        return long_texts(&one.with_path(), &one.with);
    }
    with::check(one.executor, &one.with).map_err(wrong)
}

fn long_texts(path: &str, with: &serde_json::Map<String, Value>) -> Result<(), Invalid> {
    let size: usize = with.values().map(|value| value.to_string().len()).sum();
    if size > 1 << 20 {
        return Err(Invalid::new(path, "must have at most 1 MiB"));
    }
    Ok(())
}
