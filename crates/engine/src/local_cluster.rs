//! The shared cluster `local`: the machine that the server runs on.

use std::collections::BTreeMap;

use model::Resources;
use model::cluster::{NewCluster, Provider};
use model::event::Actor;
use store::Db;

const NAME: &str = "local";

/// Makes sure that the cluster is there and has what the machine has.
pub async fn ensure(db: &Db, machine: &Resources) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    tx.lock("local cluster").await?;
    match store::cluster::find_shared(&mut tx, NAME).await? {
        Some(cluster) if cluster.total() == *machine => return Ok(()),
        Some(cluster) => match store::cluster::set_total(&mut tx, cluster.id, machine).await {
            Ok(_) => {}
            Err(store::Error::Conflict(reason)) => {
                tracing::warn!(
                    reason,
                    "this machine has less than before; its cluster keeps its capacity"
                );
                return Ok(());
            }
            Err(error) => return Err(error),
        },
        None => {
            store::cluster::create(&mut tx, None, &new(machine)).await?;
        }
    }
    tx.commit().await
}

fn new(machine: &Resources) -> NewCluster {
    NewCluster {
        name: NAME.into(),
        provider: Provider::Local,
        cloud_provider: "local".into(),
        region: "local".into(),
        labels: BTreeMap::new(),
        capacity: machine.clone(),
    }
}
