//! The filters and tests of expressions. The size of every result is bounded.

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

pub(super) fn add(engine: &mut Environment<'static>) {
    engine.add_filter("default", default);
    engine.add_filter("first", |value: Value| nth(&value, End::First));
    engine.add_filter("last", |value: Value| nth(&value, End::Last));
    engine.add_filter("float", float);
    engine.add_filter("int", int);
    engine.add_filter("join", join);
    engine.add_filter("length", length);
    engine.add_filter("lower", |text: String| bounded(text.to_lowercase()));
    engine.add_filter("upper", |text: String| bounded(text.to_uppercase()));
    engine.add_filter("trim", |text: String| text.trim().to_owned());
    engine.add_filter("replace", replace);
    engine.add_filter("string", |value: Value| to_text(&value));
    engine.add_filter("tojson", |value: Value| json(&value));
    engine.add_filter("times", times);
    engine.add_test("defined", |value: Value| !value.is_undefined());
    engine.add_test("undefined", |value: Value| value.is_undefined());
    engine.add_test("none", |value: Value| value.is_none());
    engine.add_test("string", |value: Value| value.kind() == ValueKind::String);
    engine.add_test("number", |value: Value| value.kind() == ValueKind::Number);
}

fn wrong(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail.into())
}

fn bounded(text: String) -> Result<String, Error> {
    if text.len() <= MAX_TEXT {
        return Ok(text);
    }
    Err(wrong(format!("a string may have at most {} KiB", MAX_TEXT >> 10)))
}

fn json(value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    bounded(serde_json::to_string(value).map_err(|error| wrong(error.to_string()))?)
}

fn to_text(value: &Value) -> Result<String, Error> {
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
    found.ok_or_else(|| wrong("the value is empty"))
}

fn length(value: &Value) -> Result<usize, Error> {
    value.len().ok_or_else(|| wrong("only strings, lists and maps have a length"))
}

fn float(value: &Value) -> Result<f64, Error> {
    let number = match value.as_str() {
        Some(text) => text.trim().parse().ok(),
        None => f64::try_from(value.clone()).ok(),
    };
    number
        .filter(|number| number.is_finite())
        .ok_or_else(|| wrong(format!("{value} is not a number")))
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
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    if fits { Ok(number as i64) } else { Err(wrong(format!("{value} is too large"))) }
}

fn join(value: &Value, between: Option<String>) -> Result<String, Error> {
    let between = between.unwrap_or_default();
    let mut out = String::new();
    for (i, item) in value.try_iter()?.enumerate() {
        if i > 0 {
            out.push_str(&between);
        }
        out = bounded(out + &to_text(&item)?)?;
    }
    Ok(out)
}

fn replace(text: &str, from: &str, to: &str) -> Result<String, Error> {
    let matches = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
    // Checked before allocating the result.
    if text.len().saturating_add(matches.saturating_mul(to.len())) > 2 * MAX_TEXT {
        return Err(wrong(format!("a string may have at most {} KiB", MAX_TEXT >> 10)));
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
