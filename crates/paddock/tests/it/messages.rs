//! Snapshots of every message in the code: errors, hints, notes, statuses and log lines, by crate
//! and file, with placeholders in braces.
//!
//! Messages are found by a scan of the sources, so that none is missing. Help pages, OpenAPI
//! descriptions and SQL are not included.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use super::house::{files, is_source, root};

/// Calls and attributes whose texts no user sees, or sees in other files.
const SKIPPED: &[&str] = &[
    "allow",
    "arg",
    "assert!",
    "command",
    "expect",
    "panic!",
    "path",
    "schema",
    "sql!",
    "unreachable!",
];
const LOGS: &[&str] = &["debug!", "error!", "info!", "trace!", "warn!"];
/// Parts of statements and of markup.
const EXTERNAL_TEXTS: &[&str] = &[
    " = ?",
    " > ?",
    " >= ?",
    "= $",
    "=\"",
    "AND ",
    "CASE WHEN",
    "COALESCE",
    "DELETE ",
    "Example:\n",
    "FROM ",
    "INSERT",
    "ORDER BY",
    "RELEASE",
    "SAVEPOINT",
    "SET ",
    "IS NULL",
    "RETURNING",
    "SELECT",
    "THEN ",
    "UPDATE ",
    "VALUES",
    " IN ('",
    "created_at",
    "json_extract",
    "status <>",
    "started_at",
    "wish_since",
    "table ip",
];

#[test]
fn snapshot_of_every_message_is_current() {
    let mut crates: BTreeMap<String, String> = BTreeMap::new();
    for name in files().iter().filter(|name| is_scanned(name)) {
        let source = fs::read_to_string(root().join(name)).unwrap();
        let messages = messages(without_tests(&source));
        if messages.is_empty() {
            continue;
        }
        let (owner, file) = name["crates/".len()..].split_once("/src/").unwrap();
        let text = crates.entry(owner.to_owned()).or_insert_with(|| {
            format!("Messages of the crate {owner}, by file; {{}} stands for a value.\n")
        });
        write!(text, "\n{file}\n{messages}").unwrap();
    }
    assert!(crates.len() > 5, "{:?}", crates.keys());
    for (name, text) in &crates {
        testing::assert_snapshot(&format!("messages/{name}.txt"), text);
    }
}

fn is_scanned(name: &str) -> bool {
    let is_test = ["/tests", "/testing/", "/sample.rs", "/fixture.rs", "/examples.rs"];
    name.starts_with("crates/")
        && name.contains("/src/")
        && is_source(name)
        && !is_test.iter().any(|part| name.contains(part))
}

/// The source up to its unit tests, which come last.
fn without_tests(source: &str) -> &str {
    let is_block = |at: &usize| {
        source[*at..].lines().nth(1).is_some_and(|next| next.trim_end().ends_with('{'))
    };
    let mut starts = source.match_indices("#[cfg(test)]").map(|(at, _)| at);
    &source[..starts.find(is_block).unwrap_or(source.len())]
}

/// The messages of a file, one per line.
fn messages(source: &str) -> String {
    let mut text = String::new();
    for (calls, literal) in literals(source) {
        let is_skipped = calls.iter().any(|call| SKIPPED.contains(&call.as_str()));
        if is_skipped || !is_message(&literal) {
            continue;
        }
        let is_log = calls.last().is_some_and(|call| LOGS.contains(&call.as_str()));
        let log = if is_log { "log: " } else { "" };
        writeln!(text, "  {log}{}", literal.trim().replace('\n', "\\n")).unwrap();
    }
    text
}

/// Whether a literal is a message: words, and not part of a statement.
fn is_message(literal: &str) -> bool {
    let is_word = |word: &str| word.len() > 1 && word.bytes().all(|b| b.is_ascii_lowercase());
    let words = || literal.split(|c: char| c.is_whitespace() || ",.:;".contains(c));
    literal.trim().contains(char::is_whitespace)
        && words().any(is_word)
        && !EXTERNAL_TEXTS.iter().any(|part| literal.contains(part))
}

/// The string literals of a file, each with the enclosing calls from the outside to the inside.
fn literals(source: &str) -> Vec<(Vec<String>, String)> {
    let (mut found, mut calls, mut name) = (Vec::new(), Vec::new(), String::new());
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        let (length, literal) = token(rest, &name);
        rest = &rest[length..];
        match (literal, next) {
            (Some(literal), _) => {
                found.push((calls.clone(), literal));
                name.clear();
            }
            (None, '(' | '[' | '{') => calls.push(std::mem::take(&mut name)),
            (None, ')' | ']' | '}') => drop(calls.pop()),
            (None, next) if next.is_alphanumeric() || "_!".contains(next) => name.push(next),
            (None, next) if next.is_whitespace() && rest.starts_with(['(', '{']) => {}
            _ => name.clear(),
        }
    }
    found
}

/// Length of the first token, and its text if it is a string.
fn token(rest: &str, name: &str) -> (usize, Option<String>) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if name.is_empty()
        && let Some(raw) = rest.strip_prefix('r')
    {
        let hashes: String = raw.chars().take_while(|c| *c == '#').collect();
        if let Some(body) = raw[hashes.len()..].strip_prefix('"') {
            let length = body.find(&format!("\"{hashes}")).unwrap();
            return (length + 2 * hashes.len() + 3, Some(body[..length].to_owned()));
        }
    }
    if let Some(body) = rest.strip_prefix('"') {
        let (length, text) = string(body);
        return (length + 2, Some(text));
    }
    if let Some(body) = rest.strip_prefix('\'') {
        // Otherwise a lifetime.
        let escaped = usize::from(body.starts_with('\\'));
        let end = body.char_indices().skip(1 + escaped).find(|(_, c)| *c == '\'');
        if let Some((end, _)) = end
            && (escaped == 1 && end < 10 || body[..end].chars().count() == 1)
        {
            return (end + 2, None);
        }
    }
    (rest.chars().next().map_or(1, char::len_utf8), None)
}

/// Length of a literal up to its closing quote, and its text.
fn string(body: &str) -> (usize, String) {
    let mut text = String::new();
    let mut chars = body.char_indices();
    while let Some((at, next)) = chars.next() {
        match next {
            '"' => return (at, text),
            '\\' => match chars.next().unwrap().1 {
                '\n' => {
                    let blanks = chars.as_str().chars().take_while(|c| c.is_whitespace()).count();
                    for _ in 0..blanks {
                        chars.next();
                    }
                }
                'n' => text.push('\n'),
                't' => text.push(' '),
                other => text.push(other),
            },
            next => text.push(next),
        }
    }
    panic!("a literal has no end");
}

#[test]
fn snapshot_scan_finds_literals_with_their_calls() {
    let source = r#"
        // "a comment"
        fn f<'a>(c: &'a str) { warn!(c, "it is {c}"); g('"', "one \
            two"); x.expect("never"); r"raw text"; "\"quoted\" text" }
    "#;
    assert_eq!(messages(source), "  log: it is {c}\n  one two\n  raw text\n  \"quoted\" text\n");
}
