//! The few filters and tests that expressions have. None gives more than is put in, or only up to a limit.

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Value};

use super::MAX_TEXT;

/// All filters.
pub(super) const FILTERS: &[&str] = &[
    "default", "first", "float", "int", "join", "last", "length", "lower", "replace", "string",
    "times", "tojson", "trim", "upper",
];

/// All tests.
pub(super) const TESTS: &[&str] = &["defined", "undefined", "none", "string", "number"];

pub(super) fn add(language: &mut Environment<'static>) {
    language.add_filter("default", default);
    language.add_filter("first", |value: Value| nth(&value, End::First));
    language.add_filter("last", |value: Value| nth(&value, End::Last));
    language.add_filter("float", float);
    language.add_filter("int", int);
    language.add_filter("join", join);
    language.add_filter("length", length);
    language.add_filter("lower", |text: String| bounded(text.to_lowercase()));
    language.add_filter("upper", |text: String| bounded(text.to_uppercase()));
    language.add_filter("trim", |text: String| text.trim().to_owned());
    language.add_filter("replace", replace);
    language.add_filter("string", |value: Value| text_of(&value));
    language.add_filter("tojson", |value: Value| json(&value));
    language.add_filter("times", times);
    language.add_test("defined", |value: Value| !value.is_undefined());
    language.add_test("undefined", |value: Value| value.is_undefined());
    language.add_test("none", |value: Value| value.is_none());
    language.add_test("string", |value: Value| value.kind() == ValueKind::String);
    language.add_test("number", |value: Value| value.kind() == ValueKind::Number);
}

fn wrong(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail.into())
}

fn bounded(text: String) -> Result<String, Error> {
    if text.len() <= MAX_TEXT {
        return Ok(text);
    }
    Err(wrong(format!("a text has at most {} KiB", MAX_TEXT >> 10)))
}

fn json(value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    bounded(serde_json::to_string(value).map_err(|error| wrong(error.to_string()))?)
}

fn text_of(value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => bounded(text.to_owned()),
        None => json(value),
    }
}

fn default(value: Value, other: Value) -> Value {
    if value.is_undefined() { other } else { value }
}

#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

fn nth(value: &Value, end: End) -> Result<Value, Error> {
    let found = match (value.as_str(), end) {
        (Some(text), End::First) => text.chars().next().map(|c| Value::from(c.to_string())),
        (Some(text), End::Last) => text.chars().next_back().map(|c| Value::from(c.to_string())),
        (None, End::First) => value.try_iter()?.next(),
        (None, End::Last) => value.try_iter()?.last(),
    };
    found.ok_or_else(|| wrong("it is empty"))
}

fn length(value: &Value) -> Result<usize, Error> {
    value.len().ok_or_else(|| wrong("only texts, lists and maps have a length"))
}

fn float(value: &Value) -> Result<f64, Error> {
    let number = match value.as_str() {
        Some(text) => text.trim().parse().ok(),
        None => f64::try_from(value.clone()).ok(),
    };
    number.filter(|number| number.is_finite()).ok_or_else(|| wrong(format!("{value} is no number")))
}

fn int(value: &Value) -> Result<i64, Error> {
    if let Some(whole) = value.as_i64() {
        return Ok(whole);
    }
    if let Some(whole) = value.as_str().and_then(|text| text.trim().parse().ok()) {
        return Ok(whole);
    }
    let number = float(value)?.trunc();
    let fits = (-9_007_199_254_740_992.0..=9_007_199_254_740_992.0).contains(&number);
    #[expect(clippy::cast_possible_truncation, reason = "it was checked that it fits")]
    if fits { Ok(number as i64) } else { Err(wrong(format!("{value} is too large"))) }
}

fn join(value: &Value, between: Option<String>) -> Result<String, Error> {
    let between = between.unwrap_or_default();
    let mut out = String::new();
    for (i, item) in value.try_iter()?.enumerate() {
        if i > 0 {
            out.push_str(&between);
        }
        out = bounded(out + &text_of(&item)?)?;
    }
    Ok(out)
}

fn replace(text: &str, from: &str, to: &str) -> Result<String, Error> {
    let matches = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
    // Looked at before anything is made.
    if text.len().saturating_add(matches.saturating_mul(to.len())) > 2 * MAX_TEXT {
        return Err(wrong(format!("a text has at most {} KiB", MAX_TEXT >> 10)));
    }
    bounded(text.replace(from, to))
}

fn times(a: &Value, b: &Value) -> Result<Value, Error> {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        let product =
            a.checked_mul(b).ok_or_else(|| wrong(format!("{a} times {b} is too large")))?;
        return Ok(Value::from(product));
    }
    let is_number = |value: &Value| value.kind() == ValueKind::Number;
    if is_number(a) && is_number(b) {
        return Ok(Value::from(float(a)? * float(b)?));
    }
    Err(wrong("only numbers can be multiplied"))
}
