//! The semantics of searches: the reference for what the database returns.

use super::{Expr, Op};

impl Expr {
    /// Does a row match? `get` returns the row's value of a column. A NULL value matches nothing,
    /// not even `<>` and `NOT IN`, as in SQL.
    pub fn matches<'a>(&self, get: &impl Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Expr::And(parts) => parts.iter().all(|part| part.matches(get)),
            Expr::Or(parts) => parts.iter().any(|part| part.matches(get)),
            Expr::Compare { column, op, value } => {
                get(column).is_some_and(|text| compare(text, *op, value))
            }
            Expr::In { column, not, values } => {
                get(column).is_some_and(|text| values.iter().any(|value| value == text) != *not)
            }
        }
    }
}

fn compare(text: &str, op: Op, value: &str) -> bool {
    match op {
        Op::Eq | Op::In => text == value,
        Op::Ne => text != value,
        Op::Like => like(value, text),
        Op::ILike => like(&value.to_lowercase(), &text.to_lowercase()),
    }
}

/// A piece of a pattern.
#[derive(Clone, Copy, PartialEq)]
enum Piece {
    Any,
    One,
    Char(char),
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut chars = pattern.chars();
    let mut pieces = Vec::new();
    while let Some(c) = chars.next() {
        pieces.push(match c {
            '%' => Piece::Any,
            '_' => Piece::One,
            '\\' => Piece::Char(chars.next().unwrap_or('\\')),
            c => Piece::Char(c),
        });
    }
    pieces
}

/// SQL's `LIKE`: `%` matches any text, `_` any character, and a backslash escapes them.
pub fn like(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pieces(pattern), text.chars().collect::<Vec<_>>());
    let (mut p, mut t) = (0, 0);
    // The last % and the end of its match: the only position to backtrack to.
    let mut retry = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(Piece::Any) => {
                retry = Some((p, t));
                p += 1;
            }
            Some(&piece) if piece == Piece::One || piece == Piece::Char(text[t]) => {
                (p, t) = (p + 1, t + 1);
            }
            _ => {
                let Some((any, consumed)) = retry else { return false };
                retry = Some((any, consumed + 1));
                (p, t) = (any + 1, consumed + 1);
            }
        }
    }
    pattern[p..].iter().all(|piece| *piece == Piece::Any)
}
