//! The shared cluster `local`: the machine that the server runs on.

use std::collections::BTreeMap;

use model::Resources;
use model::cluster::{NewCluster, Provider, Settings};
use model::event::Actor;
use store::Db;

const NAME: &str = "local";

/// Makes sure that the cluster is there. It gets what the machine has; from then on its capacity is
/// the platform administrator's business, and a restart does not undo what was set.
pub async fn ensure(db: &Db, machine: &Resources) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    tx.lock("local cluster").await?;
    match store::cluster::find_shared(&mut tx, NAME).await? {
        Some(cluster) if cluster.total() != *machine => {
            let (declared, here) = (cluster.total(), machine);
            tracing::info!(%declared, %here, "the cluster of this machine declares something else");
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
