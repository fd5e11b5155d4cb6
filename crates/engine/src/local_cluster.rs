//! The shared cluster `local`: the machine that the server runs on.

use std::collections::BTreeMap;

use model::Resources;
use model::cluster::{NewCluster, Provider, Settings};
use model::event::Actor;
use store::Db;

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
