//! Expressions in strings: `{{ … }}`, a sandboxed subset of Jinja.
//!
//! Expressions can't reach the host: no statements, functions, methods or includes, and only the
//! listed filters and tests. Their cost is bounded by their length, by fuel, and by the size of
//! every resulting string.

mod builtin;
mod token;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior};
use serde_json::Value;

pub(super) use token::RESERVED;

/// The maximum size of a string with expressions, before and after evaluation, in bytes.
pub(super) const MAX_TEXT: usize = 64 << 10;

/// The maximum number of expressions in one string.
const MAX_EXPRESSIONS: usize = 256;

/// More instructions than the longest expression has.
const FUEL: u64 = 10_000;

/// The values of names.
pub(super) type Scope = BTreeMap<String, minijinja::Value>;

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::empty();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_fuel(Some(FUEL));
    engine.set_recursion_limit(32);
    builtin::add(&mut engine);
    engine
});

#[derive(Debug, PartialEq)]
enum Part<'a> {
    Plain(&'a str),
    Expression(&'a str),
}

/// Does the string contain anything but plain text?
pub(super) fn has_expression(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

/// Does a value contain an expression anywhere?
pub(super) fn value_has_expression(value: &Value) -> bool {
    match value {
        Value::String(text) => has_expression(text),
        Value::Array(items) => items.iter().any(value_has_expression),
        Value::Object(map) => map.values().any(value_has_expression),
        _ => false,
    }
}

/// Checks the expressions of a string and returns the names they reference. Fields of `environment`
/// are included: `environment.id`.
pub(super) fn names(text: &str) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    if !has_expression(text) {
        return Ok(names);
    }
    for part in parts(text)? {
        let Part::Expression(source) = part else { continue };
        if token::is_path(source) {
            add_name(source.trim(), &mut names);
            continue;
        }
        token::check(source)?;
        let compiled = ENGINE.compile_expression(source).map_err(|e| format_error(source, &e))?;
        compiled.undeclared_variables(true).iter().for_each(|path| add_name(path, &mut names));
    }
    Ok(names)
}

/// Adds the first name of a path.
fn add_name(path: &str, names: &mut BTreeSet<String>) {
    let first = path.split('.').next().unwrap_or(path);
    if first == "environment" && path != first {
        names.insert(path.to_owned());
    }
    names.insert(first.to_owned());
}

/// Evaluates the expressions of a string. A string that consists of one expression keeps the type
/// of its value; all others stay strings.
pub(super) fn render(text: &str, scope: &Scope) -> Result<Value, String> {
    if !has_expression(text) {
        return Ok(Value::String(text.to_owned()));
    }
    let parts = parts(text)?;
    if let [Part::Expression(source)] = parts[..] {
        return evaluate(source, scope);
    }
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Plain(plain) => out.push_str(plain),
            Part::Expression(source) => out.push_str(&as_text(evaluate(source, scope)?)),
        }
        if out.len() > MAX_TEXT {
            return Err(too_long());
        }
    }
    Ok(Value::String(out))
}

/// A value as part of a string: values other than strings are written as JSON.
pub(super) fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn too_long() -> String {
    format!("evaluates to more than {} KiB", MAX_TEXT >> 10)
}

fn evaluate(source: &str, scope: &Scope) -> Result<Value, String> {
    let value = if token::is_path(source) {
        lookup_path(source.trim(), scope).map_err(|e| format_error(source, &e))?
    } else {
        token::check(source)?;
        let compiled = ENGINE.compile_expression(source).map_err(|e| format_error(source, &e))?;
        compiled.eval(scope).map_err(|e| format_error(source, &e))?
    };
    if value.is_undefined() {
        return Err(format!("{{{{ {} }}}} has no value", source.trim()));
    }
    let value =
        serde_json::to_value(&value).map_err(|e| format!("can't be written as JSON: {e}"))?;
    // NaN and infinity are serialised as null.
    if value.is_null() && !source.trim().eq_ignore_ascii_case("none") {
        return Err(format!("{{{{ {} }}}} evaluates to null", source.trim()));
    }
    let is_long = match &value {
        Value::String(text) => text.len() > MAX_TEXT,
        Value::Array(_) | Value::Object(_) => value.to_string().len() > MAX_TEXT,
        _ => false,
    };
    if is_long { Err(too_long()) } else { Ok(value) }
}

/// The value of a name and its fields: most expressions are paths, and need no compilation.
fn lookup_path(path: &str, scope: &Scope) -> Result<minijinja::Value, minijinja::Error> {
    let mut parts = path.split('.');
    let first = parts.next().and_then(|name| scope.get(name)).cloned().unwrap_or_default();
    parts.try_fold(first, |value, field| value.get_attr(field))
}

fn format_error(source: &str, error: &minijinja::Error) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{{{{ {} }}}}: {}{detail}", source.trim(), error.kind())
}

/// Splits a string. An expression ends at the first `}}` that is neither quoted nor closes a map.
fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    if text.len() > MAX_TEXT {
        let detail = format!("a string with expressions may have at most {} KiB", MAX_TEXT >> 10);
        return Err(detail);
    }
    let (mut parts, mut rest, mut expressions) = (Vec::new(), text, 0);
    while let Some(start) = rest.find("{{") {
        push_plain(&mut parts, &rest[..start])?;
        let inner = &rest[start + 2..];
        let end = token::find_end(inner).ok_or("unclosed {{")?;
        let source = &inner[..end];
        if source.starts_with(['-', '+']) || source.ends_with(['-', '+']) {
            return Err(
                "whitespace control ({{- and -}}) is not supported; write {{ and }}".to_owned()
            );
        }
        parts.push(Part::Expression(source));
        rest = &inner[end + 2..];
        expressions += 1;
        if expressions > MAX_EXPRESSIONS {
            return Err(format!("a string may have at most {MAX_EXPRESSIONS} expressions"));
        }
    }
    push_plain(&mut parts, rest)?;
    Ok(parts)
}

fn push_plain<'a>(parts: &mut Vec<Part<'a>>, text: &'a str) -> Result<(), String> {
    for (mark, what) in [("{%", "statements"), ("{#", "comments")] {
        if text.contains(mark) {
            return Err(format!(
                "{what} ({mark}) are not allowed, only expressions: {{{{ name }}}}; to write the \
                 characters literally, use {{{{ \"{mark}\" }}}}"
            ));
        }
    }
    if !text.is_empty() {
        parts.push(Part::Plain(text));
    }
    Ok(())
}
