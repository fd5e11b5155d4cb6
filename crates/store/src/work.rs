//! The work queue: which keys to reconcile, when, and who has claimed them.
//!
//! One row per key. Waking a key twice before it runs causes one run, at the earlier time. Waking
//! it while it runs causes another run. An expired lease can be claimed by anyone; the old holder
//! has a stale fencing token and changes nothing.

use std::time::Duration;

use model::Time;
use model::work::{Key, Lane};

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// A claimed key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The key to reconcile.
    pub key: Key,
    /// Consecutive failures.
    pub attempts: i64,
    /// When it was due; the delay measures the load.
    pub due_at: Time,
    revision: i64,
    fence: i64,
}

/// Wakes a key: it is reconciled once this transaction is committed.
pub fn wake(tx: &mut Tx, lane: Lane, key: Key) {
    let now = tx.now();
    wake_at(tx, lane, key, now);
}

/// Wakes a key at a time; an earlier time stays.
pub fn wake_at(tx: &mut Tx, lane: Lane, key: Key, at: Time) {
    tx.wake(key, lane, at);
}

/// Writes a wake-up: at the end of its transaction, in key order, to avoid deadlocks between
/// transactions that wake the same keys.
pub(crate) async fn write(tx: &mut Tx, key: &Key, lane: Lane, at: Time) -> Result<()> {
    // An idle key has no row, so a new row can't continue its fencing token. It starts with the
    // time, which exceeds all earlier tokens.
    let fence = tx.now();
    tx.run(
        sql!(
            "INSERT INTO work (kind, key, lane, due_at, ready_at, fence) ",
            "VALUES ($1, $2, $3, $4, $4, $5) ",
            "ON CONFLICT (kind, key) DO UPDATE SET revision = work.revision + 1, ",
            "lane = CASE WHEN excluded.lane < work.lane THEN excluded.lane ELSE work.lane END, ",
            "due_at = CASE WHEN excluded.due_at < work.due_at THEN excluded.due_at ELSE work.due_at END, ",
            "ready_at = CASE WHEN excluded.due_at < work.ready_at AND work.leased_until = 0 ",
            "THEN excluded.due_at ELSE work.ready_at END"
        ),
        params![key.kind, key.key, lane as i64, at, fence],
    )
    .await?;
    Ok(())
}

/// Claims up to `limit` due keys of the lanes up to `lane`, for the duration of the lease.
pub async fn claim(tx: &mut Tx, lane: Lane, limit: i64, lease: Duration) -> Result<Vec<Claim>> {
    let now = tx.now();
    let claim_serially = sql!(
        "UPDATE work SET leased_until = $2, ready_at = $2, fence = fence + 1 ",
        "WHERE (kind, key) IN (SELECT kind, key FROM work WHERE ready_at <= $1 AND lane <= $3 ",
        "ORDER BY lane, ready_at LIMIT $4) ",
        "RETURNING kind, key, attempts, due_at, revision, fence"
    );
    // The same, without waiting for keys that another server is claiming.
    let claim_skipping_locked = "UPDATE work SET leased_until = $2, ready_at = $2, fence = fence + 1 \
        WHERE (kind, key) IN (SELECT kind, key FROM work WHERE ready_at <= $1 AND lane <= $3 \
        ORDER BY lane, ready_at LIMIT $4 FOR UPDATE SKIP LOCKED) \
        RETURNING kind, key, attempts, due_at, revision, fence";
    let sql = if tx.skip_locked() { claim_skipping_locked } else { claim_serially };
    let rows = tx.all(sql, params![now, now + lease, lane as i64, limit]).await?;
    let claims = rows.into_iter().map(|mut row| {
        Ok(Claim {
            key: Key { kind: row.take()?, key: row.take()? },
            attempts: row.take()?,
            due_at: row.take()?,
            revision: row.take()?,
            fence: row.take()?,
        })
    });
    claims.collect()
}

/// Finishes a claim. The key becomes idle, unless it was woken meanwhile.
pub async fn finish(tx: &mut Tx, claim: &Claim) -> Result<()> {
    let deleted = tx
        .run(
            sql!("DELETE FROM work WHERE kind = $1 AND key = $2 AND fence = $3 AND revision = $4"),
            params![claim.key.kind, claim.key.key, claim.fence, claim.revision],
        )
        .await?;
    if deleted == 1 { Ok(()) } else { release(tx, claim, tx.now(), 0, None).await }
}

/// Finishes a claim and reconciles the key again at `at`, or immediately if it was woken meanwhile.
pub async fn postpone(tx: &mut Tx, claim: &Claim, at: Time) -> Result<()> {
    release(tx, claim, at, 0, None).await
}

/// Records a failure; the key is retried at `at`.
pub async fn fail(tx: &mut Tx, claim: &Claim, at: Time, error: &str) -> Result<()> {
    release(tx, claim, at, claim.attempts + 1, Some(error)).await
}

async fn release(
    tx: &mut Tx,
    claim: &Claim,
    at: Time,
    attempts: i64,
    error: Option<&str>,
) -> Result<()> {
    tx.mark_queue_changed();
    let now = tx.now();
    tx.run(
        sql!(
            "UPDATE work SET leased_until = 0, attempts = $5, error = $6, ",
            "lane = CASE WHEN revision = $4 THEN 1 ELSE lane END, ",
            "due_at = CASE WHEN revision = $4 THEN CAST($7 AS BIGINT) ELSE $8 END, ",
            "ready_at = CASE WHEN revision = $4 THEN $7 ELSE $8 END ",
            "WHERE kind = $1 AND key = $2 AND fence = $3"
        ),
        params![
            claim.key.kind,
            claim.key.key,
            claim.fence,
            claim.revision,
            attempts,
            error,
            at,
            now
        ],
    )
    .await?;
    Ok(())
}

/// Renews the lease of a claim. `false`: it was released, or another server holds it.
pub async fn renew(tx: &mut Tx, claim: &Claim, lease: Duration) -> Result<bool> {
    let until = tx.now() + lease;
    let renewed = tx
        .run(
            sql!(
                "UPDATE work SET leased_until = $4, ready_at = $4 ",
                "WHERE kind = $1 AND key = $2 AND fence = $3 AND leased_until > 0"
            ),
            params![claim.key.kind, claim.key.key, claim.fence, until],
        )
        .await?;
    Ok(renewed == 1)
}

/// Ends all leases: for the start of a database's only server, whose previous process is dead.
pub async fn release_all(tx: &mut Tx) -> Result<()> {
    let sql = sql!("UPDATE work SET leased_until = 0, ready_at = due_at WHERE leased_until > 0");
    tx.run(sql, params![]).await.map(drop)
}

/// When the next key is due or its lease expires.
pub async fn next_due(read: &mut Read) -> Result<Option<Time>> {
    let row = read.first(sql!("SELECT MIN(ready_at) FROM work"), params![]).await?;
    row.map_or(Ok(None), |mut row| row.take())
}

/// Number of queued keys, and of those with failures.
pub async fn depth(read: &mut Read) -> Result<(i64, i64)> {
    let row = read
        .first(
            sql!("SELECT COUNT(*), COUNT(CASE WHEN attempts > 0 THEN 1 END) FROM work"),
            params![],
        )
        .await?;
    row.map_or(Ok((0, 0)), |mut row| Ok((row.take()?, row.take()?)))
}
