//! Operations on external systems: leases, encrypted state, logs.
//!
//! A server holds the lease of a subject while it operates on it. A new holder gets a higher
//! fencing token; writes with an older one are rejected.

pub mod log;
pub mod secret;

use std::time::Duration;

use model::ClusterId;
use model::operation::Subject;

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// Acquires or renews the lease of a subject, and returns its fencing token if it is held.
pub async fn acquire(
    tx: &mut Tx,
    subject: impl Into<Subject>,
    holder: &str,
    life: Duration,
) -> Result<Option<i64>> {
    let (subject, now, until) = (subject.into(), tx.now(), tx.now() + life);
    let sql = match subject {
        Subject::Cluster(_) => sql!(
            "UPDATE cluster SET fence = CASE WHEN holder = $2 THEN fence ELSE fence + 1 END, ",
            "holder = $2, held_until = $3 ",
            "WHERE id = $1 AND deleted_at IS NULL AND (holder = $2 OR held_until <= $4) RETURNING fence"
        ),
        Subject::Resource(_) => sql!(
            "UPDATE resource SET fence = CASE WHEN holder = $2 THEN fence ELSE fence + 1 END, ",
            "holder = $2, held_until = $3 ",
            "WHERE id = $1 AND deleted_at IS NULL AND (holder = $2 OR held_until <= $4) RETURNING fence"
        ),
    };
    let row = tx.first(sql, params![subject, holder, until, now]).await?;
    row.map(|mut row| row.take()).transpose()
}

/// Releases the lease of a subject.
pub async fn release(tx: &mut Tx, subject: impl Into<Subject>, holder: &str) -> Result<()> {
    // The holder stays: the next fencing token continues from this one.
    let subject = subject.into();
    let sql = match subject {
        Subject::Cluster(_) => {
            sql!("UPDATE cluster SET held_until = 0 WHERE id = $1 AND holder = $2")
        }
        Subject::Resource(_) => {
            sql!("UPDATE resource SET held_until = 0 WHERE id = $1 AND holder = $2")
        }
    };
    tx.run(sql, params![subject, holder]).await.map(drop)
}

/// Whether a user requested the cancellation of the operation on a cluster.
pub async fn is_cancelled(read: &mut Read, id: ClusterId) -> Result<bool> {
    let sql = sql!("SELECT COUNT(*) FROM cluster WHERE id = $1 AND is_cancelled = 1");
    Ok(read.number(sql, params![id]).await? > 0)
}

/// Requests the cancellation of the operation on a cluster, or clears the request.
pub async fn set_cancelled(tx: &mut Tx, id: ClusterId, is_cancelled: bool) -> Result<()> {
    let sql = sql!("UPDATE cluster SET is_cancelled = $2 WHERE id = $1");
    tx.run(sql, params![id, is_cancelled]).await.map(drop)
}
