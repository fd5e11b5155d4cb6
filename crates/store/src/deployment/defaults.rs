//! Default requests of containers.

use model::deployment::{NewDeployment, missing_defaults};
use model::{ClusterId, OrganizationId, Quantity};

use crate::db::{params, sql};
use crate::{Read, Result};

/// Adds the default requests of a container. A cluster that does not count a resource type, or counts
/// it in other units, can't offer it: a default that fits on no cluster is not requested.
pub async fn request_defaults(
    read: &mut Read,
    owner: OrganizationId,
    new: &mut NewDeployment,
) -> Result<()> {
    if new.spec.image.is_none() {
        return Ok(());
    }
    let missing: Vec<_> = missing_defaults(&new.spec.resources).collect();
    for (kind, amount) in missing {
        let is_offered = match new.pinned_to {
            Some(id) => is_offered_by(read, id, kind, amount).await?,
            None => is_offered_to(read, owner, kind, amount).await?,
        };
        if is_offered {
            new.spec.resources.set(kind, amount);
        }
    }
    Ok(())
}

/// Whether a cluster has that much of a resource type. One without any capacity has not reported yet.
async fn is_offered_by(
    read: &mut Read,
    id: ClusterId,
    kind: &str,
    amount: Quantity,
) -> Result<bool> {
    let sql = sql!(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM capacity WHERE cluster_id = $1 AND kind = $2 ",
        "AND total >= $3) OR NOT EXISTS (SELECT 1 FROM capacity WHERE cluster_id = $1)"
    );
    Ok(read.first(sql, params![id, kind, amount]).await?.is_some())
}

/// The same of any cluster that an organization may use.
async fn is_offered_to(
    read: &mut Read,
    owner: OrganizationId,
    kind: &str,
    amount: Quantity,
) -> Result<bool> {
    let sql = sql!(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM cluster JOIN capacity ON cluster_id = id ",
        "WHERE (organization_id = $1 OR organization_id IS NULL) AND deleted_at IS NULL ",
        "AND kind = $2 AND total >= $3) OR NOT EXISTS (SELECT 1 FROM cluster JOIN capacity ",
        "ON cluster_id = id WHERE (organization_id = $1 OR organization_id IS NULL) ",
        "AND deleted_at IS NULL)"
    );
    Ok(read.first(sql, params![owner, kind, amount]).await?.is_some())
}
