//! The shared cluster `local`: the machine that the server runs on.

use std::collections::BTreeMap;

use model::cluster::{NewCluster, Provider, Settings};
use model::event::Actor;
use model::{DeploymentId, Resources};
use store::{Db, machine};

const NAME: &str = "local";

/// Creates the cluster if it does not exist, with the capacity of the machine. Later starts don't
/// change the capacity: from then on the platform administrator sets it.
pub async fn ensure(db: &Db, machine: &Resources) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    tx.lock("local cluster").await?;
    match store::cluster::find_shared(&mut tx, NAME).await? {
        Some(cluster) if cluster.total() != *machine => {
            let (declared, actual) = (cluster.total(), machine);
            tracing::info!(%declared, %actual, "local cluster capacity differs from the machine");
        }
        Some(_) => {}
        None => {
            store::cluster::create(&mut tx, None, &new(machine)).await?;
        }
    }
    tx.commit().await
}

/// Counts the capacity of the machine that the local agent serves: `size` is what it may give, or
/// none if nothing really runs there. Called by the server whose agent serves it, so that it is the
/// size of its own machine.
pub async fn count_machine(db: &Db, size: Option<&Resources>) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    let is_changed = match size {
        Some(size) => machine::set_size(&mut tx, machine::LOCAL, size).await?,
        None => machine::delete(&mut tx, machine::LOCAL).await?,
    };
    if is_changed {
        // Placement reads machines with the clusters.
        if let Some(local) = store::cluster::find_shared(&mut tx, NAME).await? {
            store::cluster::announce_machine(&mut tx, local.id).await?;
        }
    }
    let uncounted: Vec<DeploymentId> = match size {
        Some(_) => machine::uncounted(&mut tx).await?,
        None => Vec::new(),
    };
    tx.commit().await?;
    for id in uncounted {
        let mut tx = db.begin(Actor::Server).await?;
        machine::adopt(&mut tx, machine::LOCAL, id).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Counts the machine's capacity unless it is counted already, by the server that holds the local
/// agent's lease.
pub async fn ensure_machine(db: &Db, size: &Resources) -> store::Result<()> {
    if machine::list(&mut db.read().await?).await?.is_empty() {
        return count_machine(db, Some(size)).await;
    }
    Ok(())
}

fn new(machine: &Resources) -> NewCluster {
    NewCluster {
        name: NAME.into(),
        provider: Provider::Local,
        settings: Settings::None,
        cloud_provider: "local".into(),
        region: "local".into(),
        labels: BTreeMap::new(),
        capacity: machine.clone(),
        nodes: Vec::new(),
    }
}
