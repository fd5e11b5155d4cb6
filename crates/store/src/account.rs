//! What is charged to whom: quota, trials, regions. The condition is the limit.

use model::instance::Charge;

use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx};

/// Charges an account, if it can bear it.
pub(crate) async fn charge(
    tx: &mut Tx,
    kind: &str,
    charge: &Charge,
    limit: Option<i64>,
) -> Result<()> {
    let limit = limit.unwrap_or(i64::MAX);
    // The first charge of an account makes it; what a single one exceeds is refused below.
    let charged = tx
        .run(
            sql!(
                "INSERT INTO account (kind, holder, account, used) ",
                "SELECT $1, $2, $3, CAST($4 AS BIGINT) WHERE CAST($4 AS BIGINT) <= $5 ",
                "ON CONFLICT (kind, holder, account) DO UPDATE SET used = account.used + $4 ",
                "WHERE account.used + $4 <= $5"
            ),
            params![kind, charge.holder, charge.account, charge.units, limit],
        )
        .await?;
    if charged == 1 {
        return Ok(());
    }
    tx.poison();
    let what = match charge.holder.split('/').next() {
        Some("region") => "units of its type in the region",
        Some("trial") => "trials per user",
        _ => "units of its type in the quota",
    };
    Err(Error::Limit { limit, what })
}

/// Takes a charge back.
pub(crate) async fn release(tx: &mut Tx, kind: &str, charge: &Charge) -> Result<()> {
    let sql = sql!(
        "UPDATE account SET used = used - $4 WHERE kind = $1 AND holder = $2 AND account = $3"
    );
    tx.run(sql, params![kind, charge.holder, charge.account, charge.units]).await.map(drop)
}

/// What is charged to a holder of accounts: kind, account, units.
pub async fn of(read: &mut Read, holder: &str) -> Result<Vec<(String, String, i64)>> {
    let sql = sql!(
        "SELECT kind, account, used FROM account WHERE holder = $1 AND used > 0 ",
        "ORDER BY kind, account"
    );
    let rows = read.all(sql, params![holder]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?, row.take()?))).collect()
}

/// What is charged to one account.
pub async fn used(read: &mut Read, kind: &str, holder: &str, account: &str) -> Result<i64> {
    let sql = sql!(
        "SELECT CAST(COALESCE(SUM(used), 0) AS BIGINT) FROM account ",
        "WHERE kind = $1 AND holder = $2 AND account = $3"
    );
    read.number(sql, params![kind, holder, account]).await
}

/// Everything that is charged: kind, holder, account, units. For checking the books.
pub async fn all(read: &mut Read) -> Result<Vec<(String, Charge)>> {
    let sql = sql!("SELECT kind, holder, account, used FROM account WHERE used > 0");
    let rows = read.all(sql, params![]).await?;
    let charges = rows.into_iter().map(|mut row| {
        let kind = row.take()?;
        Ok((kind, Charge { holder: row.take()?, account: row.take()?, units: row.take()? }))
    });
    charges.collect()
}
