//! Counts of rows: the truth that `used` must equal, and its repair.
//!
//! The counters can differ after an upgrade during which servers of the release before, which do
//! not count, created or deleted objects.

use std::collections::BTreeMap;

use model::deployment::Spec;
use model::organization::quota::{QuotaKind, Subject, of_resources};
use model::{DeploymentId, OrganizationId, Quantity, Time};

use crate::db::{Json, params, sql};
use crate::{Read, Result, Tx};

/// Number of deployments read at once.
const PAGE: i64 = 500;

/// Subjects with a counter.
const COUNTED: [Subject; 6] = [
    Subject::Deployments,
    Subject::Clusters,
    Subject::Instances,
    Subject::Environments,
    Subject::Templates,
    Subject::Members,
];

/// The number of objects, or bytes, of an organization, by its rows.
pub(super) async fn number(
    read: &mut Read,
    of: OrganizationId,
    subject: Subject,
    now: Time,
) -> Result<i64> {
    let sql = match subject {
        Subject::Deployments => {
            sql!(
                "SELECT COUNT(*) FROM deployment WHERE organization_id = $1 ",
                "AND deleted_at IS NULL AND instance_id IS NULL AND reserved IS NULL"
            )
        }
        Subject::Clusters => {
            sql!("SELECT COUNT(*) FROM cluster WHERE organization_id = $1 AND deleted_at IS NULL")
        }
        Subject::Instances => {
            sql!("SELECT COUNT(*) FROM instance WHERE organization_id = $1 AND deleted_at IS NULL")
        }
        Subject::Environments => {
            sql!(
                "SELECT COUNT(*) FROM environment WHERE organization_id = $1 ",
                "AND destroyed_at IS NULL"
            )
        }
        Subject::Templates => {
            sql!("SELECT COUNT(*) FROM template WHERE organization_id = $1 AND deleted_at IS NULL")
        }
        Subject::Members => {
            sql!("SELECT COUNT(*) FROM \"user\" WHERE organization_id = $1 AND deleted_at IS NULL")
        }
        Subject::ServiceAccounts => {
            sql!("SELECT COUNT(*) FROM service_account WHERE organization_id = $1")
        }
        Subject::Storage => {
            sql!(
                "SELECT CAST(COALESCE(SUM(f.size_bytes), 0) AS BIGINT) FROM template_file f ",
                "JOIN template t ON t.id = f.template_id ",
                "WHERE t.organization_id = $1 AND t.deleted_at IS NULL"
            )
        }
        Subject::Invites => {
            let sql = sql!(
                "SELECT COUNT(*) FROM invite WHERE organization_id = $1 AND used_by IS NULL ",
                "AND expires_at > $2"
            );
            return read.number(sql, params![of, now]).await;
        }
        Subject::Tokens => {
            let sql = sql!(
                "SELECT COUNT(*) FROM token t JOIN \"user\" u ON u.id = t.user_id ",
                "WHERE u.organization_id = $1 AND t.expires_at > $2"
            );
            return read.number(sql, params![of, now]).await;
        }
        // Open connections of servers.
        Subject::Streams => return Ok(0),
    };
    read.number(sql, params![of]).await
}

/// Usage of the kinds with a counter, in thousandths, by the organization's rows.
pub async fn counted(read: &mut Read, of: OrganizationId) -> Result<BTreeMap<QuotaKind, i64>> {
    let mut found = BTreeMap::new();
    for subject in COUNTED {
        let rows = number(read, of, subject, Time(0)).await?;
        found.insert(QuotaKind::from(subject), Quantity::whole(rows).milli());
    }
    let mut after = String::new();
    loop {
        let page = specs(read, of, &after).await?;
        let Some((last, _)) = page.last() else { break };
        after = last.to_string();
        for (_, spec) in &page {
            for (kind, amount) in of_resources(&spec.resources) {
                let sum = found.entry(kind).or_default();
                *sum = sum.saturating_add(super::sum(amount, spec.replicas).milli());
            }
        }
    }
    found.retain(|_, used| *used > 0);
    Ok(found)
}

/// A page of the specs that count, by id. Capacity reservations belong to nobody.
async fn specs(
    read: &mut Read,
    of: OrganizationId,
    after: &str,
) -> Result<Vec<(DeploymentId, Spec)>> {
    let sql = sql!(
        "SELECT id, spec FROM deployment WHERE organization_id = $1 AND deleted_at IS NULL ",
        "AND reserved IS NULL AND id > $2 ORDER BY id LIMIT $3"
    );
    let rows = read.all(sql, params![of, after, PAGE]).await?;
    let specs = rows.into_iter().map(|mut row| Ok((row.take()?, row.take::<Json<Spec>>()?.0)));
    specs.collect()
}

/// Usage of the kinds with a counter, in thousandths, by the counters. Images have no rows.
pub async fn stored(read: &mut Read, of: OrganizationId) -> Result<BTreeMap<QuotaKind, i64>> {
    let sql = sql!(
        "SELECT kind, used FROM organization_quota WHERE organization_id = $1 AND used > 0 ",
        "AND kind <> 'storage'"
    );
    let rows = read.all(sql, params![of]).await?.into_iter();
    rows.map(|mut row| Ok((QuotaKind::from_key(&row.take::<String>()?)?, row.take()?))).collect()
}

/// Sets the counters of an organization to the number of its rows. Returns those that differed:
/// kind, counter, rows.
pub async fn recount(tx: &mut Tx, of: OrganizationId) -> Result<Vec<(QuotaKind, i64, i64)>> {
    // Transactions that change a counter wait for its row; what they changed is not counted below.
    let mut kinds = counted(tx, of).await?;
    kinds.extend(stored(tx, of).await?);
    let sql = sql!(
        "INSERT INTO organization_quota (organization_id, kind) VALUES ($1, $2) ",
        "ON CONFLICT (organization_id, kind) DO UPDATE SET used = organization_quota.used"
    );
    for kind in kinds.keys() {
        tx.run(sql, params![of, kind.key()]).await?;
    }
    let (rows, counters) = (counted(tx, of).await?, stored(tx, of).await?);
    let mut changed = Vec::new();
    for kind in kinds.into_keys() {
        let of_kind = |all: &BTreeMap<QuotaKind, i64>| all.get(&kind).copied().unwrap_or(0);
        let (counter, rows) = (of_kind(&counters), of_kind(&rows));
        if counter != rows {
            let sql = sql!(
                "UPDATE organization_quota SET used = $3 WHERE organization_id = $1 AND kind = $2"
            );
            tx.run(sql, params![of, kind.key(), rows]).await?;
            changed.push((kind, counter, rows));
        }
    }
    Ok(changed)
}

/// Counts the rows of every organization, in the migration that creates the counters.
pub(crate) async fn backfill(tx: &mut Tx) -> Result<()> {
    let rows = tx.all(sql!("SELECT id FROM organization ORDER BY id"), params![]).await?;
    for mut row in rows {
        let of: OrganizationId = row.take()?;
        for (kind, used) in counted(tx, of).await? {
            let sql = sql!(
                "INSERT INTO organization_quota (organization_id, kind, used) VALUES ($1, $2, $3)"
            );
            tx.run(sql, params![of, kind.key(), used]).await?;
        }
    }
    Ok(())
}
