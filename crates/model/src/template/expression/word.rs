//! The words of an expression, looked at before it is compiled: what is not on the lists is refused.

use super::builtin::{FILTERS, TESTS};

/// The longest expression, in bytes.
const MAX_BYTES: usize = 2048;
/// The most words, counting operators and brackets.
const MAX_WORDS: usize = 256;
/// How deep brackets may be nested.
const MAX_DEPTH: usize = 16;

/// Words of the language: nothing can be called like them.
pub(in crate::template) const RESERVED: &[&str] = &[
    "and", "else", "false", "False", "if", "in", "is", "loop", "none", "None", "not", "or", "self",
    "super", "true", "True",
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Word<'a> {
    Name(&'a str),
    Number,
    Quoted,
    Sign(char),
}

/// Where the expression that `text` begins with ends: at a `}}` that belongs to nothing in it.
pub(super) fn end(text: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0usize);
    while let Some((word, length)) = next(&text[at..])? {
        match word {
            Word::Sign('}') if depth == 0 && text[at..].starts_with("}}") => return Some(at),
            Word::Sign('{') => depth += 1,
            Word::Sign('}') => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += length;
    }
    None
}

/// The word that a text begins with, after blanks, and where it ends; the inner none at the end of
/// the text, the outer one if quotes are left open.
#[expect(clippy::option_option, reason = "the end and a fault are different things")]
fn next(text: &str) -> Option<Option<(Word<'_>, usize)>> {
    let blanks = text.len() - text.trim_start().len();
    // A `}}` is looked for where the blanks begin, so they are words of their own.
    if blanks > 0 {
        return Some(Some((Word::Sign(' '), blanks)));
    }
    let Some(first) = text.chars().next() else { return Some(None) };
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let run = || text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    Some(Some(match first {
        '"' | '\'' => (Word::Quoted, quoted(text, first)?),
        c if c.is_ascii_digit() => (Word::Number, run()),
        c if is_part(c) => (Word::Name(&text[..run()]), run()),
        c => (Word::Sign(c), c.len_utf8()),
    }))
}

/// The length of a text in quotes, with both of them.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Is it a name and fields of it, like `bus.host`, and nothing else?
pub(super) fn is_path(source: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(is_part)
            && !RESERVED.contains(&name)
    };
    source.len() <= MAX_WORDS && source.trim().split('.').all(is_name)
}

/// Refuses what is too large, and what is not on the lists.
pub(super) fn check(source: &str) -> Result<(), String> {
    if source.len() > MAX_BYTES {
        return Err(format!("an expression has at most {MAX_BYTES} characters"));
    }
    let words = words(source)?;
    let mut open: Vec<char> = Vec::new();
    for (i, word) in words.iter().enumerate() {
        match (*word, open.last()) {
            (Word::Sign(bracket @ ('(' | '[' | '{')), _) => open.push(bracket),
            (Word::Sign(')' | ']' | '}'), _) => drop(open.pop()),
            // The language panics on some of them: on ''[::-1], for example.
            (Word::Sign(':'), Some('[')) => {
                return Err("slices ([1:2]) are not allowed; only one entry, like [1]".to_owned());
            }
            _ => {}
        }
        if open.len() > MAX_DEPTH {
            return Err(format!("brackets are nested deeper than {MAX_DEPTH}"));
        }
        look(&words[..i], *word)?;
    }
    Ok(())
}

fn words(source: &str) -> Result<Vec<Word<'_>>, String> {
    let (mut words, mut at) = (Vec::new(), 0);
    while let Some((word, length)) = next(&source[at..]).ok_or("quotes are not closed")? {
        at += length;
        if word != Word::Sign(' ') {
            words.push(word);
        }
        if words.len() > MAX_WORDS {
            return Err(format!("an expression has at most {MAX_WORDS} words"));
        }
    }
    if words.is_empty() { Err("the expression is empty".to_owned()) } else { Ok(words) }
}

/// Looks at one word, knowing those before it.
fn look(before: &[Word], word: Word) -> Result<(), String> {
    match (before, word) {
        ([.., Word::Sign('|')], Word::Name(name)) => listed("filter", name, FILTERS),
        ([.., Word::Name("is")], Word::Name("not")) => Ok(()),
        ([.., Word::Name("is")] | [.., Word::Name("is"), Word::Name("not")], Word::Name(name)) => {
            listed("test", name, TESTS)
        }
        // A text times a large number would fill the memory.
        (_, Word::Sign('*')) => {
            Err("* and ** are not allowed; numbers are multiplied by | times(2)".to_owned())
        }
        (_, Word::Sign('(')) if is_call(before) => {
            Err("functions and methods can't be called; there are only filters, like | upper"
                .to_owned())
        }
        _ => Ok(()),
    }
}

fn listed(what: &str, name: &str, list: &[&str]) -> Result<(), String> {
    if list.contains(&name) {
        return Ok(());
    }
    Err(format!("there is no {what} {name}; there are {}", list.join(", ")))
}

/// Words that a bracket may follow without calling them.
const OPERATORS: &[&str] = &["and", "else", "if", "in", "is", "not", "or"];

/// Would a `(` after these words call something?
fn is_call(before: &[Word]) -> bool {
    match before {
        [.., Word::Sign('|') | Word::Name("is"), Word::Name(_)]
        | [.., Word::Name("is"), Word::Name("not"), Word::Name(_)] => false,
        [.., Word::Sign('.'), Word::Name(_)]
        | [.., Word::Sign(')' | ']' | '}') | Word::Quoted | Word::Number] => true,
        [.., Word::Name(name)] => !OPERATORS.contains(name),
        _ => false,
    }
}
