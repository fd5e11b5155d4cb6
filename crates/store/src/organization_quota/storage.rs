//! Storage of an organization: template files and loaded images, in bytes.
//!
//! Images are files of a machine, not rows: the server that has them sets the sum of their sizes,
//! with what it is about to add, so that all servers on the database count them.

use model::organization::quota::{DefaultQuotas, Exceeded, QuotaKind, Subject, Usage};
use model::{OrganizationId, Quantity, Time};

use super::recount::number;
use super::{limit, row};
use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx};

/// Storage in use and its limit. `images` are the sizes of the loaded images if this server has
/// them; else those that are set.
pub async fn storage(
    read: &mut Read,
    of: OrganizationId,
    images: Option<Quantity>,
    defaults: &DefaultQuotas,
    now: Time,
) -> Result<Usage> {
    let kind = QuotaKind::from(Subject::Storage);
    let files = Quantity::whole(number(read, of, Subject::Storage, now).await?);
    let (set, own) = row(read, of, &kind).await?;
    Ok(Usage {
        limit: own.unwrap_or_else(|| defaults.get(&kind)),
        is_default: own.is_none(),
        used: files.plus(images.unwrap_or(set)),
        kind,
    })
}

/// Sets the sum of the sizes of an organization's images.
pub async fn set_images(tx: &mut Tx, of: OrganizationId, images: Quantity) -> Result<()> {
    lock(tx, of).await?;
    let sql = sql!(
        "INSERT INTO organization_quota (organization_id, kind, used) VALUES ($1, $2, $3) ",
        "ON CONFLICT (organization_id, kind) DO UPDATE SET used = excluded.used"
    );
    let kind = QuotaKind::from(Subject::Storage);
    tx.run(sql, params![of, kind.key(), images.milli()]).await.map(drop)
}

/// Fails if the images and template files of an organization, of which this transaction adds
/// `added`, exceed its quota.
pub async fn check_storage(tx: &mut Tx, of: OrganizationId, added: Quantity) -> Result<()> {
    // Of two concurrent transactions, the second must see what the first added.
    lock(tx, of).await?;
    let limit = limit(tx, of, Subject::Storage, None).await?;
    let (kind, now) = (QuotaKind::from(Subject::Storage), tx.now());
    let files = Quantity::whole(number(tx, of, Subject::Storage, now).await?);
    let used = files.plus(row(tx, of, &kind).await?.0);
    if used.milli() <= limit.milli() {
        return Ok(());
    }
    tx.poison();
    let limit = Quantity::from_milli(limit.milli());
    let used = used.minus(added);
    Err(Error::QuotaExceeded(Box::new(Exceeded { kind, used, requested: added, limit })))
}

async fn lock(tx: &mut Tx, of: OrganizationId) -> Result<()> {
    tx.lock(&format!("quota/{of}/{}", Subject::Storage)).await
}
