//! Capacity: the total and used amount of each resource type on each node of a cluster.
//!
//! The condition is the lock: one statement reserves an amount or does nothing if it does not fit,
//! so neither crashes nor any number of servers can overcommit.

use std::collections::BTreeMap;

use model::cluster::{Capacity, NewNode};
use model::{ClusterId, Place, Quantity, Resources};

use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx};

/// Reserves a node's capacity for a replica: all of it, or an error that prevents the commit.
pub(crate) async fn reserve(tx: &mut Tx, place: &Place, request: &Resources) -> Result<()> {
    let sql = sql!(
        "UPDATE capacity SET used = used + $4 ",
        "WHERE cluster_id = $1 AND node = $2 AND kind = $3 AND used + $4 <= total"
    );
    // One statement per type, in a global order, to avoid deadlocks.
    for (kind, amount) in request.iter().filter(|(_, amount)| !amount.is_zero()) {
        change(tx, sql, place, kind, amount).await?;
    }
    Ok(())
}

/// Releases a replica's capacity.
pub(crate) async fn release(tx: &mut Tx, place: &Place, request: &Resources) -> Result<()> {
    let sql = sql!(
        "UPDATE capacity SET used = used - $4 ",
        "WHERE cluster_id = $1 AND node = $2 AND kind = $3 AND used - manual >= $4"
    );
    for (kind, amount) in request.iter().filter(|(_, amount)| !amount.is_zero()) {
        change(tx, sql, place, kind, amount).await?;
    }
    Ok(())
}

/// Reserves capacity manually, node by node.
pub async fn reserve_manually(tx: &mut Tx, cluster: ClusterId, request: &Resources) -> Result<()> {
    let sql = sql!(
        "UPDATE capacity SET used = used + $4, manual = manual + $4 ",
        "WHERE cluster_id = $1 AND node = $2 AND kind = $3 AND used + $4 <= total"
    );
    spread(tx, sql, cluster, request, Capacity::free).await
}

/// Releases manually reserved capacity; never what a replica holds.
pub async fn release_manual(tx: &mut Tx, cluster: ClusterId, request: &Resources) -> Result<()> {
    let sql = sql!(
        "UPDATE capacity SET used = used - $4, manual = manual - $4 ",
        "WHERE cluster_id = $1 AND node = $2 AND kind = $3 AND manual >= $4"
    );
    spread(tx, sql, cluster, request, |capacity| capacity.manual).await
}

/// Applies the statement to as many nodes as needed. `available` is how much each node can contribute.
async fn spread(
    tx: &mut Tx,
    sql: &'static str,
    cluster: ClusterId,
    request: &Resources,
    available: impl Fn(&Capacity) -> Quantity,
) -> Result<()> {
    let nodes = nodes_of(tx, cluster).await?;
    let mut all = Resources::default();
    for (_, kind, capacity) in &nodes {
        let sum = all.get(kind).plus(available(capacity));
        all.set(kind, sum);
    }
    let missing = request.shortage(&all);
    if !missing.is_empty() {
        return Err(Error::InsufficientCapacity { missing });
    }
    for (node, kind, capacity) in parts(nodes, request, available) {
        change(tx, sql, &Place { cluster, node: node.into() }, &kind, capacity).await?;
    }
    Ok(())
}

/// How much of which type goes to which node.
fn parts(
    nodes: Vec<(String, String, Capacity)>,
    request: &Resources,
    available: impl Fn(&Capacity) -> Quantity,
) -> Vec<(String, String, Quantity)> {
    let mut remaining = request.clone();
    let mut parts = Vec::new();
    for (node, kind, capacity) in nodes {
        let part = remaining.get(&kind).min(available(&capacity));
        if !part.is_zero() {
            remaining.set(&kind, remaining.get(&kind).minus(part));
            parts.push((node, kind, part));
        }
    }
    parts
}

async fn change(
    tx: &mut Tx,
    sql: &'static str,
    place: &Place,
    kind: &str,
    amount: Quantity,
) -> Result<()> {
    let changed = tx.run(sql, params![place.cluster, *place.node, kind, amount]).await?;
    if changed == 0 {
        // Other types may have been changed already.
        tx.poison();
        let missing = [(kind.to_owned(), amount)].into_iter().collect();
        return Err(Error::InsufficientCapacity { missing });
    }
    Ok(())
}

/// The capacity of a cluster: node, type, amounts.
async fn nodes_of(read: &mut Read, cluster: ClusterId) -> Result<Vec<(String, String, Capacity)>> {
    let sql = sql!(
        "SELECT node, kind, total, used, manual FROM capacity WHERE cluster_id = $1 ",
        "ORDER BY node, kind"
    );
    let rows = read.all(sql, params![cluster]).await?;
    rows.into_iter()
        .map(|mut row| {
            let (node, kind) = (row.take()?, row.take()?);
            let (total, used, manual) = (row.take()?, row.take()?, row.take()?);
            Ok((node, kind, Capacity { total, used, manual }))
        })
        .collect()
}

/// Sets the totals of a node; types that are not named stay. Never below the used amount.
pub async fn set_total(tx: &mut Tx, place: &Place, total: &Resources) -> Result<()> {
    for (kind, amount) in total.iter() {
        let set = tx
            .run(
                sql!(
                    "INSERT INTO capacity (cluster_id, node, kind, total) VALUES ($1, $2, $3, $4) ",
                    "ON CONFLICT (cluster_id, node, kind) DO UPDATE SET total = excluded.total ",
                    "WHERE capacity.used <= excluded.total"
                ),
                params![place.cluster, *place.node, kind, amount],
            )
            .await?;
        if set == 0 {
            return Err(Error::Conflict(format!(
                "{amount} {kind} is less than the amount in use; release some of it first"
            )));
        }
    }
    Ok(())
}

/// Sets the nodes of a cluster. Nodes that are not named are removed, unless they are in use.
pub(crate) async fn set_nodes(tx: &mut Tx, cluster: ClusterId, nodes: &[NewNode]) -> Result<()> {
    let named: BTreeMap<&str, &Resources> =
        nodes.iter().map(|node| (node.name.as_str(), &node.capacity)).collect();
    for (node, kind, _) in nodes_of(tx, cluster).await? {
        let is_named = named.get(node.as_str()).is_some_and(|has| has.iter().any(|h| h.0 == kind));
        if is_named {
            continue;
        }
        let sql = sql!(
            "DELETE FROM capacity WHERE cluster_id = $1 AND node = $2 AND kind = $3 AND used = 0"
        );
        if tx.run(sql, params![cluster, node, kind]).await? == 0 {
            tx.poison();
            return Err(Error::Conflict(format!(
                "{kind} of node {node} is in use; release it first"
            )));
        }
    }
    for node in nodes {
        let place = Place { cluster, node: node.name.as_str().into() };
        set_total(tx, &place, &node.capacity).await?;
    }
    Ok(())
}
