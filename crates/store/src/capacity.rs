//! Capacity: what each node of a cluster has of each resource type and how much of it is taken.
//!
//! The condition is the lock: an amount is taken by one statement that does nothing when it does
//! not fit, so no crash and no number of replicas can take more than there is.

use std::collections::BTreeMap;

use model::cluster::{Capacity, NewNode};
use model::{ClusterId, Place, Quantity, Resources};

use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx};

/// Takes a node's capacity for a replica: all of it, or an error and the transaction can't be
/// committed.
pub(crate) async fn reserve(tx: &mut Tx, place: &Place, request: &Resources) -> Result<()> {
    let sql = sql!(
        "UPDATE capacity SET used = used + $4 ",
        "WHERE cluster_id = $1 AND node = $2 AND kind = $3 AND used + $4 <= total"
    );
    // One statement per type, in one order for everybody, so that no two wait for each other.
    for (kind, amount) in request.iter().filter(|(_, amount)| !amount.is_zero()) {
        change(tx, sql, place, kind, amount).await?;
    }
    Ok(())
}

/// Gives a replica's capacity back.
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

/// Takes capacity by hand, from one node after the other.
pub async fn take(tx: &mut Tx, cluster: ClusterId, request: &Resources) -> Result<()> {
    let sql = sql!(
        "UPDATE capacity SET used = used + $4, manual = manual + $4 ",
        "WHERE cluster_id = $1 AND node = $2 AND kind = $3 AND used + $4 <= total"
    );
    spread(tx, sql, cluster, request, Capacity::free).await
}

/// Gives back what was taken by hand; never what a replica holds.
pub async fn give_back(tx: &mut Tx, cluster: ClusterId, request: &Resources) -> Result<()> {
    let sql = sql!(
        "UPDATE capacity SET used = used - $4, manual = manual - $4 ",
        "WHERE cluster_id = $1 AND node = $2 AND kind = $3 AND manual >= $4"
    );
    spread(tx, sql, cluster, request, |capacity| capacity.manual).await
}

/// Does it to as many nodes as it takes. `room` is how much of it each can bear.
async fn spread(
    tx: &mut Tx,
    sql: &'static str,
    cluster: ClusterId,
    request: &Resources,
    room: impl Fn(&Capacity) -> Quantity,
) -> Result<()> {
    let nodes = of(tx, cluster).await?;
    let mut all = Resources::default();
    for (_, kind, capacity) in &nodes {
        let sum = all.get(kind).plus(room(capacity));
        all.set(kind, sum);
    }
    let missing = request.shortage(&all);
    if !missing.is_empty() {
        return Err(Error::Short { missing });
    }
    for (node, kind, capacity) in parts(nodes, request, room) {
        change(tx, sql, &Place { cluster, node: node.into() }, &kind, capacity).await?;
    }
    Ok(())
}

/// How much of which type goes to which node.
fn parts(
    nodes: Vec<(String, String, Capacity)>,
    request: &Resources,
    room: impl Fn(&Capacity) -> Quantity,
) -> Vec<(String, String, Quantity)> {
    let mut left = request.clone();
    let mut parts = Vec::new();
    for (node, kind, capacity) in nodes {
        let part = left.get(&kind).min(room(&capacity));
        if !part.is_zero() {
            left.set(&kind, left.get(&kind).minus(part));
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
        return Err(Error::Short { missing });
    }
    Ok(())
}

/// All there is of a cluster: node, type, how much.
async fn of(read: &mut Read, cluster: ClusterId) -> Result<Vec<(String, String, Capacity)>> {
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

/// Gives a node its totals; types that are not named keep theirs. Never below what is taken.
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
                "{amount} {kind} is less than what is in use; free some of it first"
            )));
        }
    }
    Ok(())
}

/// Makes these a cluster's nodes. What is no longer named goes, if nothing of it is in use.
pub(crate) async fn set_nodes(tx: &mut Tx, cluster: ClusterId, nodes: &[NewNode]) -> Result<()> {
    let named: BTreeMap<&str, &Resources> =
        nodes.iter().map(|node| (node.name.as_str(), &node.capacity)).collect();
    for (node, kind, _) in of(tx, cluster).await? {
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
                "{kind} of the node {node} is in use; free it first"
            )));
        }
    }
    for node in nodes {
        let place = Place { cluster, node: node.name.as_str().into() };
        set_total(tx, &place, &node.capacity).await?;
    }
    Ok(())
}
