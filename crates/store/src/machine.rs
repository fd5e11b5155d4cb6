//! Machines: capacity that containers of several clusters share.
//!
//! A replica that runs a container takes what it requests from its node's capacity, and its limits
//! from the machine's. The machine's rows change at the commit, when no other lock is waited for; the
//! condition is the lock here, too.

use model::cluster::Provider;
use model::deployment::limits;
use model::{ClusterId, DeploymentId, Quantity, Resources};

use crate::db::{Counter, Json, params, sql};
use crate::deployment::{lock_with_clusters, replica};
use crate::{Error, Read, Result, Scope, Tx};

/// The machine of the local agent, which serves all clusters of provider `local`.
pub const LOCAL: &str = "local";

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The name.
    pub name: String,
    /// What it may give.
    pub size: Resources,
    /// What containers use.
    pub used: Resources,
    /// The part of it that containers use which may still run although they were evicted.
    pub leftovers: Resources,
}

/// All machines whose capacity is counted.
pub async fn list(read: &mut Read) -> Result<Vec<Machine>> {
    let sql = sql!("SELECT name, kind, size, used FROM machine ORDER BY name, kind");
    let mut machines: Vec<Machine> = Vec::new();
    for mut row in read.all(sql, params![]).await? {
        let (name, kind): (String, String) = (row.take()?, row.take()?);
        if machines.last().is_none_or(|last| last.name != name) {
            let none = Resources::default();
            machines.push(Machine {
                name,
                size: none.clone(),
                used: none.clone(),
                leftovers: none,
            });
        }
        if let Some(machine) = machines.last_mut() {
            machine.size.set(kind.clone(), row.take()?);
            machine.used.set(kind, row.take()?);
        }
    }
    for machine in &mut machines {
        let sql = sql!("SELECT request FROM leftover WHERE machine = $1");
        for mut row in read.all(sql, params![machine.name]).await? {
            machine.leftovers.add(&limits(&row.take::<Json<Resources>>()?.0));
        }
    }
    Ok(machines)
}

/// The machine that containers on a cluster take from, if its capacity is counted.
pub(crate) async fn of_cluster(read: &mut Read, id: ClusterId) -> Result<Option<String>> {
    let sql = sql!(
        "SELECT m.name FROM machine m, cluster c WHERE c.id = $1 AND c.provider = $2 ",
        "AND m.name = $3 LIMIT 1"
    );
    let row = read.first(sql, params![id, Provider::Local, LOCAL]).await?;
    row.map(|mut row| row.take()).transpose()
}

/// Reserves a machine's capacity: all of it, or the commit fails.
pub(crate) fn reserve(tx: &mut Tx, name: &str, request: &Resources) {
    change(tx, name, request, 1);
}

/// Releases a machine's capacity.
pub(crate) fn release(tx: &mut Tx, name: &str, request: &Resources) {
    change(tx, name, request, -1);
}

fn change(tx: &mut Tx, name: &str, request: &Resources, sign: i64) {
    let all = limits(request);
    for (kind, amount) in all.iter().filter(|(_, amount)| !amount.is_zero()) {
        tx.count(Counter::Machine(name.to_owned(), kind.to_owned()), sign * amount.milli());
    }
}

/// Changes the used amount of one resource type, in thousandths.
pub(crate) async fn add_to_used(tx: &mut Tx, name: &str, kind: &str, change: i64) -> Result<()> {
    let sql = sql!(
        "UPDATE machine SET used = used + $3, ",
        "total = CASE WHEN size < used + $3 THEN used + $3 ELSE size END ",
        "WHERE name = $1 AND kind = $2 AND used + $3 >= 0 AND ($3 <= 0 OR used + $3 <= total)"
    );
    if change == 0 || tx.run(sql, params![name, kind, change]).await? == 1 {
        return Ok(());
    }
    tx.poison();
    let missing = [(kind.to_owned(), Quantity::from_milli(change.max(0)))].into_iter().collect();
    Err(Error::InsufficientCapacity { missing })
}

/// Sets what a machine may give. If that is less than the used amount, it gives nothing new until
/// enough is released. Returns whether anything changed.
pub async fn set_size(tx: &mut Tx, name: &str, size: &Resources) -> Result<bool> {
    tx.lock(&format!("machine/{name}")).await?;
    let mut now: Resources = Resources::default();
    for machine in list(tx).await?.into_iter().filter(|machine| machine.name == name) {
        now = machine.size;
    }
    if now == *size {
        return Ok(false);
    }
    let mut all: Resources =
        now.iter().map(|(kind, _)| (kind.to_owned(), Quantity::ZERO)).collect();
    all.add(size);
    for (kind, amount) in all.iter() {
        tx.run(
            sql!(
                "INSERT INTO machine (name, kind, size, total) VALUES ($1, $2, $3, $3) ",
                "ON CONFLICT (name, kind) DO UPDATE SET size = excluded.size, total = ",
                "CASE WHEN excluded.size < machine.used THEN machine.used ELSE excluded.size END"
            ),
            params![name, kind, amount],
        )
        .await?;
    }
    Ok(true)
}

/// No longer counts the capacity of a machine. Returns whether it was counted.
pub async fn delete(tx: &mut Tx, name: &str) -> Result<bool> {
    tx.lock(&format!("machine/{name}")).await?;
    for sql in [
        sql!("UPDATE replica SET machine = NULL WHERE machine = $1"),
        sql!("UPDATE leftover SET machine = NULL WHERE machine = $1"),
    ] {
        tx.run(sql, params![name]).await?;
    }
    Ok(tx.run(sql!("DELETE FROM machine WHERE name = $1"), params![name]).await? > 0)
}

/// The deployments with containers on clusters of the local agent that are not counted.
pub async fn uncounted(read: &mut Read) -> Result<Vec<DeploymentId>> {
    let sql = sql!(
        "SELECT DISTINCT r.deployment_id FROM replica r JOIN deployment d ON d.id = r.deployment_id ",
        "JOIN cluster c ON c.id = r.cluster_id WHERE r.machine IS NULL AND c.provider = $1 ",
        "AND (d.image IS NOT NULL OR d.instance_id IS NOT NULL) ORDER BY 1"
    );
    let rows = read.all(sql, params![Provider::Local]).await?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// Counts the containers of a deployment that were placed while the machine was not counted. They
/// run already: the machine is then larger than its size until enough has ended.
pub async fn adopt(tx: &mut Tx, name: &str, id: DeploymentId) -> Result<()> {
    let (deployment, replicas) = match lock_with_clusters(tx, Scope::All, id).await {
        Err(Error::NotFound { .. }) => return Ok(()),
        other => other?,
    };
    for replica in replicas.iter().filter(|replica| replica.machine.is_none()) {
        let Some(place) = &replica.place else { continue };
        if !deployment.takes_machine() || of_cluster(tx, place.cluster).await?.is_none() {
            continue;
        }
        replica::set_machine(tx, replica.id, name).await?;
        for (kind, amount) in limits(&deployment.spec.resources).iter() {
            tx.run(
                sql!(
                    "INSERT INTO machine (name, kind, size, total, used) VALUES ($1, $2, 0, $3, $3) ",
                    "ON CONFLICT (name, kind) DO UPDATE SET used = machine.used + excluded.used, ",
                    "total = CASE WHEN machine.size < machine.used + excluded.used ",
                    "THEN machine.used + excluded.used ELSE machine.size END"
                ),
                params![name, kind, amount],
            )
            .await?;
        }
    }
    Ok(())
}
