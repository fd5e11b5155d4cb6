//! Consistency checks: used capacity against its holders, counters against rows.

use std::time::Duration;

use model::Resources;
use model::cluster::Cluster;
use model::replica::Replica;
use store::deployment::{Filter, placement};
use store::{Page, Read, Scope};
use testing::TestPaddock;

/// Fails if capacity or a counter is inconsistent once the server is idle.
pub(crate) async fn assert_consistent(paddock: &TestPaddock) {
    let mut wrong = Vec::new();
    for _ in 0..100 {
        wrong = differences(paddock).await;
        if wrong.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("inconsistent: {wrong:#?}");
}

async fn differences(paddock: &TestPaddock) -> Vec<String> {
    let mut read = paddock.db().read().await.unwrap();
    let everything = Page::first(1000);
    let filter = store::cluster::Filter::default();
    let clusters = store::cluster::list(&mut read, Scope::All, &filter, &everything).await.unwrap();
    let mut wrong = Vec::new();
    for cluster in &clusters {
        wrong.extend(cluster_differences(&mut read, cluster).await);
    }
    for organization in store::organization::list(&mut read, Scope::All, &everything).await.unwrap()
    {
        let scope = Scope::Organization(organization.id);
        let rows = store::deployment::count(&mut read, scope, &Filter::default()).await.unwrap();
        if rows != organization.deployments {
            wrong.push(format!("{rows} deployments, counted are {}", organization.deployments));
        }
    }
    wrong
}

async fn cluster_differences(read: &mut Read, cluster: &Cluster) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut held: Resources = cluster.capacity.iter().map(|(k, c)| (k.clone(), c.manual)).collect();
    for (deployment, replicas) in placement::list(read, &Page::first(10_000)).await.unwrap() {
        let here =
            |replica: &&Replica| replica.place.as_ref().map(|p| p.cluster) == Some(cluster.id);
        replicas.iter().filter(here).for_each(|_| held.add(&deployment.spec.resources));
    }
    for (kind, capacity) in &cluster.capacity {
        let (used, sum) = (capacity.used, held.get(kind));
        if used != sum || used > capacity.total {
            wrong.push(format!("{kind} of {}: {sum} is held, {capacity:?}", cluster.name));
        }
    }
    let on = Filter { cluster: Some(cluster.id), ..Filter::default() };
    let rows = store::deployment::count(read, Scope::All, &on).await.unwrap();
    if rows != cluster.deployments {
        let counted = cluster.deployments;
        wrong.push(format!("{rows} deployments of {}, counted are {counted}", cluster.name));
    }
    wrong
}
