//! Tokenises an expression and rejects everything that is not on the allow-lists, before
//! compilation.

use super::builtin::{FILTERS, TESTS};

/// The maximum size of an expression, in bytes.
const MAX_BYTES: usize = 2048;
/// The maximum number of tokens, including operators and brackets.
const MAX_TOKENS: usize = 256;
/// The maximum nesting of brackets.
const MAX_DEPTH: usize = 16;

/// Keywords, which are not allowed as names.
pub(in crate::template) const RESERVED: &[&str] = &[
    "and", "else", "false", "False", "if", "in", "is", "loop", "none", "None", "not", "or", "self",
    "super", "true", "True",
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    Name(&'a str),
    Number,
    Quoted,
    Sign(char),
}

/// The end of the expression at the start of `text`: a `}}` that does not close a map in it.
pub(super) fn find_end(text: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0usize);
    while let Some((token, length)) = next(&text[at..])? {
        match token {
            Token::Sign('}') if depth == 0 && text[at..].starts_with("}}") => return Some(at),
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += length;
    }
    None
}

/// The first token and its length; the inner `None` at the end of the text, the outer `None` for an
/// unclosed quote.
#[expect(clippy::option_option, reason = "the end and an error are different outcomes")]
fn next(text: &str) -> Option<Option<(Token<'_>, usize)>> {
    let whitespace = text.len() - text.trim_start().len();
    // `find_end` looks for `}}` at every token, so whitespace is a token too.
    if whitespace > 0 {
        return Some(Some((Token::Sign(' '), whitespace)));
    }
    let Some(first) = text.chars().next() else { return Some(None) };
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let run = || text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    Some(Some(match first {
        '"' | '\'' => (Token::Quoted, quoted(text, first)?),
        c if c.is_ascii_digit() => (Token::Number, run()),
        c if is_part(c) => (Token::Name(&text[..run()]), run()),
        c => (Token::Sign(c), c.len_utf8()),
    }))
}

/// The length of a quoted string, including the quotes.
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

/// Is it only a path, like `bus.host`?
pub(super) fn is_path(source: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(is_part)
            && !RESERVED.contains(&name)
    };
    source.len() <= MAX_TOKENS && source.trim().split('.').all(is_name)
}

/// Rejects expressions that are too large or use anything that is not allowed.
pub(super) fn check(source: &str) -> Result<(), String> {
    if source.len() > MAX_BYTES {
        return Err(format!("an expression may have at most {MAX_BYTES} characters"));
    }
    let tokens = tokens(source)?;
    let mut open: Vec<char> = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        match (*token, open.last()) {
            (Token::Sign(bracket @ ('(' | '[' | '{')), _) => open.push(bracket),
            (Token::Sign(')' | ']' | '}'), _) => drop(open.pop()),
            // minijinja panics on some of them: on ''[::-1], for example.
            (Token::Sign(':'), Some('[')) => {
                return Err("slices ([1:2]) are not allowed; use an index, like [1]".to_owned());
            }
            _ => {}
        }
        if open.len() > MAX_DEPTH {
            return Err(format!("brackets are nested deeper than {MAX_DEPTH} levels"));
        }
        check_token(&tokens[..i], *token)?;
    }
    Ok(())
}

fn tokens(source: &str) -> Result<Vec<Token<'_>>, String> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some((token, length)) = next(&source[at..]).ok_or("unclosed quote")? {
        at += length;
        if token != Token::Sign(' ') {
            tokens.push(token);
        }
        if tokens.len() > MAX_TOKENS {
            return Err(format!("an expression may have at most {MAX_TOKENS} tokens"));
        }
    }
    if tokens.is_empty() { Err("the expression is empty".to_owned()) } else { Ok(tokens) }
}

/// Checks a token in the context of its predecessors.
fn check_token(before: &[Token], token: Token) -> Result<(), String> {
    match (before, token) {
        ([.., Token::Sign('|')], Token::Name(name)) => check_listed("filter", name, FILTERS),
        ([.., Token::Name("is")], Token::Name("not")) => Ok(()),
        (
            [.., Token::Name("is")] | [.., Token::Name("is"), Token::Name("not")],
            Token::Name(name),
        ) => check_listed("test", name, TESTS),
        // A string times a large number would exhaust the memory.
        (_, Token::Sign('*')) => {
            Err("* and ** are not allowed; multiply numbers with | times(2)".to_owned())
        }
        (_, Token::Sign('(')) if is_call(before) => {
            Err("functions and methods can't be called; use filters, like | upper".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_listed(what: &str, name: &str, list: &[&str]) -> Result<(), String> {
    if list.contains(&name) {
        return Ok(());
    }
    Err(format!("unknown {what} {name}; expected one of {}", list.join(", ")))
}

/// Keywords that a bracket may follow without being a call.
const OPERATORS: &[&str] = &["and", "else", "if", "in", "is", "not", "or"];

/// Would a `(` after these tokens be a call?
fn is_call(before: &[Token]) -> bool {
    match before {
        [.., Token::Sign('|') | Token::Name("is"), Token::Name(_)]
        | [.., Token::Name("is"), Token::Name("not"), Token::Name(_)] => false,
        [.., Token::Sign('.'), Token::Name(_)]
        | [.., Token::Sign(')' | ']' | '}') | Token::Quoted | Token::Number] => true,
        [.., Token::Name(name)] => !OPERATORS.contains(name),
        _ => false,
    }
}
