//! Clusters whose agents speak as the fleet managers' do: known by the name that they have elsewhere,
//! counted in units of instance types, as those agents say.

use std::collections::BTreeMap;

use model::cluster::{Cluster, Hosting, NewCluster, ONLY_NODE, Reason, Status};
use model::work::{Key, Lane};
use model::{ClusterId, InstanceId, OrganizationId, Place, Quantity};

use super::{columns, create, get, lock, note, take_lock};
use crate::db::{Json, params, sql};
use crate::subject::Subject as _;
use crate::{Error, Read, Result, Scope, Tx, capacity, instance, work};

/// The cluster of that name elsewhere, or of that id here, whoever asks.
pub async fn find(read: &mut Read, name: &str) -> Result<Option<Cluster>> {
    let sql = sql!("SELECT id FROM cluster WHERE foreign_id = $1 AND deleted_at IS NULL");
    let known = read.first(sql, params![name]).await?;
    let id: Option<ClusterId> = match known {
        Some(mut row) => Some(row.take()?),
        None => name.parse().ok(),
    };
    let Some(id) = id else { return Ok(None) };
    match get(read, Scope::All, id).await {
        Err(Error::NotFound { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// The clusters that an organization has registered under their names elsewhere.
pub async fn list(read: &mut Read, organization: OrganizationId) -> Result<Vec<Cluster>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM cluster LEFT JOIN capacity ON cluster_id = id WHERE deleted_at IS NULL ",
        "AND foreign_id IS NOT NULL AND organization_id = $1 ORDER BY id, node, kind"
    );
    Ok(Cluster::from_rows(read.all(sql, params![organization]).await?))
}

/// Makes a cluster that has a name elsewhere, unless one of that name is there.
pub async fn register(
    tx: &mut Tx,
    organization: OrganizationId,
    new: &NewCluster,
    name: &str,
    hosting: &Hosting,
) -> Result<Cluster> {
    // Of two who register the same, the second must see the first.
    tx.lock(&format!("foreign cluster/{name}")).await?;
    let sql = sql!("SELECT COUNT(*) FROM cluster WHERE foreign_id = $1 AND deleted_at IS NULL");
    if tx.number(sql, params![name]).await? > 0 {
        return Err(Error::Taken { field: "cluster_id" });
    }
    let made = create(tx, Some(organization), new).await?;
    let sql = sql!("UPDATE cluster SET foreign_id = $2, hosting = $3 WHERE id = $1");
    tx.run(sql, params![made.id, name, Json(hosting)]).await?;
    note(tx, made.id, "registered").await
}

/// Notes what a cluster's agent says. Counting alone is nothing for the log.
pub async fn set(tx: &mut Tx, seen: &Cluster, hosting: &Hosting) -> Result<()> {
    if seen.hosting == *hosting {
        return Ok(());
    }
    let now = tx.now();
    let sql = sql!("UPDATE cluster SET hosting = $2, updated_at = $3 WHERE id = $1");
    tx.run(sql, params![seen.id, Json(hosting), now]).await?;
    let is_counted_alone =
        Hosting { not_ready: seen.hosting.not_ready, ..hosting.clone() } == seen.hosting;
    if !is_counted_alone {
        note(tx, seen.id, "hosting").await?;
    }
    // Who has its place there may have waited to hear what can be run.
    if seen.hosting.versions != hosting.versions {
        wake_waiting(tx, seen).await?;
    }
    Ok(())
}

/// Changes why a cluster is `ready`.
pub async fn explain(tx: &mut Tx, id: ClusterId, reason: Reason) -> Result<()> {
    let mut now = get(tx, Scope::All, id).await?;
    match now.status {
        Status::Ready => super::explain(tx, &mut now, reason).await,
        _ => Ok(()),
    }
}

/// Gives a cluster so many units of each type, and never less than are in use; which could not be as
/// asked. What is not named stays. Those who wait for units that were not there before are woken.
pub async fn set_units(
    tx: &mut Tx,
    id: ClusterId,
    units: &BTreeMap<String, i64>,
) -> Result<Vec<String>> {
    let seen = take_lock(tx, id).await?;
    let place = Place { cluster: id, node: ONLY_NODE.into() };
    let (mut short, mut is_new, mut is_changed) = (Vec::new(), false, false);
    for (kind, most) in units {
        let known = seen.capacity.get(kind);
        let used = known.map(|known| known.used).unwrap_or_default();
        let asked = Quantity::whole(*most);
        let total = asked.max(used);
        if total > asked {
            short.push(format!("{} {kind} reported, {} in use", asked.brief(), used.brief()));
        }
        if known.is_some_and(|known| known.total == total) {
            continue;
        }
        is_new |= known.is_none();
        is_changed = true;
        capacity::set_total(tx, &place, &[(kind.clone(), total)].into_iter().collect()).await?;
    }
    if is_changed {
        super::count_change(tx, id).await?;
        note(tx, id, "updated").await?;
    }
    if is_new {
        wake_waiting(tx, &seen).await?;
    }
    Ok(short)
}

/// Takes what is free of one type off a cluster whose agent has no room after all, until it says how
/// much it has.
pub async fn close(tx: &mut Tx, id: ClusterId, kind: &str) -> Result<()> {
    lock(tx, id).await?;
    let sql = sql!("UPDATE capacity SET total = used WHERE cluster_id = $1 AND kind = $2");
    tx.run(sql, params![id, kind]).await?;
    note(tx, id, "full").await.map(drop)
}

/// Has those look again who wait for a cluster there.
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
