//! Deployments that only reserve capacity for a type of instance. They have no owner, count towards
//! no quota, and can be preempted by everything.

use std::collections::BTreeMap;

use model::deployment::{NewDeployment, RESERVED_PRIORITY, Spec};
use model::{ClusterId, DeploymentId, OrganizationId, Resources};

use crate::db::{Json, params, sql};
use crate::{Read, Result, Scope, Tx, cluster};

/// A capacity reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    /// Its deployment.
    pub id: DeploymentId,
    /// Its cluster.
    pub cluster: ClusterId,
    /// The instance type that it is for.
    pub for_type: String,
    /// Its node; `None` while it is preempted.
    pub node: Option<String>,
    /// The reserved resources.
    pub room: Resources,
}

/// All reservations on the clusters of a pool.
pub async fn of_pool(read: &mut Read, pool: &str) -> Result<Vec<Reserved>> {
    let sql = sql!(
        "SELECT d.id, d.pinned_to, d.reserved, r.node, d.spec FROM deployment d ",
        "JOIN cluster c ON c.id = d.pinned_to JOIN replica r ON r.deployment_id = d.id ",
        "WHERE c.pool = $1 AND d.reserved IS NOT NULL AND d.deleted_at IS NULL ORDER BY d.id"
    );
    let rows = read.all(sql, params![pool]).await?;
    let read = |mut row: crate::db::Row| {
        Ok(Reserved {
            id: row.take()?,
            cluster: row.take()?,
            for_type: row.take()?,
            node: row.take()?,
            room: row.take::<Json<Spec>>()?.0.resources,
        })
    };
    rows.into_iter().map(read).collect()
}

/// Reserves capacity on a cluster once some is free. Does nothing without a platform organization.
pub async fn reserve(tx: &mut Tx, on: ClusterId, for_type: &str, room: &Resources) -> Result<()> {
    let Some(owner) = platform_organization(tx).await? else { return Ok(()) };
    cluster::add_deployment(tx, on, i64::MAX).await?;
    let new = NewDeployment {
        name: format!("reserved-{for_type}"),
        pinned_to: Some(on),
        spec: Spec { resources: room.clone(), replicas: 1, ..Spec::default() },
        priority: RESERVED_PRIORITY,
        labels: BTreeMap::new(),
    };
    super::insert(tx, tx.id(), owner, &new, super::For::Reservation(for_type)).await.map(drop)
}

/// Releases all reservations on a cluster that is removed or drained. The cluster must be locked.
pub(crate) async fn release_all(tx: &mut Tx, on: ClusterId) -> Result<()> {
    let sql = sql!(
        "SELECT id FROM deployment WHERE pinned_to = $1 AND reserved IS NOT NULL ",
        "AND deleted_at IS NULL ORDER BY id"
    );
    let held = tx.all(sql, params![on]).await?;
    let had_any = !held.is_empty();
    for mut row in held {
        release(tx, row.take()?).await?;
    }
    if had_any { tx.flush_counts().await } else { Ok(()) }
}

/// Releases a reservation.
pub async fn release(tx: &mut Tx, id: DeploymentId) -> Result<()> {
    super::request_delete(tx, Scope::All, id).await.map(drop)
}

/// The platform's own organization: other organizations don't see its deployments.
async fn platform_organization(read: &mut Read) -> Result<Option<OrganizationId>> {
    let sql = sql!(
        "SELECT organization_id FROM \"user\" WHERE access = 'platform' AND deleted_at IS NULL ",
        "ORDER BY id LIMIT 1"
    );
    read.first(sql, params![]).await?.map(|mut row| row.take()).transpose()
}
