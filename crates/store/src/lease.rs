//! Leases: exclusive roles of servers, with an expiry.

use std::time::Duration;

use model::Time;

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// Acquires or renews a lease. Returns its fencing token; a new holder gets a higher one.
pub async fn acquire(tx: &mut Tx, name: &str, holder: &str, life: Duration) -> Result<Option<i64>> {
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

/// Releases a lease, so that the next holder need not wait for its expiry.
pub async fn release(tx: &mut Tx, name: &str, holder: &str) -> Result<()> {
    // The row stays: the next holder's fencing token continues from this one.
    let sql = sql!("UPDATE lease SET holder = '', until = 0 WHERE name = $1 AND holder = $2");
    tx.run(sql, params![name, holder]).await.map(drop)
}

/// Whether the lease is held at that time.
pub async fn is_held(read: &mut Read, name: &str, now: Time) -> Result<bool> {
    let held = read
        .number(
            sql!("SELECT COUNT(*) FROM lease WHERE name = $1 AND until > $2"),
            params![name, now],
        )
        .await?;
    Ok(held > 0)
}
