//! Container logs, independent of the runtime.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Time;

/// A position in a log, opaque except to the runtime that wrote it. Unknown ones mean the start.
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
    pub fn from_numbers(one: impl fmt::Display, two: impl fmt::Display) -> Self {
        Self(format!("{one}-{two}"))
    }

    /// The two numbers of the cursor.
    pub fn numbers<A: FromStr, B: FromStr>(&self) -> Option<(A, B)> {
        let (one, two) = self.0.split_once('-')?;
        Some((one.parse().ok()?, two.parse().ok()?))
    }
}

/// Where to start reading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogsFrom {
    /// At the oldest stored line.
    #[default]
    Start,
    /// This many lines before the end.
    Last(usize),
    /// After a previously read line.
    After(Cursor),
}

/// The stream of a line.
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
    /// Time at which it was written.
    pub at: Time,
    /// The stream.
    pub source: Source,
    /// The text.
    pub text: String,
    /// The cursor after this line.
    pub next: Cursor,
}
