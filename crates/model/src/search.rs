//! The search language of lists: `name = orders AND (region LIKE 'eu-%' OR owner IN (ann, bob))`.
//!
//! ```text
//! expr      := term ((AND | OR) term)*              AND binds tighter
//! term      := '(' expr ')' | predicate
//! predicate := column op value | column [NOT] IN '(' value (',' value)* ')'
//! op        := '=' | '<>' | LIKE | ILIKE            with % and _
//! value     := bare | quoted
//! bare      := anything without blanks, ( ) and ^, that does not begin with '; in lists also without ,
//! quoted    := '…' with \' for a quote
//! ```
//!
//! Keywords and columns are the same in any case. A search becomes an [`Expr`], never SQL: columns are
//! those that the caller named, and values stay values.

mod matches;
mod order;
mod parser;

use std::fmt;

use serde::Deserialize;

pub use matches::like;
pub use order::{Direction, order};
pub use parser::parse;

/// The most joins of a search: each AND, OR and NOT is one.
pub const MAX_JOINS: usize = 10;
/// The longest search, in bytes.
pub const MAX_BYTES: usize = 10_000;
/// How deep parentheses may be.
pub const MAX_DEPTH: usize = 32;

/// How a column is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum Op {
    /// `=`
    #[serde(rename = "=")]
    Eq,
    /// `<>`
    #[serde(rename = "<>")]
    Ne,
    /// `LIKE`: `%` is any text, `_` any character, and a backslash takes that meaning away.
    #[serde(rename = "like")]
    Like,
    /// `ILIKE`: the same in any case.
    #[serde(rename = "ilike")]
    ILike,
    /// `IN` and `NOT IN`
    #[serde(rename = "in")]
    In,
}

impl Op {
    /// All of them.
    pub const ALL: [Op; 5] = [Op::Eq, Op::Ne, Op::Like, Op::ILike, Op::In];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Op::Eq => "=",
            Op::Ne => "<>",
            Op::Like => "LIKE",
            Op::ILike => "ILIKE",
            Op::In => "IN",
        }
    }
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// All of them; two at least.
    And(Vec<Expr>),
    /// One of them; two at least.
    Or(Vec<Expr>),
    /// A column and a value.
    Compare {
        /// The column, as the caller spells it.
        column: String,
        /// How they are compared; never [`Op::In`].
        op: Op,
        /// The value.
        value: String,
    },
    /// A column and some values.
    In {
        /// The column, as the caller spells it.
        column: String,
        /// Is it `NOT IN`?
        not: bool,
        /// The values; one at least.
        values: Vec<String>,
    },
}

/// Why a text is not a search, or not an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("position {position}, {}: {reason}", shown(.token))]
pub struct Error {
    /// Where, in characters, counted from 1.
    pub position: usize,
    /// What is there; empty at the end.
    pub token: String,
    /// What is wrong and what is allowed.
    pub reason: String,
}

impl Error {
    /// An error at byte `at` of `text`.
    fn new(text: &str, at: usize, reason: impl Into<String>) -> Error {
        let rest = &text[at..];
        let is_end = |c: char| c.is_whitespace() || "(),".contains(c);
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find(is_end).map_or(rest.len(), |end| first + end);
        let end = if rest.starts_with(is_end) { first } else { end };
        Error {
            position: text[..at].chars().count() + 1,
            token: rest[..end].chars().take(40).collect(),
            reason: reason.into(),
        }
    }
}

fn shown(token: &str) -> String {
    if token.is_empty() { "the end".to_owned() } else { format!("{token:?}") }
}

impl fmt::Display for Expr {
    /// As it can be read again; unless a value has a backslash before a quote or at its end, which
    /// quotes can't hold.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::And(parts) => {
                joined(f, parts, " AND ", |part| matches!(part, Expr::And(_) | Expr::Or(_)))
            }
            Expr::Or(parts) => joined(f, parts, " OR ", |part| matches!(part, Expr::Or(_))),
            Expr::Compare { column, op, value } => {
                write!(f, "{column} {} {}", op.as_str(), quoted(value))
            }
            Expr::In { column, not, values } => {
                let values: Vec<_> = values.iter().map(|value| quoted(value)).collect();
                let not = if *not { "NOT " } else { "" };
                write!(f, "{column} {not}IN ({})", values.join(", "))
            }
        }
    }
}

fn joined(
    f: &mut fmt::Formatter<'_>,
    parts: &[Expr],
    join: &str,
    needs_parentheses: fn(&Expr) -> bool,
) -> fmt::Result {
    for (i, part) in parts.iter().enumerate() {
        f.write_str(if i == 0 { "" } else { join })?;
        if needs_parentheses(part) {
            write!(f, "({part})")?;
        } else {
            write!(f, "{part}")?;
        }
    }
    Ok(())
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "\\'"))
}

#[cfg(test)]
mod tests;
