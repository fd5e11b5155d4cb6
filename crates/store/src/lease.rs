//! Leases: which replica does what only one may do, until when.

use std::time::Duration;

use model::Time;

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// Takes or keeps a lease; its fence if it is ours now. A new holder gets a higher fence.
pub async fn take(tx: &mut Tx, name: &str, holder: &str, life: Duration) -> Result<Option<i64>> {
    let (now, until) = (tx.now(), tx.now() + life);
    let row = tx
        .first(
            sql!(
                "INSERT INTO lease (name, holder, until, fence) VALUES ($1, $2, $3, 1) ",
                "ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until, ",
                "fence = CASE WHEN lease.holder = excluded.holder THEN lease.fence ELSE lease.fence + 1 END ",
                "WHERE lease.holder = excluded.holder OR lease.until <= $4 RETURNING fence"
            ),
            params![name, holder, until, now],
        )
        .await?;
    row.map(|mut row| row.take()).transpose()
}

/// Gives a lease back, so that the next one need not wait for its end.
pub async fn give_back(tx: &mut Tx, name: &str, holder: &str) -> Result<()> {
    // The row stays: the next holder's fence counts on from this one's.
    let sql = sql!("UPDATE lease SET holder = '', until = 0 WHERE name = $1 AND holder = $2");
    tx.run(sql, params![name, holder]).await.map(drop)
}

/// Does anybody hold it at that time?
pub async fn is_held(read: &mut Read, name: &str, now: Time) -> Result<bool> {
    let held = read
        .number(
            sql!("SELECT COUNT(*) FROM lease WHERE name = $1 AND until > $2"),
            params![name, now],
        )
        .await?;
    Ok(held > 0)
}
