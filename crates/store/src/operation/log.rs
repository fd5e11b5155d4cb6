//! Logs of operations: the last lines per subject.

use model::Time;
use model::operation::Subject;

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// Retained lines per subject.
const MAX_LINES: i64 = 5_000;
/// Maximum line length; longer lines are truncated.
const MAX_LINE_LENGTH: usize = 4_000;

/// A log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Position; later lines have higher numbers.
    pub number: i64,
    /// When it was logged.
    pub at: Time,
    /// The text.
    pub line: String,
}

/// Appends lines, and deletes the oldest beyond the retention.
pub async fn append(tx: &mut Tx, subject: impl Into<Subject>, lines: &[String]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let subject = subject.into();
    let sql = sql!("SELECT COALESCE(MAX(number), 0) FROM operation_log WHERE subject_id = $1");
    let (mut number, now) = (tx.number(sql, params![subject]).await?, tx.now());
    for line in lines {
        number += 1;
        let line: String = line.chars().filter(|c| !c.is_control()).take(MAX_LINE_LENGTH).collect();
        let sql = sql!(
            "INSERT INTO operation_log (subject_id, number, at, line) VALUES ($1, $2, $3, $4)"
        );
        tx.run(sql, params![subject, number, now, line]).await?;
    }
    let sql = sql!("DELETE FROM operation_log WHERE subject_id = $1 AND number <= $2");
    tx.run(sql, params![subject, number - MAX_LINES]).await.map(drop)
}

/// Lines after a number, oldest first.
pub async fn list(
    read: &mut Read,
    subject: impl Into<Subject>,
    after: i64,
    limit: i64,
) -> Result<Vec<Line>> {
    let subject = subject.into();
    let sql = sql!(
        "SELECT number, at, line FROM operation_log WHERE subject_id = $1 AND number > $2 ",
        "ORDER BY number LIMIT $3"
    );
    let rows = read.all(sql, params![subject, after, limit]).await?;
    rows.into_iter()
        .map(|mut row| Ok(Line { number: row.take()?, at: row.take()?, line: row.take()? }))
        .collect()
}

/// The last `count` lines, oldest first.
pub async fn last(read: &mut Read, subject: impl Into<Subject>, count: i64) -> Result<Vec<String>> {
    let subject = subject.into();
    let after = before_last(read, subject, count).await?;
    let found = list(read, subject, after, count).await?;
    Ok(found.into_iter().map(|line| line.line).collect())
}

/// The number before the last `count` lines.
pub async fn before_last(read: &mut Read, subject: impl Into<Subject>, count: i64) -> Result<i64> {
    let subject = subject.into();
    let sql = sql!("SELECT COALESCE(MAX(number), 0) FROM operation_log WHERE subject_id = $1");
    Ok((read.number(sql, params![subject]).await? - count).max(0))
}
