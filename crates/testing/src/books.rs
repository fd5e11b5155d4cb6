//! The books of capacity: what they say against what is there.

use model::Resources;
use model::deployment::Deployment;
use model::event::Actor;
use store::{Db, Page, Scope, cluster, deployment, organization};

/// Are the books right? What is used is what was taken by hand and what deployments hold; the
/// counters say what the rows say. Panics if not.
pub async fn check_books(db: &Db) {
    let (mut tx, page) = (snapshot(db).await, Page::first(100_000));
    let all = deployment::list(&mut tx, Scope::All, &deployment::Filter::default(), &page).await;
    let all = all.expect("deployments");
    let clusters = cluster::list(&mut tx, Scope::All, &cluster::Filter::default(), &page).await;
    for cluster in clusters.expect("clusters") {
        let mut held = Resources::default();
        for one in all.iter().filter(|one| one.placed_on == Some(cluster.id)) {
            held.add(&one.spec.request());
        }
        for (kind, capacity) in &cluster.capacity {
            assert_eq!(capacity.used, capacity.manual.plus(held.get(kind)), "{kind}: {cluster:?}");
            assert!(capacity.used <= capacity.total, "{kind}: {cluster:?}");
        }
        let here = |one: &&Deployment| one.pinned_to.or(one.placed_on) == Some(cluster.id);
        assert_eq!(cluster.deployments, count(all.iter().filter(here)), "{cluster:?}");
    }
    let owners = organization::list(&mut tx, Scope::All, &page).await.expect("organizations");
    for owner in owners {
        let own = all.iter().filter(|one| one.organization_id == owner.id);
        assert_eq!(owner.deployments, count(own), "{owner:?}");
    }
}

/// A transaction all of whose statements see the same.
async fn snapshot(db: &Db) -> store::Tx {
    let mut tx = db.begin(Actor::Server).await.expect("a transaction");
    if db.engine_name() == "postgresql" {
        let repeatable = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
        tx.run(repeatable, &[]).await.expect("PostgreSQL knows it");
    }
    tx
}

fn count<T>(items: impl Iterator<Item = T>) -> i64 {
    i64::try_from(items.count()).expect("a test's list")
}
