//! Operations on external systems: which server carries them out, their encrypted state, their logs.
//!
//! A server holds the lease of a subject for as long as it operates on it. Whoever takes over gets a higher
//! fencing token, and nothing is written with an older one.

pub mod log;
pub mod secret;

use std::time::Duration;

use model::ClusterId;
use model::operation::Subject;

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// Acquires or renews the lease of a subject, unless another server holds it; its fencing token.
pub async fn hold(
    tx: &mut Tx,
    of: impl Into<Subject>,
    holder: &str,
    life: Duration,
) -> Result<Option<i64>> {
    let (of, now, until) = (of.into(), tx.now(), tx.now() + life);
    let sql = match of {
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
    let row = tx.first(sql, params![of, holder, until, now]).await?;
    row.map(|mut row| row.take()).transpose()
}

/// Gives the lease of a subject back.
pub async fn let_go(tx: &mut Tx, of: impl Into<Subject>, holder: &str) -> Result<()> {
    // The holder stays: the next one's fence counts on from this one's.
    let of = of.into();
    let sql = match of {
        Subject::Cluster(_) => {
            sql!("UPDATE cluster SET held_until = 0 WHERE id = $1 AND holder = $2")
        }
        Subject::Resource(_) => {
            sql!("UPDATE resource SET held_until = 0 WHERE id = $1 AND holder = $2")
        }
    };
    tx.run(sql, params![of, holder]).await.map(drop)
}

/// Does a user want the operation on a cluster to stop?
pub async fn is_cancelled(read: &mut Read, id: ClusterId) -> Result<bool> {
    let sql = sql!("SELECT COUNT(*) FROM cluster WHERE id = $1 AND is_cancelled = 1");
    Ok(read.number(sql, params![id]).await? > 0)
}

/// Asks for the operation on a cluster to stop, or forgets that.
pub async fn set_cancelled(tx: &mut Tx, id: ClusterId, is_cancelled: bool) -> Result<()> {
    let sql = sql!("UPDATE cluster SET is_cancelled = $2 WHERE id = $1");
    tx.run(sql, params![id, is_cancelled]).await.map(drop)
}
