//! Files in YAML: read strictly, and refused with the line of what is wrong.
//!
//! The text comes in as an argument: nothing here reads a file. Whatever somebody writes, reading it
//! takes bounded time and memory: size, depth, nodes and what aliases expand to are limited.

mod tree;

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_saphyr::{Error, Options, UserMessageFormatter};

use crate::Invalid;
use tree::Tree;

/// The largest file that is read.
pub const MAX_BYTES: usize = 2 << 20;

/// A file that is not taken, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    /// The file, as it was called by whoever read it.
    pub file: String,
    /// The line of what is wrong, counted from 1, if it is the fault of one.
    pub line: Option<usize>,
    /// Which field, what is wrong with it, what is allowed.
    pub reason: String,
}

impl Refused {
    /// A file that is refused as a whole.
    pub fn new(file: &str, reason: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, reason: reason.into() }
    }
}

impl fmt::Display for Refused {
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

/// Reads a document as `T`, whose shapes deny unknown fields.
pub(crate) fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Refused> {
    if text.len() > MAX_BYTES {
        return Err(Refused::new(file, format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    serde_saphyr::from_str_with_options(text, options()).map_err(|e| unreadable(file, text, &e))
}

/// Reads a document of names and values, in YAML or JSON.
pub fn values(file: &str, text: &str) -> Result<Map<String, Value>, Refused> {
    read(file, text)
}

/// Reads one value, in YAML or JSON.
pub fn value(file: &str, text: &str) -> Result<Value, Refused> {
    read(file, text)
}

/// What a rule found wrong, with the line of the field that it names by its path
/// (`types[0].sizes[1].id`). In the sentence, entries of lists are called by their ids.
pub(crate) fn refuse(file: &str, text: &str, invalid: &Invalid) -> Refused {
    let Some(wrong) = invalid.0.first() else { return Refused::new(file, "not valid") };
    let found = Tree::read(text, options()).map(|tree| tree.find(&wrong.field));
    let (line, place) = found.unwrap_or((None, wrong.field.clone()));
    Refused { file: file.to_owned(), line, reason: at(&place, &wrong.detail) }
}

fn unreadable(file: &str, text: &str, error: &Error) -> Refused {
    let message = error.without_snippet().render_with_formatter(&UserMessageFormatter);
    let location = error.location();
    let place = location.and_then(|at| Tree::read(text, options())?.path_at(&at));
    Refused {
        file: file.to_owned(),
        line: location.and_then(|at| usize::try_from(at.line()).ok()).filter(|&line| line > 0),
        reason: at(&place.unwrap_or_default(), &plain(&message)),
    }
}

fn at(place: &str, detail: &str) -> String {
    if place.is_empty() { detail.to_owned() } else { format!("{place}: {detail}") }
}

/// The parser's sentence without its own words for the place, and with words for its types.
fn plain(message: &str) -> String {
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
        #[expect(dead_code, reason = "only whether it can be read is looked at")]
        name: String,
        #[serde(default)]
        items: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Item {
        #[expect(dead_code, reason = "only whether it can be read is looked at")]
        id: String,
        #[serde(default)]
        size: u32,
    }

    #[track_caller]
    fn refused(text: &str, expect: &str) {
        let refused = read::<Shape>("f.yaml", text).unwrap_err();
        assert_eq!(refused.to_string(), expect, "{text}");
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        refused("name: a\nnam: b\n", "f.yaml:2: unknown field `nam`, expected one of name, items");
        refused("items: []\n", "f.yaml:1: missing field `name`");
        refused("name: a\nname: b\n", "f.yaml:2: duplicate mapping key: name not allowed here");
        refused("name: [a]\n", "f.yaml:1: name: expected string scalar");
        refused(
            "name: a\nitems:\n  - id: x\n    size: -1\n",
            "f.yaml:4: items.x.size: must be a whole number from 0 to 4294967295",
        );
        refused(
            "name: a\nitems:\n  - id: x\n    siz: 1\n",
            "f.yaml:4: items.x: unknown field `siz`, expected one of id, size",
        );
        refused("", "f.yaml:1: unexpected end of file");
        refused("name: !who a\n", "f.yaml:1: unsupported tag `!who`");
    }

    #[test]
    fn rules_are_answered_with_the_line_and_the_ids_on_the_way() {
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
            assert_eq!(refuse("f.yaml", text, &Invalid::new(path, "no")).to_string(), expect);
        }
    }

    #[test]
    fn bombs_are_refused() {
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
            let refused = read::<serde_json::Value>("f.yaml", &text).unwrap_err();
            assert!(refused.reason.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_modest_alias_is_fine() {
        let read = read::<BTreeMap<String, Vec<String>>>("f", "a: &a [x]\nb: *a\n").unwrap();
        assert_eq!(read["b"], ["x"]);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z:\\-\\[\\]{}&* \n#'\"|>!%]{0,60}") {
            if let Err(refused) = read::<Shape>("f.yaml", &text) {
                prop_assert!(refused.to_string().starts_with("f.yaml"));
            }
        }
    }
}
