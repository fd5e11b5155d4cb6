//! The logs of operations: the last lines of each subject's.

use model::Time;
use model::operation::Subject;

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// Lines kept per subject.
const KEPT: i64 = 5_000;
/// Longer lines are cut.
const LONGEST: usize = 4_000;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its place: the next one has a higher number.
    pub number: i64,
    /// When it was said.
    pub at: Time,
    /// What was said.
    pub line: String,
}

/// Adds lines; the oldest beyond what is kept go.
pub async fn append(tx: &mut Tx, of: impl Into<Subject>, lines: &[String]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let of = of.into();
    let sql = sql!("SELECT COALESCE(MAX(number), 0) FROM operation_log WHERE subject_id = $1");
    let (mut number, now) = (tx.number(sql, params![of]).await?, tx.now());
    for line in lines {
        number += 1;
        let line: String = line.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
        let sql = sql!(
            "INSERT INTO operation_log (subject_id, number, at, line) VALUES ($1, $2, $3, $4)"
        );
        tx.run(sql, params![of, number, now, line]).await?;
    }
    let sql = sql!("DELETE FROM operation_log WHERE subject_id = $1 AND number <= $2");
    tx.run(sql, params![of, number - KEPT]).await.map(drop)
}

/// Lines after a number, oldest first.
pub async fn list(
    read: &mut Read,
    of: impl Into<Subject>,
    after: i64,
    limit: i64,
) -> Result<Vec<Line>> {
    let of = of.into();
    let sql = sql!(
        "SELECT number, at, line FROM operation_log WHERE subject_id = $1 AND number > $2 ",
        "ORDER BY number LIMIT $3"
    );
    let rows = read.all(sql, params![of, after, limit]).await?;
    rows.into_iter()
        .map(|mut row| Ok(Line { number: row.take()?, at: row.take()?, line: row.take()? }))
        .collect()
}

/// What was said last: so many lines, oldest first.
pub async fn last(read: &mut Read, of: impl Into<Subject>, count: i64) -> Result<Vec<String>> {
    let of = of.into();
    let after = before_last(read, of, count).await?;
    let found = list(read, of, after, count).await?;
    Ok(found.into_iter().map(|line| line.line).collect())
}

/// The number before the last `count` lines.
pub async fn before_last(read: &mut Read, of: impl Into<Subject>, count: i64) -> Result<i64> {
    let of = of.into();
    let sql = sql!("SELECT COALESCE(MAX(number), 0) FROM operation_log WHERE subject_id = $1");
    Ok((read.number(sql, params![of]).await? - count).max(0))
}
