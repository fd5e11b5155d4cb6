//! Deployments that only hold room, for a type of instance that nobody has asked for yet. They belong
//! to nobody, are counted by nobody, and yield to everything.

use std::collections::BTreeMap;

use model::deployment::{NewDeployment, RESERVED_PRIORITY, Spec};
use model::{ClusterId, DeploymentId, OrganizationId, Resources};

use crate::db::{Json, params, sql};
use crate::{Read, Result, Scope, Tx, cluster};

/// Room that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    /// By which deployment.
    pub id: DeploymentId,
    /// On which cluster.
    pub cluster: ClusterId,
    /// For which type of instance.
    pub for_type: String,
    /// On which node; on none while it has yielded.
    pub node: Option<String>,
    /// How much.
    pub room: Resources,
}

/// All room that is held on the clusters of a pool.
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

/// Holds room on a cluster, as soon as there is some; nothing happens while nobody can be its owner.
pub async fn hold(tx: &mut Tx, on: ClusterId, for_type: &str, room: &Resources) -> Result<()> {
    let Some(owner) = platform(tx).await? else { return Ok(()) };
    cluster::add_deployment(tx, on, i64::MAX).await?;
    let new = NewDeployment {
        name: format!("reserved-{for_type}"),
        pinned_to: Some(on),
        spec: Spec { resources: room.clone(), replicas: 1, ..Spec::default() },
        priority: RESERVED_PRIORITY,
        labels: BTreeMap::new(),
    };
    super::insert(tx, owner, &new, None, Some(for_type)).await.map(drop)
}

/// Gives up all room that is held on a cluster, whose lock must be held: it shall go.
pub(crate) async fn give_up_all(tx: &mut Tx, on: ClusterId) -> Result<()> {
    let sql = sql!(
        "SELECT id FROM deployment WHERE pinned_to = $1 AND reserved IS NOT NULL ",
        "AND deleted_at IS NULL ORDER BY id"
    );
    let held = tx.all(sql, params![on]).await?;
    let is_any = !held.is_empty();
    for mut row in held {
        give_up(tx, row.take()?).await?;
    }
    if is_any { tx.settle_counts().await } else { Ok(()) }
}

/// Gives room up.
pub async fn give_up(tx: &mut Tx, id: DeploymentId) -> Result<()> {
    super::request_delete(tx, Scope::All, id).await.map(drop)
}

/// The organization of the platform itself: users of others never see what is its.
async fn platform(read: &mut Read) -> Result<Option<OrganizationId>> {
    let sql = sql!(
        "SELECT organization_id FROM \"user\" WHERE access = 'platform' AND deleted_at IS NULL ",
        "ORDER BY id LIMIT 1"
    );
    read.first(sql, params![]).await?.map(|mut row| row.take()).transpose()
}
