//! The event log: one entry for every change, appended in the change's own transaction.
//!
//! Readers go by `seq`. It must be that whoever has read up to `seq` never misses a lower one. In
//! SQLite transactions come one by one, so `seq` is the row's number. In PostgreSQL they overlap and
//! a row's number says when it was written, not when it was committed; `seq` is given after the
//! commit by one at a time (`db::postgres`), and a row without one is not part of the log yet.

use model::event::{Event, Kind};
use model::{OrganizationId, Time};
use serde::Serialize;

use crate::db::{Json, Row, Select, params, sql};
use crate::{Read, Result, Scope, Tx};

/// Which events are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of that kind of subject.
    pub kind: Option<String>,
    /// Of that subject.
    pub subject: Option<String>,
    /// Of that type, `kind.change`.
    pub change: Option<String>,
    /// Not before that time.
    pub since: Option<Time>,
}

/// Appends what changed: the subject's state after the change, without secrets.
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

/// The next events for who follows the log, and up to where it was read for them: what is not wanted
/// is passed over once, not each time.
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

/// What changed after `after`: its place in the log, its kind, its id; oldest first.
pub async fn changes(
    read: &mut Read,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, String, String)>> {
    let sql = sql!("SELECT seq, kind, subject FROM event WHERE seq > $1 ORDER BY seq LIMIT $2");
    let rows = read.all(sql, params![after, limit]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?, row.take()?))).collect()
}

/// The place of the newest event; 0 when there is none.
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
