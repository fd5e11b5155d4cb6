//! Capacity: what a cluster has of each resource type and how much of it is taken.
//!
//! The condition is the lock: an amount is taken by one statement that does nothing when it does
//! not fit, so no crash and no number of replicas can take more than there is.

use model::{ClusterId, Quantity, Resources};

use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx};

/// Takes capacity for a deployment: all of it, or an error and the transaction can't be committed.
pub(crate) async fn reserve(tx: &mut Tx, cluster: ClusterId, request: &Resources) -> Result<()> {
    let sql = sql!(
        "UPDATE capacity SET used = used + $3 ",
        "WHERE cluster_id = $1 AND kind = $2 AND used + $3 <= total"
    );
    change(tx, sql, cluster, request, "used + $3 <= total").await
}

/// Gives a deployment's capacity back.
pub(crate) async fn release(tx: &mut Tx, cluster: ClusterId, request: &Resources) -> Result<()> {
    let sql = sql!(
        "UPDATE capacity SET used = used - $3 ",
        "WHERE cluster_id = $1 AND kind = $2 AND used - manual >= $3"
    );
    change(tx, sql, cluster, request, "used - manual >= $3").await
}

/// Takes capacity by hand.
pub async fn take(tx: &mut Tx, cluster: ClusterId, request: &Resources) -> Result<()> {
    let short = request.shortage(&free(tx, cluster).await?);
    if !short.is_empty() {
        return Err(Error::Short { missing: short });
    }
    let sql = sql!(
        "UPDATE capacity SET used = used + $3, manual = manual + $3 ",
        "WHERE cluster_id = $1 AND kind = $2 AND used + $3 <= total"
    );
    change(tx, sql, cluster, request, "used + $3 <= total").await
}

/// Gives back what was taken by hand; never what a deployment holds.
pub async fn give_back(tx: &mut Tx, cluster: ClusterId, request: &Resources) -> Result<()> {
    let short = request.shortage(&manual(tx, cluster).await?);
    if !short.is_empty() {
        return Err(Error::Short { missing: short });
    }
    let sql = sql!(
        "UPDATE capacity SET used = used - $3, manual = manual - $3 ",
        "WHERE cluster_id = $1 AND kind = $2 AND manual >= $3"
    );
    change(tx, sql, cluster, request, "manual >= $3").await
}

/// One statement per type, in one order for everybody, so that no two wait for each other.
async fn change(
    tx: &mut Tx,
    sql: &'static str,
    cluster: ClusterId,
    request: &Resources,
    rule: &str,
) -> Result<()> {
    for (kind, amount) in request.iter().filter(|(_, amount)| !amount.is_zero()) {
        let changed = tx.run(sql, params![cluster, kind, amount]).await?;
        if changed == 0 {
            tracing::debug!(%cluster, kind, %amount, rule, "capacity does not allow it");
            // Other types may have been changed already.
            tx.poison();
            let missing = [(kind.to_owned(), amount)].into_iter().collect();
            return Err(Error::Short { missing });
        }
    }
    Ok(())
}

/// What is free now.
pub async fn free(read: &mut Read, cluster: ClusterId) -> Result<Resources> {
    vector(read, sql!("SELECT kind, total - used FROM capacity WHERE cluster_id = $1"), cluster)
        .await
}

/// What is taken by hand.
async fn manual(read: &mut Read, cluster: ClusterId) -> Result<Resources> {
    vector(read, sql!("SELECT kind, manual FROM capacity WHERE cluster_id = $1"), cluster).await
}

async fn vector(read: &mut Read, sql: &'static str, cluster: ClusterId) -> Result<Resources> {
    let rows = read.all(sql, params![cluster]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take::<Quantity>()?))).collect()
}

/// Gives a cluster its totals; types that are not named keep theirs. Never below what is taken.
pub async fn set_total(tx: &mut Tx, cluster: ClusterId, total: &Resources) -> Result<()> {
    for (kind, amount) in total.iter() {
        let set = tx
            .run(
                sql!(
                    "INSERT INTO capacity (cluster_id, kind, total) VALUES ($1, $2, $3) ",
                    "ON CONFLICT (cluster_id, kind) DO UPDATE SET total = excluded.total ",
                    "WHERE capacity.used <= excluded.total"
                ),
                params![cluster, kind, amount],
            )
            .await?;
        if set == 0 {
            return Err(Error::Conflict(format!(
                "{amount} {kind} is less than what is in use; free some of it first"
            )));
        }
    }
    Ok(())
}
