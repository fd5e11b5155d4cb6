//! Consistency of the capacity and quota ledgers with the rows.

use std::collections::BTreeMap;

use model::deployment::Deployment;
use model::event::Actor;
use model::{Place, Resources};
use store::deployment::{eviction, placement};
use store::{
    Db, Page, Scope, cluster, deployment, instance, organization, organization_quota, quota_usage,
};

/// Checks that the ledgers match: used capacity is what was reserved manually and what deployments
/// hold, and counters equal the number of rows. Panics if not.
pub async fn check_ledgers(db: &Db) {
    let (mut tx, page) = (snapshot(db).await, Page::first(100_000));
    let deployments = placement::list(&mut tx, &page).await.expect("deployments");
    let all: Vec<&Deployment> = deployments.iter().map(|(deployment, _)| deployment).collect();
    let clusters = cluster::list(&mut tx, Scope::All, &cluster::Filter::default(), &page).await;
    for cluster in clusters.expect("clusters") {
        let left = eviction::leftovers(&mut tx, cluster.id).await.expect("leftovers");
        for node in &cluster.nodes {
            let mut held = Resources::default();
            let on = |place: &Place| place.cluster == cluster.id && *place.node == *node.name;
            for (deployment, replicas) in &deployments {
                let here = replicas.iter().filter(|r| r.place.as_ref().is_some_and(on));
                here.for_each(|_| held.add(&deployment.spec.resources));
            }
            left.iter().filter(|(name, _)| *name == node.name).for_each(|(_, r)| held.add(r));
            for (kind, capacity) in &node.capacity {
                let sum = capacity.manual.plus(held.get(kind));
                assert_eq!(capacity.used, sum, "{kind}: {cluster:?}");
                assert!(capacity.used <= capacity.total, "{kind}: {cluster:?}");
            }
        }
        let on = deployment::Filter {
            cluster: Some(cluster.id),
            with_instances: true,
            ..deployment::Filter::default()
        };
        let here = deployment::count(&mut tx, Scope::All, &on).await.expect("a count");
        if left.is_empty() {
            assert_eq!(cluster.deployments, here, "{cluster:?}");
        }
    }
    check_machines(&mut tx, &deployments).await;
    let owners = organization::list(&mut tx, Scope::All, &page).await.expect("organizations");
    for owner in owners {
        let is_counted = |d: &Deployment| d.instance_id.is_none() && d.reserved.is_none();
        let is_own = |d: &&&Deployment| d.organization_id == owner.id && is_counted(d);
        let own = all.iter().filter(is_own);
        assert_eq!(owner.deployments, count(own), "{owner:?}");
        let rows = organization_quota::counted(&mut tx, owner.id).await.expect("counts");
        assert_eq!(organization_quota::stored(&mut tx, owner.id).await.expect("usage"), rows);
    }
    check_accounts(&mut tx, &page).await;
}

/// Checks that machines' used capacity is what containers hold.
async fn check_machines(tx: &mut store::Tx, deployments: &placement::WithReplicas) {
    for machine in store::machine::list(tx).await.expect("machines") {
        let mut held = machine.leftovers.clone();
        for (deployment, replicas) in deployments {
            let is_here = |name: &Option<String>| name.as_deref() == Some(&*machine.name);
            let here = replicas.iter().filter(|replica| is_here(&replica.machine));
            for replica in here {
                assert!(replica.place.is_some(), "{replica:?} holds a machine without a place");
                held.add(&model::deployment::limits(&deployment.spec.resources));
            }
        }
        for (kind, used) in machine.used.iter() {
            assert_eq!(used, held.get(kind), "{kind} of {machine:?}");
        }
    }
}

/// Checks that quota accounts equal the charges of instances.
async fn check_accounts(tx: &mut store::Tx, page: &Page) {
    let all = instance::list(tx, Scope::All, &instance::Filter::default(), page).await;
    let mut charged: BTreeMap<(String, String, String), i64> = BTreeMap::new();
    for instance in all.expect("instances") {
        for charge in instance.detail.charges {
            let key = (instance.kind.clone(), charge.holder, charge.account);
            *charged.entry(key).or_default() += charge.units;
        }
    }
    let stored = quota_usage::list(tx).await.expect("accounts").into_iter();
    let stored = stored.map(|(kind, charge)| ((kind, charge.holder, charge.account), charge.units));
    assert_eq!(stored.collect::<BTreeMap<_, _>>(), charged);
}

/// A transaction whose statements all see the same snapshot.
async fn snapshot(db: &Db) -> store::Tx {
    let mut tx = db.begin(Actor::Server).await.expect("a transaction");
    if db.engine_name() == "postgresql" {
        let repeatable = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
        tx.run(repeatable, &[]).await.expect("PostgreSQL supports it");
    }
    tx
}

fn count<T>(items: impl Iterator<Item = T>) -> i64 {
    i64::try_from(items.count()).expect("a test's list")
}
