//! Parameters: validation of their declarations and values.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::symbols::abbreviate;
use super::{Parameter, Source, Type};
use crate::Invalid;
use crate::invalid::Check;

/// The maximum size of a parameter's value, as JSON.
const MAX_BYTES: usize = 64 << 10;

impl Type {
    fn description(self) -> &'static str {
        match self {
            Type::String => "a string",
            Type::Integer => "a whole number",
            Type::Number => "a number",
            Type::Boolean => "true or false",
            Type::List => "a list",
            Type::Map => "a map",
        }
    }

    fn accepts(self, value: &Value) -> bool {
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

/// Checks the declaration of a parameter.
pub(super) fn check(path: &str, one: &Parameter) -> Result<(), Invalid> {
    check_constraints(path, one)?;
    if let Some(list) = &one.one_of {
        if list.is_empty() {
            return Err(Invalid::new(format!("{path}.one_of"), "must have at least one value"));
        }
        for (i, value) in list.iter().enumerate() {
            check_type(&format!("{path}.one_of[{i}]"), one, value)?;
        }
    }
    match &one.default {
        Some(default) => check_value(&format!("{path}.default"), one, default),
        None => Ok(()),
    }
}

fn check_constraints(path: &str, one: &Parameter) -> Result<(), Invalid> {
    let has_length = matches!(one.value_type, Type::String | Type::List);
    for (field, is_set, is_applicable, types) in [
        ("minimum", one.minimum.is_some(), one.value_type.is_number(), "numbers"),
        ("maximum", one.maximum.is_some(), one.value_type.is_number(), "numbers"),
        ("min_length", one.min_length.is_some(), has_length, "strings and lists"),
        ("max_length", one.max_length.is_some(), has_length, "strings and lists"),
    ] {
        if is_set && !is_applicable {
            let detail = format!(
                "is only allowed for {types}, and this parameter is {}",
                one.value_type.description()
            );
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

fn check_type(path: &str, one: &Parameter, value: &Value) -> Result<(), Invalid> {
    if !one.value_type.accepts(value) {
        return Err(Invalid::new(path, format!("must be {}", one.value_type.description())));
    }
    if value.to_string().len() > MAX_BYTES {
        return Err(Invalid::new(path, format!("must not exceed {} KiB", MAX_BYTES >> 10)));
    }
    Ok(())
}

/// Checks the value of a parameter.
fn check_value(path: &str, one: &Parameter, value: &Value) -> Result<(), Invalid> {
    check_type(path, one, value)?;
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
    let unit = if value.is_string() { "characters" } else { "entries" };
    if let Some(length) = length {
        if let Some(least) = one.min_length.filter(|&least| length < least as usize) {
            return wrong(format!("must have at least {least} {unit}"));
        }
        if let Some(most) = one.max_length.filter(|&most| length > most as usize) {
            return wrong(format!("must have at most {most} {unit}"));
        }
    }
    match &one.one_of {
        Some(list) if !list.contains(value) => {
            let all: Vec<String> = list.iter().map(Value::to_string).collect();
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            wrong(format!("must be one of {}", abbreviate(&all)))
        }
        _ => Ok(()),
    }
}

/// The values of all parameters of several templates, including defaults. A parameter that several
/// declare has the default of the first and must satisfy the constraints of all.
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
            Some(value) => check_value(&path, one, value),
            None => {
                let detail =
                    format!("is required: {} without a default", one.value_type.description());
                Err(Invalid::new(path, detail))
            }
        });
    }
    let known: BTreeSet<&str> = declared().map(|(name, _)| name.as_str()).collect();
    let all: Vec<&str> = known.iter().copied().collect();
    for name in given.keys().filter(|name| !known.contains(name.as_str())) {
        let path = format!("parameters.{}", name.escape_default());
        let detail = format!("unknown parameter; available: {}", abbreviate(&all));
        check.field::<()>(Err(Invalid::new(path, detail)));
    }
    check.done().map(|()| values)
}
