//! The quota ledger: usage of quota, trials and regions. The limit is in the statement's condition.

use model::instance::Charge;

use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx};

/// Charges an account, within its limit.
pub(crate) async fn charge(
    tx: &mut Tx,
    kind: &str,
    charge: &Charge,
    limit: Option<i64>,
) -> Result<()> {
    let limit = limit.unwrap_or(i64::MAX);
    // The first charge creates the account; a single charge above the limit is refused below.
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

/// Reverts a charge.
pub(crate) async fn release(tx: &mut Tx, kind: &str, charge: &Charge) -> Result<()> {
    let sql = sql!(
        "UPDATE account SET used = used - $4 WHERE kind = $1 AND holder = $2 AND account = $3"
    );
    tx.run(sql, params![kind, charge.holder, charge.account, charge.units]).await.map(drop)
}

/// Usage of a holder: kind, account, units.
pub async fn usage(read: &mut Read, holder: &str) -> Result<Vec<(String, String, i64)>> {
    let sql = sql!(
        "SELECT kind, account, used FROM account WHERE holder = $1 AND used > 0 ",
        "ORDER BY kind, account"
    );
    let rows = read.all(sql, params![holder]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?, row.take()?))).collect()
}

/// Usage of one account.
pub async fn used(read: &mut Read, kind: &str, holder: &str, account: &str) -> Result<i64> {
    let sql = sql!(
        "SELECT CAST(COALESCE(SUM(used), 0) AS BIGINT) FROM account ",
        "WHERE kind = $1 AND holder = $2 AND account = $3"
    );
    read.number(sql, params![kind, holder, account]).await
}

/// The whole ledger: kind, holder, account, units. For consistency checks.
pub async fn list(read: &mut Read) -> Result<Vec<(String, Charge)>> {
    let sql = sql!("SELECT kind, holder, account, used FROM account WHERE used > 0");
    let rows = read.all(sql, params![]).await?;
    let charges = rows.into_iter().map(|mut row| {
        let kind = row.take()?;
        Ok((kind, Charge { holder: row.take()?, account: row.take()?, units: row.take()? }))
    });
    charges.collect()
}
