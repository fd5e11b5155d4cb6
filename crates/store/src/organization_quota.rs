//! Quotas of organizations: limits and usage.
//!
//! Usage of objects that only requests and workers end (deployments, clusters, …) and of what
//! deployments request is counted in `used`: the limit is in the statement's condition, as for
//! capacity. Objects that end with time (invites, tokens) are counted by a query under a lock.
//!
//! A transaction collects its changes (`charge`, `release`, `count`) and applies them in
//! `flush`, the last step before the commit: the row of a busy organization is locked only for
//! that long, in one global order, and a refusal is the error of `Tx::commit`.

mod recount;
mod storage;

use std::collections::BTreeMap;

use model::deployment::Spec;
use model::event::Kind;
use model::organization::quota::{
    DefaultQuotas, Exceeded, Limit, QuotaKind, Subject, Usage, of_resources,
};
use model::{OrganizationId, Quantity, Resources};
use serde_json::{Map, Value, json};

use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx, event};

pub(crate) use recount::backfill;
pub use recount::{counted, recount, stored};
pub use storage::{check_storage, set_images, storage};

/// Changes of a transaction that are not applied yet.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    charges: BTreeMap<(OrganizationId, QuotaKind), Charge>,
    counts: BTreeMap<(OrganizationId, Subject), i64>,
}

#[derive(Debug, Default)]
struct Charge {
    milli: i64,
    /// The limit without a quota of its own; the platform's default if not set.
    default: Option<Limit>,
    /// Whether the limit does not apply.
    is_forced: bool,
}

/// Charges an organization at the commit, which fails if its quota is exceeded.
pub(crate) fn charge(tx: &mut Tx, of: OrganizationId, kind: impl Into<QuotaKind>, by: Quantity) {
    change(tx, of, kind.into()).milli += by.milli();
}

/// Charges one object, within `default` if the organization has no quota of its own.
pub(crate) fn charge_within(tx: &mut Tx, of: OrganizationId, subject: Subject, default: i64) {
    let change = change(tx, of, subject.into());
    change.milli += 1000;
    change.default = Some(Limit::count(default));
}

/// Reverts a charge at the commit.
pub(crate) fn release(tx: &mut Tx, of: OrganizationId, kind: impl Into<QuotaKind>, by: Quantity) {
    change(tx, of, kind.into()).milli -= by.milli();
}

/// Whether a charge can be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is refused beyond the quota.
    Checked,
    /// It belongs to an object that was admitted before.
    Granted,
}

/// Charges what `replicas` replicas request.
pub(crate) fn charge_resources(
    tx: &mut Tx,
    of: OrganizationId,
    (request, replicas): (&Resources, u32),
    admission: Admission,
) {
    for (kind, amount) in of_resources(request) {
        let change = change(tx, of, kind);
        change.milli = change.milli.saturating_add(sum(amount, replicas).milli());
        change.is_forced |= admission == Admission::Granted;
    }
}

/// Reverts [`charge_resources`].
pub(crate) fn release_resources(
    tx: &mut Tx,
    of: OrganizationId,
    (request, replicas): (&Resources, u32),
) {
    for (kind, amount) in of_resources(request) {
        release(tx, of, kind, sum(amount, replicas));
    }
}

/// What several replicas request; the product was checked when the deployment was created.
fn sum(amount: Quantity, replicas: u32) -> Quantity {
    amount.times(replicas).unwrap_or(Quantity::MAX)
}

/// Checks at the commit that a new object, which exists by then, is within the quota.
pub(crate) fn count(tx: &mut Tx, of: OrganizationId, subject: Subject) {
    *tx.quota_pending().counts.entry((of, subject)).or_default() += 1;
}

fn change(tx: &mut Tx, of: OrganizationId, kind: QuotaKind) -> &mut Charge {
    tx.quota_pending().charges.entry((of, kind)).or_default()
}

/// Applies the changes of a transaction. No row may be locked after this.
pub(crate) async fn flush(tx: &mut Tx) -> Result<()> {
    let Pending { charges, counts } = std::mem::take(tx.quota_pending());
    for ((of, kind), change) in charges {
        match change.milli {
            0 => {}
            ..0 => apply_release(tx, of, &kind, -change.milli).await?,
            _ => apply_charge(tx, of, kind, &change).await?,
        }
    }
    for ((of, subject), added) in counts {
        check_count(tx, of, subject, added).await?;
    }
    Ok(())
}

async fn apply_charge(
    tx: &mut Tx,
    of: OrganizationId,
    kind: QuotaKind,
    change: &Charge,
) -> Result<()> {
    let default = change.default.unwrap_or_else(|| tx.default_quotas().get(&kind));
    // The sum never exceeds what the column can hold, even without a limit.
    let most = if change.is_forced { Limit::Unlimited } else { default };
    // The first charge creates the row, which then has no quota of its own.
    let charged = tx
        .run(
            sql!(
                "INSERT INTO organization_quota (organization_id, kind, used) ",
                "SELECT $1, $2, CAST($3 AS BIGINT) WHERE CAST($3 AS BIGINT) <= $4 OR EXISTS ",
                "(SELECT 1 FROM organization_quota WHERE organization_id = $1 AND kind = $2) ",
                "ON CONFLICT (organization_id, kind) DO UPDATE SET used = organization_quota.used + $3 ",
                "WHERE organization_quota.used <= ",
                "CASE WHEN CAST($5 AS BIGINT) = 1 THEN $4 ELSE COALESCE(organization_quota.quota, $4) END - $3"
            ),
            params![of, kind.key(), change.milli, most.milli(), change.is_forced],
        )
        .await?;
    if charged == 1 {
        return Ok(());
    }
    tx.poison();
    let (used, own) = row(tx, of, &kind).await?;
    let limit = Quantity::from_milli(own.unwrap_or(most).milli());
    let requested = Quantity::from_milli(change.milli);
    Err(Error::QuotaExceeded(Box::new(Exceeded { kind, used, requested, limit })))
}

async fn apply_release(
    tx: &mut Tx,
    of: OrganizationId,
    kind: &QuotaKind,
    milli: i64,
) -> Result<()> {
    // Never below zero: a release must not fail because an older server did not count the charge.
    let sql = sql!(
        "UPDATE organization_quota SET used = CASE WHEN used > $3 THEN used - $3 ELSE 0 END ",
        "WHERE organization_id = $1 AND kind = $2"
    );
    tx.run(sql, params![of, kind.key(), milli]).await.map(drop)
}

async fn check_count(tx: &mut Tx, of: OrganizationId, subject: Subject, added: i64) -> Result<()> {
    let limit = limit(tx, of, subject, None).await?;
    if limit == Limit::Unlimited {
        return Ok(());
    }
    // Of two concurrent transactions, the second must see the objects of the first.
    tx.lock(&format!("quota/{of}/{subject}")).await?;
    let (kind, now) = (QuotaKind::from(subject), tx.now());
    let used = recount::number(tx, of, subject, now).await?;
    if Quantity::whole(used).milli() <= limit.milli() {
        return Ok(());
    }
    tx.poison();
    Err(Error::QuotaExceeded(Box::new(Exceeded {
        kind,
        used: Quantity::whole(used - added),
        requested: Quantity::whole(added),
        limit: Quantity::from_milli(limit.milli()),
    })))
}

/// The limit of an organization: its own, or the default.
pub async fn limit(
    tx: &mut Tx,
    of: OrganizationId,
    subject: Subject,
    default: Option<Limit>,
) -> Result<Limit> {
    let kind = subject.into();
    let own = own(tx, of, &kind).await?;
    Ok(own.or(default).unwrap_or_else(|| tx.default_quotas().get(&kind)))
}

/// The quota that an organization has of its own.
pub async fn own(read: &mut Read, of: OrganizationId, kind: &QuotaKind) -> Result<Option<Limit>> {
    Ok(row(read, of, kind).await?.1)
}

async fn row(
    read: &mut Read,
    of: OrganizationId,
    kind: &QuotaKind,
) -> Result<(Quantity, Option<Limit>)> {
    let sql =
        sql!("SELECT used, quota FROM organization_quota WHERE organization_id = $1 AND kind = $2");
    let row = read.first(sql, params![of, kind.key()]).await?;
    row.map_or(Ok((Quantity::ZERO, None)), |mut row| {
        Ok((row.take()?, row.take::<Option<i64>>()?.map(Limit::from_milli)))
    })
}

/// Sets quotas of an organization; `None` restores the default. Running objects are not affected.
pub async fn set(
    tx: &mut Tx,
    of: OrganizationId,
    quotas: &BTreeMap<QuotaKind, Option<Limit>>,
) -> Result<()> {
    let sql = sql!(
        "INSERT INTO organization_quota (organization_id, kind, quota) VALUES ($1, $2, $3) ",
        "ON CONFLICT (organization_id, kind) DO UPDATE SET quota = excluded.quota"
    );
    let mut data = Map::new();
    for (kind, limit) in quotas {
        tx.run(sql, params![of, kind.key(), limit.map(Limit::milli)]).await?;
        let shown = match limit {
            None => Value::Null,
            Some(Limit::Unlimited) => json!("unlimited"),
            Some(Limit::AtMost(amount)) => json!(amount),
        };
        data.insert(kind.to_string(), shown);
    }
    let data = json!({"organization_id": of, "quotas": data});
    event::append(tx, Kind::Organization, of, Some(of), "quota_changed", &data).await
}

/// Usage and limits of an organization: subjects, then resource types that are used or limited.
///
/// Streams are not in the database: the caller adds them.
pub async fn usage(
    read: &mut Read,
    of: OrganizationId,
    defaults: &DefaultQuotas,
    now: model::Time,
) -> Result<Vec<Usage>> {
    let mut found: BTreeMap<QuotaKind, (Quantity, Option<Limit>)> = BTreeMap::new();
    let named = ["cpu", "ram"].map(|name| QuotaKind::Resource(name.into()));
    let subjects = Subject::ALL.iter().map(|&subject| subject.into());
    for kind in subjects.chain(named).chain(defaults.kinds().cloned()) {
        found.insert(kind, (Quantity::ZERO, None));
    }
    let sql = sql!("SELECT kind, used, quota FROM organization_quota WHERE organization_id = $1");
    for mut row in read.all(sql, params![of]).await? {
        let kind = QuotaKind::from_key(&row.take::<String>()?)?;
        let (used, own): (Quantity, Option<i64>) = (row.take()?, row.take()?);
        if kind.is_named() && (!used.is_zero() || own.is_some() || found.contains_key(&kind)) {
            found.insert(kind, (used, own.map(Limit::from_milli)));
        }
    }
    for subject in [Subject::Invites, Subject::Tokens, Subject::ServiceAccounts] {
        let used = Quantity::whole(recount::number(read, of, subject, now).await?);
        found.entry(subject.into()).or_default().0 = used;
    }
    let files = recount::number(read, of, Subject::Storage, now).await?;
    let stored = &mut found.entry(Subject::Storage.into()).or_default().0;
    *stored = stored.plus(Quantity::whole(files));
    let usage = found.into_iter().map(|(kind, (used, own))| Usage {
        limit: own.unwrap_or_else(|| defaults.get(&kind)),
        is_default: own.is_none(),
        kind,
        used,
    });
    Ok(usage.collect())
}

/// The quotas that a new deployment would exceed, without creating it.
pub fn refusals(usage: &[Usage], spec: &Spec) -> Vec<Exceeded> {
    let requested = |kind: &QuotaKind| match kind {
        QuotaKind::Subject(Subject::Deployments) => Quantity::whole(1),
        QuotaKind::Subject(_) => Quantity::ZERO,
        QuotaKind::Resource(name) => sum(spec.resources.get(name), spec.replicas),
    };
    let requests = usage.iter().map(|usage| (usage, requested(&usage.kind)));
    requests
        .filter(|(_, requested)| !requested.is_zero())
        .filter_map(|(usage, requested)| usage.refuse(requested))
        .collect()
}
