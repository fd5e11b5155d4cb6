//! Parameters: what they may be, and what they are set to.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::known::some;
use super::{Parameter, Source, Type};
use crate::Invalid;
use crate::invalid::Check;

/// The largest value of a parameter, as JSON.
const MAX_BYTES: usize = 64 << 10;

impl Type {
    fn words(self) -> &'static str {
        match self {
            Type::String => "a text",
            Type::Integer => "a whole number",
            Type::Number => "a number",
            Type::Boolean => "true or false",
            Type::List => "a list",
            Type::Map => "a map",
        }
    }

    fn takes(self, value: &Value) -> bool {
        match self {
            Type::String => value.is_string(),
            Type::Integer => value.is_i64() || value.is_u64(),
            Type::Number => value.is_number(),
            Type::Boolean => value.is_boolean(),
            Type::List => value.is_array(),
            Type::Map => value.is_object(),
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Type::Integer | Type::Number)
    }
}

/// Checks what a template says of a parameter.
pub(super) fn check(path: &str, one: &Parameter) -> Result<(), Invalid> {
    limits_fit(path, one)?;
    if let Some(list) = &one.one_of {
        if list.is_empty() {
            return Err(Invalid::new(format!("{path}.one_of"), "must have at least one value"));
        }
        for (i, value) in list.iter().enumerate() {
            value_of_type(&format!("{path}.one_of[{i}]"), one, value)?;
        }
    }
    match &one.default {
        Some(default) => fits(&format!("{path}.default"), one, default),
        None => Ok(()),
    }
}

fn limits_fit(path: &str, one: &Parameter) -> Result<(), Invalid> {
    let has_length = matches!(one.of, Type::String | Type::List);
    for (field, is_there, is_fit, of) in [
        ("minimum", one.minimum.is_some(), one.of.is_number(), "numbers"),
        ("maximum", one.maximum.is_some(), one.of.is_number(), "numbers"),
        ("min_length", one.min_length.is_some(), has_length, "texts and lists"),
        ("max_length", one.max_length.is_some(), has_length, "texts and lists"),
    ] {
        if is_there && !is_fit {
            let detail = format!("is for {of} only, and this is {}", one.of.words());
            return Err(Invalid::new(format!("{path}.{field}"), detail));
        }
    }
    for (field, limit) in [("minimum", one.minimum), ("maximum", one.maximum)] {
        if limit.is_some_and(|limit| !limit.is_finite()) {
            return Err(Invalid::new(format!("{path}.{field}"), "must be a number"));
        }
    }
    if one.minimum.zip(one.maximum).is_some_and(|(least, most)| least > most) {
        return Err(Invalid::new(format!("{path}.maximum"), "must not be below minimum"));
    }
    if one.min_length.zip(one.max_length).is_some_and(|(least, most)| least > most) {
        return Err(Invalid::new(format!("{path}.max_length"), "must not be below min_length"));
    }
    Ok(())
}

fn value_of_type(path: &str, one: &Parameter, value: &Value) -> Result<(), Invalid> {
    if !one.of.takes(value) {
        return Err(Invalid::new(path, format!("must be {}", one.of.words())));
    }
    if value.to_string().len() > MAX_BYTES {
        return Err(Invalid::new(path, format!("must have at most {} KiB", MAX_BYTES >> 10)));
    }
    Ok(())
}

/// Checks a value of a parameter.
fn fits(path: &str, one: &Parameter, value: &Value) -> Result<(), Invalid> {
    value_of_type(path, one, value)?;
    let wrong = |detail: String| Err(Invalid::new(path, detail));
    if let Some(number) = value.as_f64() {
        if let Some(least) = one.minimum.filter(|&least| number < least) {
            return wrong(format!("must be at least {least}"));
        }
        if let Some(most) = one.maximum.filter(|&most| number > most) {
            return wrong(format!("must be at most {most}"));
        }
    }
    let length = match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        _ => None,
    };
    let what = if value.is_string() { "characters" } else { "entries" };
    if let Some(length) = length {
        if let Some(least) = one.min_length.filter(|&least| length < least as usize) {
            return wrong(format!("must have at least {least} {what}"));
        }
        if let Some(most) = one.max_length.filter(|&most| length > most as usize) {
            return wrong(format!("must have at most {most} {what}"));
        }
    }
    match &one.one_of {
        Some(list) if !list.contains(value) => {
            let all: Vec<String> = list.iter().map(Value::to_string).collect();
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            wrong(format!("must be one of {}", some(&all)))
        }
        _ => Ok(()),
    }
}

/// The values of all parameters of some templates, with defaults. A parameter that several declare is
/// one: it has the first default, and what all say of it holds.
pub fn parameters(
    sources: &[Source<'_>],
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, Invalid> {
    let declared = || sources.iter().flat_map(|source| &source.template.parameters);
    let mut values = Map::new();
    for (name, one) in declared() {
        let value = given.get(name).or_else(|| values.get(name)).or(one.default.as_ref());
        if let Some(value) = value.cloned() {
            values.insert(name.clone(), value);
        }
    }
    let mut check = Check::default();
    for (name, one) in declared() {
        let path = format!("parameters.{name}");
        check.field(match values.get(name) {
            Some(value) => fits(&path, one, value),
            None => {
                let detail = format!("must be given: {} without a default", one.of.words());
                Err(Invalid::new(path, detail))
            }
        });
    }
    let known: BTreeSet<&str> = declared().map(|(name, _)| name.as_str()).collect();
    let all: Vec<&str> = known.iter().copied().collect();
    for name in given.keys().filter(|name| !known.contains(name.as_str())) {
        let path = format!("parameters.{}", name.escape_default());
        let detail = format!("there is no such parameter; there are {}", some(&all));
        check.field::<()>(Err(Invalid::new(path, detail)));
    }
    check.done().map(|()| values)
}
