//! Expressions in texts: `{{ … }}`, and nothing else of that language.
//!
//! Nothing of the host can be reached: there are no statements, no functions, no methods, no
//! includes, and only the filters and tests that are listed. What an expression can cost is bounded
//! by its length, by fuel, and by the size of every text that comes out.

mod builtin;
mod word;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior};
use serde_json::Value;

pub(super) use word::RESERVED;

/// The longest text that may come out of expressions, and the longest that has some, in bytes.
pub(super) const MAX_TEXT: usize = 64 << 10;

/// How many expressions one text may have.
const MAX_EXPRESSIONS: usize = 256;

/// More instructions than the longest expression has.
const FUEL: u64 = 10_000;

/// What names stand for.
pub(super) type Scope = BTreeMap<String, minijinja::Value>;

static LANGUAGE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut language = Environment::empty();
    language.set_undefined_behavior(UndefinedBehavior::Strict);
    language.set_fuel(Some(FUEL));
    language.set_recursion_limit(32);
    builtin::add(&mut language);
    language
});

#[derive(Debug, PartialEq)]
enum Part<'a> {
    Plain(&'a str),
    Expression(&'a str),
}

/// Is there anything in the text that is not just itself?
pub(super) fn is_in(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

/// Is there an expression anywhere in a value?
pub(super) fn is_within(value: &Value) -> bool {
    match value {
        Value::String(text) => is_in(text),
        Value::Array(items) => items.iter().any(is_within),
        Value::Object(map) => map.values().any(is_within),
        _ => false,
    }
}

/// Checks the expressions of a text, and gives the names that they use. Fields of `environment` are
/// given with it: `environment.id`.
pub(super) fn names(text: &str) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    if !is_in(text) {
        return Ok(names);
    }
    for part in parts(text)? {
        let Part::Expression(source) = part else { continue };
        if word::is_path(source) {
            note(source.trim(), &mut names);
            continue;
        }
        word::check(source)?;
        let compiled = LANGUAGE.compile_expression(source).map_err(|e| plain(source, &e))?;
        compiled.undeclared_variables(true).iter().for_each(|path| note(path, &mut names));
    }
    Ok(names)
}

/// Notes the name that a path begins with.
fn note(path: &str, names: &mut BTreeSet<String>) {
    let first = path.split('.').next().unwrap_or(path);
    if first == "environment" && path != first {
        names.insert(path.to_owned());
    }
    names.insert(first.to_owned());
}

/// The text with values in place of its expressions. A text that is one expression and nothing else
/// becomes what the expression gives; all others stay texts.
pub(super) fn render(text: &str, scope: &Scope) -> Result<Value, String> {
    if !is_in(text) {
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

/// A value within a text: what is no text is written as JSON.
pub(super) fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn too_long() -> String {
    format!("gives more than {} KiB", MAX_TEXT >> 10)
}

fn evaluate(source: &str, scope: &Scope) -> Result<Value, String> {
    let value = if word::is_path(source) {
        follow(source.trim(), scope).map_err(|e| plain(source, &e))?
    } else {
        word::check(source)?;
        let compiled = LANGUAGE.compile_expression(source).map_err(|e| plain(source, &e))?;
        compiled.eval(scope).map_err(|e| plain(source, &e))?
    };
    if value.is_undefined() {
        return Err(format!("{{{{ {} }}}} has no value", source.trim()));
    }
    let value = serde_json::to_value(&value).map_err(|e| format!("gives no value: {e}"))?;
    // A number that is none is written as null.
    if value.is_null() && !source.trim().eq_ignore_ascii_case("none") {
        return Err(format!("{{{{ {} }}}} gives nothing", source.trim()));
    }
    let is_long = match &value {
        Value::String(text) => text.len() > MAX_TEXT,
        Value::Array(_) | Value::Object(_) => value.to_string().len() > MAX_TEXT,
        _ => false,
    };
    if is_long { Err(too_long()) } else { Ok(value) }
}

/// What a name and fields of it stand for: most expressions are no more, and need not be compiled.
fn follow(path: &str, scope: &Scope) -> Result<minijinja::Value, minijinja::Error> {
    let mut parts = path.split('.');
    let first = parts.next().and_then(|name| scope.get(name)).cloned().unwrap_or_default();
    parts.try_fold(first, |value, field| value.get_attr(field))
}

fn plain(source: &str, error: &minijinja::Error) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{{{{ {} }}}}: {}{detail}", source.trim(), error.kind())
}

/// Takes a text apart. An expression ends at the first `}}` that is neither in quotes nor closes maps.
fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    if text.len() > MAX_TEXT {
        let detail = format!("a text with expressions has at most {} KiB", MAX_TEXT >> 10);
        return Err(detail);
    }
    let (mut parts, mut rest, mut expressions) = (Vec::new(), text, 0);
    while let Some(start) = rest.find("{{") {
        push_plain(&mut parts, &rest[..start])?;
        let inner = &rest[start + 2..];
        let end = word::end(inner).ok_or("{{ without its }}")?;
        let source = &inner[..end];
        if source.starts_with(['-', '+']) || source.ends_with(['-', '+']) {
            return Err("blanks can't be trimmed with {{- and -}}; write {{ and }}".to_owned());
        }
        parts.push(Part::Expression(source));
        rest = &inner[end + 2..];
        expressions += 1;
        if expressions > MAX_EXPRESSIONS {
            return Err(format!("at most {MAX_EXPRESSIONS} expressions in one text"));
        }
    }
    push_plain(&mut parts, rest)?;
    Ok(parts)
}

fn push_plain<'a>(parts: &mut Vec<Part<'a>>, text: &'a str) -> Result<(), String> {
    for (mark, what) in [("{%", "statements"), ("{#", "comments")] {
        if text.contains(mark) {
            return Err(format!(
                "{what} ({mark}) are not allowed, only expressions: {{{{ name }}}}; for the \
                 characters themselves write {{{{ \"{mark}\" }}}}"
            ));
        }
    }
    if !text.is_empty() {
        parts.push(Part::Plain(text));
    }
    Ok(())
}
