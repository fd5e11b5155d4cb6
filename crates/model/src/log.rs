//! What containers said, whatever ran them.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Time;

/// A place in a log: short text that only the runtime that wrote it understands. One that it does
/// not understand is the beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub String);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Cursor {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl Cursor {
    /// A cursor of two numbers.
    pub fn of(one: impl fmt::Display, two: impl fmt::Display) -> Self {
        Self(format!("{one}-{two}"))
    }

    /// The two numbers that it was made of.
    pub fn numbers<A: FromStr, B: FromStr>(&self) -> Option<(A, B)> {
        let (one, two) = self.0.split_once('-')?;
        Some((one.parse().ok()?, two.parse().ok()?))
    }
}

/// Where to begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogsFrom {
    /// At the oldest line that is kept.
    #[default]
    Start,
    /// At this many lines before the end.
    Last(usize),
    /// After a line that was read before.
    After(Cursor),
}

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it was written.
    pub at: Time,
    /// Where it came from.
    pub source: Source,
    /// What it says.
    pub text: String,
    /// The place after it: where to go on.
    pub next: Cursor,
}
