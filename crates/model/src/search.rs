//! The filter language of lists: `name = orders AND (region LIKE 'eu-%' OR owner IN (ann, bob))`.
//!
//! ```text
//! expr      := term ((AND | OR) term)*              AND binds tighter
//! term      := '(' expr ')' | predicate
//! predicate := column op value | column [NOT] IN '(' value (',' value)* ')'
//! op        := '=' | '<>' | LIKE | ILIKE            with % and _
//! value     := bare | quoted
//! bare      := no whitespace, ( ) or ^, and no ' at the start; in lists also no ,
//! quoted    := '…' with \' for a quote
//! ```
//!
//! Keywords and columns are case-insensitive. A search is parsed to an [`Expr`], never to SQL:
//! columns come from the caller's list, and values stay values.

mod matches;
mod order;
mod parser;

use std::fmt;

use serde::Deserialize;

pub use matches::like;
pub use order::{Direction, order};
pub use parser::parse;

/// The maximum number of AND, OR and NOT in a search.
pub const MAX_JOINS: usize = 10;
/// The maximum size of a search, in bytes.
pub const MAX_BYTES: usize = 10_000;
/// The maximum nesting of parentheses.
pub const MAX_DEPTH: usize = 32;

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum Op {
    /// `=`
    #[serde(rename = "=")]
    Eq,
    /// `<>`
    #[serde(rename = "<>")]
    Ne,
    /// `LIKE`: `%` matches any text, `_` any character, and a backslash escapes them.
    #[serde(rename = "like")]
    Like,
    /// `ILIKE`: `LIKE`, case-insensitive.
    #[serde(rename = "ilike")]
    ILike,
    /// `IN` and `NOT IN`
    #[serde(rename = "in")]
    In,
}

impl Op {
    /// All operators.
    pub const ALL: [Op; 5] = [Op::Eq, Op::Ne, Op::Like, Op::ILike, Op::In];

    /// The operator's spelling.
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

/// A parsed search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// All parts match; at least two.
    And(Vec<Expr>),
    /// Any part matches; at least two.
    Or(Vec<Expr>),
    /// A comparison of a column with a value.
    Compare {
        /// The column, as spelled by the caller.
        column: String,
        /// The operator; never [`Op::In`].
        op: Op,
        /// The value.
        value: String,
    },
    /// `IN` or `NOT IN`.
    In {
        /// The column, as spelled by the caller.
        column: String,
        /// Is it `NOT IN`?
        not: bool,
        /// The values; at least one.
        values: Vec<String>,
    },
}

/// A syntax error in a search or an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("position {position}, {}: {reason}", display_token(.token))]
pub struct Error {
    /// The position in characters, from 1.
    pub position: usize,
    /// The token at the position; empty at the end.
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

fn display_token(token: &str) -> String {
    if token.is_empty() { "end of input".to_owned() } else { format!("{token:?}") }
}

impl fmt::Display for Expr {
    /// Formats a search that parses to the same expression, unless a value has a backslash before a
    /// quote or at its end, which quoting can't represent.
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
