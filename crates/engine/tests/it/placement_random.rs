//! Random deployments with random priorities and lifetimes: when idle, capacity is accounted for
//! and no pending deployment would fit.

use std::time::Duration;

use agent::simulated;
use model::cluster::Cluster;
use model::deployment::{Deployment, NewDeployment};
use model::event::Actor;
use model::{DeploymentId, OrganizationId, Quantity, Resources};
use store::Scope;
use store::deployment::Change;
use testing::{Rng, check_ledgers, on_both_engines, rows};

use crate::world::World;

const DEPLOYMENTS: usize = 200;

on_both_engines! {
    async fn two_hundred_random_deployments_converge(engine: Engine) {
        let world = World::start(engine, runtime()).await;
        let other = rows::tenant(&world.db, "globex").await.organization_id;
        for owner in [Some(world.owner), Some(other), None] {
            rows::ready_cluster(&world.db, owner, Resources::from([("cpu", 30), ("ram", 40)])).await;
        }
        let (clusters, mut rng) = (world.clusters().await, Rng::from_env());
        for n in 0..DEPLOYMENTS {
            let owner = if rng.one_in(2) { world.owner } else { other };
            let new = random(&mut rng, owner, &clusters);
            rows::deployment(&world.db, owner, &new).await;
            change(&world, &mut rng).await;
            if n % 20 == 0 {
                check_ledgers(&world.db).await;
            }
        }
        world.until_idle().await;
        check_ledgers(&world.db).await;
        until_no_pending_deployment_fits(&world).await;
    }
}

fn runtime() -> simulated::Options {
    simulated::Options {
        start_delay: Duration::from_millis(2),
        stop_delay: Duration::from_millis(2),
        fail: Some("bad".into()),
        complete: Some("job".into()),
        run_for: Duration::from_millis(20),
    }
}

fn random(rng: &mut Rng, owner: OrganizationId, clusters: &[Cluster]) -> NewDeployment {
    let may_use = |c: &&Cluster| c.organization_id.is_none_or(|id| id == owner);
    let usable: Vec<_> = clusters.iter().filter(may_use).map(|cluster| cluster.id).collect();
    let pinned_to = if rng.one_in(2) { rng.pick(&usable).copied() } else { None };
    let image = match rng.below(10) {
        0 => None,
        1 => Some("registry/bad:1"),
        2 => Some("registry/job:1"),
        _ => Some("registry/web:1"),
    };
    let mut milli = |most: u64| Quantity::from_milli(i64::try_from(rng.below(most)).unwrap() * 250);
    let amounts = [("cpu".to_owned(), milli(20)), ("ram".to_owned(), milli(30))];
    let priority = i64::try_from(rng.below(6)).unwrap();
    rows::new_deployment(pinned_to, image, amounts.into_iter().collect(), priority)
}

/// Changes or deletes a random deployment now and then.
async fn change(world: &World, rng: &mut Rng) {
    if !rng.one_in(3) {
        return;
    }
    let all = world.all().await;
    let Some(one) = rng.pick(&all) else { return };
    if rng.one_in(2) {
        return delete_if_exists(world, one.id).await;
    }
    let priority = Some(i64::try_from(rng.below(6)).unwrap());
    let mut tx = world.db.begin(Actor::Anonymous).await.unwrap();
    // It may have completed meanwhile.
    if store::deployment::set(&mut tx, one.id, &Change { priority, ..Change::default() })
        .await
        .is_ok()
    {
        tx.commit().await.unwrap();
    }
}

/// Deletes a deployment that may already be deleted.
async fn delete_if_exists(world: &World, id: DeploymentId) {
    let mut tx = world.db.begin(Actor::Anonymous).await.unwrap();
    match store::deployment::request_delete(&mut tx, Scope::All, id).await {
        Err(store::Error::NotFound { .. }) => {}
        deleted => {
            deleted.unwrap();
            tx.commit().await.unwrap();
        }
    }
}

/// Placement decides shortly after the last event; then no pending deployment would fit.
async fn until_no_pending_deployment_fits(world: &World) {
    let mut wrong = None;
    for _ in 0..200 {
        wrong = pending_deployment_that_fits(world).await;
        if wrong.is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{}", wrong.unwrap());
}

async fn pending_deployment_that_fits(world: &World) -> Option<String> {
    let all = world.all().await;
    assert!(all.iter().any(|one| one.placed_on.is_some()), "no deployment is placed");
    for cluster in world.clusters().await {
        let may_run_here = |one: &&Deployment| match one.pinned_to {
            Some(id) => id == cluster.id,
            None => cluster.organization_id.is_none_or(|owner| owner == one.organization_id),
        };
        let held: Vec<_> = all.iter().filter(|one| one.placed_on == Some(cluster.id)).collect();
        if let Some(one) = held.iter().find(|one| !one.status.is_placed()) {
            return Some(format!("{one:?} never stopped"));
        }
        for one in all.iter().filter(|one| one.status.is_pending()).filter(may_run_here) {
            let mut free = cluster.free();
            if one.spec.request().fits(&free) {
                return Some(format!("{one:?} could start on {cluster:?}"));
            }
            let lower = held.iter().filter(|other| other.priority < one.priority);
            lower.for_each(|other| free.add(&other.spec.request()));
            if one.spec.request().fits(&free) {
                return Some(format!("{one:?} could displace on {cluster:?}"));
            }
        }
    }
    None
}
