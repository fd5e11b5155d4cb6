//! What was said while a resource was made, changed and destroyed: the last lines of it.

use model::{ResourceId, Time};

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// So many lines are kept of a resource.
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
pub async fn append(tx: &mut Tx, id: ResourceId, lines: &[String]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let sql = sql!("SELECT COALESCE(MAX(number), 0) FROM resource_log WHERE resource_id = $1");
    let (mut number, now) = (tx.number(sql, params![id]).await?, tx.now());
    for line in lines {
        number += 1;
        let line: String = line.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
        let sql = sql!(
            "INSERT INTO resource_log (resource_id, number, at, line) VALUES ($1, $2, $3, $4)"
        );
        tx.run(sql, params![id, number, now, line]).await?;
    }
    let sql = sql!("DELETE FROM resource_log WHERE resource_id = $1 AND number <= $2");
    tx.run(sql, params![id, number - KEPT]).await.map(drop)
}

/// Lines after a number, oldest first.
pub async fn list(read: &mut Read, id: ResourceId, after: i64, limit: i64) -> Result<Vec<Line>> {
    let sql = sql!(
        "SELECT number, at, line FROM resource_log WHERE resource_id = $1 AND number > $2 ",
        "ORDER BY number LIMIT $3"
    );
    let rows = read.all(sql, params![id, after, limit]).await?;
    rows.into_iter()
        .map(|mut row| Ok(Line { number: row.take()?, at: row.take()?, line: row.take()? }))
        .collect()
}

/// What was said last: so many lines, oldest first.
pub async fn last(read: &mut Read, id: ResourceId, count: i64) -> Result<Vec<String>> {
    let after = before_last(read, id, count).await?;
    let found = list(read, id, after, count).await?;
    Ok(found.into_iter().map(|line| line.line).collect())
}

/// The number before the last `count` lines.
pub async fn before_last(read: &mut Read, id: ResourceId, count: i64) -> Result<i64> {
    let sql = sql!("SELECT COALESCE(MAX(number), 0) FROM resource_log WHERE resource_id = $1");
    Ok((read.number(sql, params![id]).await? - count).max(0))
}
