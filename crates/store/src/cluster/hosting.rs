//! Clusters with fleetshard-compatible agents: identified by their external id, with capacity in
//! units of instance types, as the agents report it.

use std::collections::BTreeMap;

use model::cluster::{Cluster, Hosting, NewCluster, ONLY_NODE, Reason, Status};
use model::work::{Key, Lane};
use model::{ClusterId, InstanceId, OrganizationId, Place, Quantity};

use super::{columns, create, get, lock, lock_and_get, record_event};
use crate::db::{Json, params, sql};
use crate::subject::Subject as _;
use crate::{Error, Read, Result, Scope, Tx, capacity, instance, work};

/// The cluster with that external id or id, in any scope.
pub async fn find(read: &mut Read, name: &str) -> Result<Option<Cluster>> {
    let sql = sql!("SELECT id FROM cluster WHERE foreign_id = $1 AND deleted_at IS NULL");
    let found = read.first(sql, params![name]).await?;
    let id: Option<ClusterId> = match found {
        Some(mut row) => Some(row.take()?),
        None => name.parse().ok(),
    };
    let Some(id) = id else { return Ok(None) };
    match get(read, Scope::All, id).await {
        Err(Error::NotFound { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// The clusters that an organization registered with external ids.
pub async fn list(read: &mut Read, organization: OrganizationId) -> Result<Vec<Cluster>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM cluster LEFT JOIN capacity ON cluster_id = id WHERE deleted_at IS NULL ",
        "AND foreign_id IS NOT NULL AND organization_id = $1 ORDER BY id, node, kind"
    );
    Ok(Cluster::from_rows(read.all(sql, params![organization]).await?))
}

/// Creates a cluster with an external id, unless one with that id exists.
pub async fn register(
    tx: &mut Tx,
    organization: OrganizationId,
    new: &NewCluster,
    name: &str,
    hosting: &Hosting,
) -> Result<Cluster> {
    // Of two concurrent registrations, the second must see the first.
    tx.lock(&format!("foreign cluster/{name}")).await?;
    let sql = sql!("SELECT COUNT(*) FROM cluster WHERE foreign_id = $1 AND deleted_at IS NULL");
    if tx.number(sql, params![name]).await? > 0 {
        return Err(Error::AlreadyExists { field: "cluster_id" });
    }
    let created = create(tx, Some(organization), new).await?;
    let sql = sql!("UPDATE cluster SET foreign_id = $2, hosting = $3 WHERE id = $1");
    tx.run(sql, params![created.id, name, Json(hosting)]).await?;
    record_event(tx, created.id, "registered").await
}

/// Stores an agent's report. Changed counts alone append no event.
pub async fn set(tx: &mut Tx, cluster: &Cluster, hosting: &Hosting) -> Result<()> {
    if cluster.hosting == *hosting {
        return Ok(());
    }
    let now = tx.now();
    let sql = sql!("UPDATE cluster SET hosting = $2, updated_at = $3 WHERE id = $1");
    tx.run(sql, params![cluster.id, Json(hosting), now]).await?;
    let is_only_counts =
        Hosting { not_ready: cluster.hosting.not_ready, ..hosting.clone() } == cluster.hosting;
    if !is_only_counts {
        record_event(tx, cluster.id, "hosting").await?;
    }
    // Instances placed there may wait for the versions that the cluster can run.
    if cluster.hosting.versions != hosting.versions {
        wake_waiting(tx, cluster).await?;
    }
    Ok(())
}

/// Changes the reason of a `ready` cluster.
pub async fn explain(tx: &mut Tx, id: ClusterId, reason: Reason) -> Result<()> {
    let mut now = get(tx, Scope::All, id).await?;
    match now.status {
        Status::Ready => super::explain(tx, &mut now, reason).await,
        _ => Ok(()),
    }
}

/// Sets the units of each type, but never below the used amount; returns those that were raised.
/// Types that are not named stay. Wakes instances that wait for new types.
pub async fn set_units(
    tx: &mut Tx,
    id: ClusterId,
    units: &BTreeMap<String, i64>,
) -> Result<Vec<String>> {
    let cluster = lock_and_get(tx, id).await?;
    let place = Place { cluster: id, node: ONLY_NODE.into() };
    let (mut raised, mut is_new, mut is_changed) = (Vec::new(), false, false);
    for (kind, count) in units {
        let current = cluster.capacity.get(kind);
        let used = current.map(|current| current.used).unwrap_or_default();
        let reported = Quantity::whole(*count);
        let total = reported.max(used);
        if total > reported {
            raised.push(format!(
                "{} {kind} reported, {} in use",
                reported.to_short_string(),
                used.to_short_string()
            ));
        }
        if current.is_some_and(|current| current.total == total) {
            continue;
        }
        is_new |= current.is_none();
        is_changed = true;
        capacity::set_total(tx, &place, &[(kind.clone(), total)].into_iter().collect()).await?;
    }
    if is_changed {
        super::increment_generation(tx, id).await?;
        record_event(tx, id, "updated").await?;
    }
    if is_new {
        wake_waiting(tx, &cluster).await?;
    }
    Ok(raised)
}

/// Removes the free units of a type, which the agent refuses, until it reports its capacity again.
pub async fn remove_free_units(tx: &mut Tx, id: ClusterId, kind: &str) -> Result<()> {
    lock(tx, id).await?;
    let sql = sql!("UPDATE capacity SET total = used WHERE cluster_id = $1 AND kind = $2");
    tx.run(sql, params![id, kind]).await?;
    record_event(tx, id, "full").await.map(drop)
}

/// Wakes the instances that wait for a cluster there.
async fn wake_waiting(tx: &mut Tx, on: &Cluster) -> Result<()> {
    let sql = sql!(
        "SELECT id FROM instance WHERE deleted_at IS NULL AND status = 'accepted' ",
        "AND ((cloud_provider = $1 AND region = $2) OR pinned_to = $3) ORDER BY id"
    );
    for mut row in tx.all(sql, params![on.cloud_provider, on.region, on.id]).await? {
        let id: InstanceId = row.take()?;
        work::wake(tx, Lane::Priority, Key::new(instance::WORKER, id));
    }
    Ok(())
}
