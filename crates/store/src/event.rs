//! The event log: one entry per change, appended in the change's transaction.
//!
//! Readers follow `seq`. Invariant: a reader that has read up to `seq` never misses a lower one.
//! SQLite serialises transactions, so `seq` is the row id. In PostgreSQL transactions overlap and a
//! row id reflects the time of the write, not of the commit; `seq` is assigned after the commit
//! under a lock (`db::postgres`), and a row without `seq` is not part of the log yet.

use model::event::{Event, Kind};
use model::{OrganizationId, Time};
use serde::Serialize;

use crate::db::{Json, Row, Select, params, sql};
use crate::{Read, Result, Scope, Tx};

/// Filter for lists.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Kind of subject.
    pub kind: Option<String>,
    /// Subject.
    pub subject: Option<String>,
    /// Type, `kind.change`.
    pub change: Option<String>,
    /// Earliest time.
    pub since: Option<Time>,
}

/// Appends a change: the subject's state after it, without secrets.
pub async fn append(
    tx: &mut Tx,
    kind: Kind,
    subject: impl ToString,
    organization: Option<OrganizationId>,
    change: &str,
    data: &impl Serialize,
) -> Result<()> {
    let (at, actor) = (tx.now(), tx.actor().to_string());
    let (subject, change) = (subject.to_string(), format!("{kind}.{change}"));
    tx.run(
        sql!(
            "INSERT INTO event (at, organization_id, actor, kind, subject, change, data) ",
            "VALUES ($1, $2, $3, $4, $5, $6, $7)"
        ),
        params![at, organization, actor, kind, subject, change, Json(data)],
    )
    .await?;
    Ok(())
}

/// Events after `after`, oldest first.
pub async fn list(
    read: &mut Read,
    scope: Scope,
    filter: &Filter,
    after: i64,
    limit: i64,
) -> Result<Vec<Event>> {
    let organization = scope.organization();
    let rows = Select::new(
        "SELECT seq, at, organization_id, actor, kind, subject, change, data FROM event \
         WHERE seq IS NOT NULL",
    )
    .and("seq > ?", Some(&after))
    .and("organization_id = ?", organization.as_ref())
    .and("kind = ?", filter.kind.as_ref())
    .and("subject = ?", filter.subject.as_ref())
    .and("change = ?", filter.change.as_ref())
    .and("at >= ?", filter.since.as_ref())
    .then("ORDER BY seq LIMIT ?", &limit)
    .all(read)
    .await?;
    rows.into_iter().map(from_row).collect()
}

/// The next events of a follower, and the position up to which the log was read: events that the
/// filter excludes are skipped only once.
pub async fn next(
    read: &mut Read,
    scope: Scope,
    filter: &Filter,
    after: i64,
    limit: i64,
) -> Result<(Vec<Event>, i64)> {
    let newest = last(read).await?;
    let found = list(read, scope, filter, after, limit).await?;
    let seen = found.last().map_or(after, |event| event.seq);
    let is_all = i64::try_from(found.len()).is_ok_and(|count| count < limit);
    Ok((found, if is_all { seen.max(newest) } else { seen }))
}

/// Changes after `after`: position, kind, id; oldest first.
pub async fn changes(
    read: &mut Read,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, String, String)>> {
    let sql = sql!("SELECT seq, kind, subject FROM event WHERE seq > $1 ORDER BY seq LIMIT $2");
    let rows = read.all(sql, params![after, limit]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?, row.take()?))).collect()
}

/// Position of the newest event; 0 if there is none.
pub async fn last(read: &mut Read) -> Result<i64> {
    read.number(sql!("SELECT COALESCE(MAX(seq), 0) FROM event"), params![]).await
}

fn from_row(mut row: Row) -> Result<Event> {
    Ok(Event {
        seq: row.take()?,
        at: row.take()?,
        organization_id: row.take()?,
        actor: row.take()?,
        kind: row.take()?,
        subject: row.take()?,
        change: row.take()?,
        data: row.take::<Json<_>>()?.0,
    })
}
