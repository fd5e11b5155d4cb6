//! Strict YAML parsing, with the line of every error.
//!
//! The text is an argument: nothing here reads files. Parsing takes bounded time and memory: size,
//! depth, nodes and alias expansion are limited.

mod tree;

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_saphyr::{Error, Options, UserMessageFormatter};

use crate::Invalid;
use tree::Tree;

/// The maximum size of a file.
pub const MAX_BYTES: usize = 2 << 20;

/// The rejection of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FileError {
    /// The name of the file, as given by the caller.
    pub file: String,
    /// The line of the error, from 1, if it has one.
    pub line: Option<usize>,
    /// The field, what is wrong, and what is allowed.
    pub reason: String,
}

impl FileError {
    /// An error that concerns the whole file.
    pub fn new(file: &str, reason: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, reason: reason.into() }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.reason),
            None => write!(f, "{}: {}", self.file, self.reason),
        }
    }
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: 32, flow_nesting_limit: 32, max_nodes: 100_000, max_total_scalar_bytes: 4 * MAX_BYTES },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 20_000,
            max_replay_stack_depth: 8,
        },
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// Deserialises a document. `T` should deny unknown fields.
pub(crate) fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, FileError> {
    if text.len() > MAX_BYTES {
        return Err(FileError::new(file, format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    serde_saphyr::from_str_with_options(text, options()).map_err(|e| parse_error(file, text, &e))
}

/// Reads a map in YAML or JSON.
pub fn values(file: &str, text: &str) -> Result<Map<String, Value>, FileError> {
    read(file, text)
}

/// Reads a value in YAML or JSON.
pub fn value(file: &str, text: &str) -> Result<Value, FileError> {
    read(file, text)
}

/// Converts a validation error: adds the line of the field at its path (`types[0].sizes[1].id`),
/// and replaces list positions in the path by ids.
pub(crate) fn file_error(file: &str, text: &str, invalid: &Invalid) -> FileError {
    let Some(wrong) = invalid.0.first() else { return FileError::new(file, "not valid") };
    let found = Tree::read(text, options()).map(|tree| tree.find(&wrong.field));
    let (line, path) = found.unwrap_or((None, wrong.field.clone()));
    FileError { file: file.to_owned(), line, reason: with_path(&path, &wrong.detail) }
}

fn parse_error(file: &str, text: &str, error: &Error) -> FileError {
    let message = error.without_snippet().render_with_formatter(&UserMessageFormatter);
    let location = error.location();
    let path = location.and_then(|at| Tree::read(text, options())?.path_at(&at));
    FileError {
        file: file.to_owned(),
        line: location.and_then(|at| usize::try_from(at.line()).ok()).filter(|&line| line > 0),
        reason: with_path(&path.unwrap_or_default(), &simplify(&message)),
    }
}

fn with_path(path: &str, detail: &str) -> String {
    if path.is_empty() { detail.to_owned() } else { format!("{path}: {detail}") }
}

/// The parser's message without its location, and with integer types spelled out.
fn simplify(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    let kind = message.strip_prefix("invalid ").unwrap_or_default();
    match kind.strip_prefix(['u', 'i']).and_then(|bits| bits.parse::<u32>().ok()) {
        Some(bits) if kind.starts_with('u') => {
            format!("must be a whole number from 0 to {}", u64::MAX >> (64 - bits.clamp(1, 64)))
        }
        Some(_) => "must be a whole number".to_owned(),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shape {
        #[expect(dead_code, reason = "only deserialised")]
        name: String,
        #[serde(default)]
        items: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Item {
        #[expect(dead_code, reason = "only deserialised")]
        id: String,
        #[serde(default)]
        size: u32,
    }

    #[track_caller]
    fn rejects(text: &str, expect: &str) {
        let error = read::<Shape>("f.yaml", text).unwrap_err();
        assert_eq!(error.to_string(), expect, "{text}");
    }

    #[test]
    fn parse_errors_have_lines() {
        rejects("name: a\nnam: b\n", "f.yaml:2: unknown field `nam`, expected one of name, items");
        rejects("items: []\n", "f.yaml:1: missing field `name`");
        rejects("name: a\nname: b\n", "f.yaml:2: duplicate mapping key: name not allowed here");
        rejects("name: [a]\n", "f.yaml:1: name: expected string scalar");
        rejects(
            "name: a\nitems:\n  - id: x\n    size: -1\n",
            "f.yaml:4: items.x.size: must be a whole number from 0 to 4294967295",
        );
        rejects(
            "name: a\nitems:\n  - id: x\n    siz: 1\n",
            "f.yaml:4: items.x: unknown field `siz`, expected one of id, size",
        );
        rejects("", "f.yaml:1: unexpected end of file");
        rejects("name: !who a\n", "f.yaml:1: unsupported tag `!who`");
    }

    #[test]
    fn validation_errors_have_lines_and_ids() {
        let text = "name: a\nitems:\n  - id: x\n  - id: y\n    size: 7\n";
        let two = read::<Shape>("f.yaml", text).unwrap().items;
        assert_eq!(two[1].size, 7);
        for (path, expect) in [
            ("items[1].size", "f.yaml:5: items.y.size: no"),
            ("items[1].absent", "f.yaml:4: items.y.absent: no"),
            ("name", "f.yaml:1: name: no"),
            ("items", "f.yaml:2: items: no"),
            ("items[9]", "f.yaml:2: items[9]: no"),
        ] {
            assert_eq!(file_error("f.yaml", text, &Invalid::new(path, "no")).to_string(), expect);
        }
    }

    #[test]
    fn bombs_are_rejected() {
        let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for i in 1..9 {
            let alias = format!("*a{}, ", i - 1).repeat(9);
            laughs = format!("{laughs}a{i}: &a{i} [{}]\n", alias.trim_end_matches(", "));
        }
        let deep = "[".repeat(100_000);
        let wide = "- x\n".repeat(120_000);
        let long = "#".repeat(MAX_BYTES + 1);
        for (text, why) in [
            (laughs, "replayed"),
            (deep, "recursion"),
            (wide, "Nodes"),
            (long, "larger than 2 MiB"),
        ] {
            let error = read::<serde_json::Value>("f.yaml", &text).unwrap_err();
            assert!(error.reason.contains(why), "{error}");
        }
    }

    #[test]
    fn small_alias_is_expanded() {
        let read = read::<BTreeMap<String, Vec<String>>>("f", "a: &a [x]\nb: *a\n").unwrap();
        assert_eq!(read["b"], ["x"]);
    }

    proptest! {
        #[test]
        fn no_input_panics(text in "[a-z:\\-\\[\\]{}&* \n#'\"|>!%]{0,60}") {
            if let Err(error) = read::<Shape>("f.yaml", &text) {
                prop_assert!(error.to_string().starts_with("f.yaml"));
            }
        }
    }
}
