//! Many deployments, in random order, with random priorities and ends: at rest the books are right
//! and nobody waits who would fit.

use std::time::Duration;

use agent::simulated;
use model::cluster::Cluster;
use model::deployment::{Deployment, NewDeployment};
use model::event::Actor;
use model::{DeploymentId, OrganizationId, Quantity, Resources};
use store::Scope;
use store::deployment::Change;
use testing::{Dice, check_books, on_both_engines, rows};

use crate::world::World;

const DEPLOYMENTS: usize = 200;

on_both_engines! {
    async fn two_hundred_random_deployments_come_to_rest(engine: Engine) {
        let world = World::start(engine, runtime()).await;
        let other = rows::tenant(&world.db, "globex").await.organization_id;
        for owner in [Some(world.owner), Some(other), None] {
            rows::ready_cluster(&world.db, owner, Resources::from([("cpu", 30), ("ram", 40)])).await;
        }
        let (clusters, mut dice) = (world.clusters().await, Dice::roll());
        for n in 0..DEPLOYMENTS {
            let owner = if dice.one_in(2) { world.owner } else { other };
            let new = random(&mut dice, owner, &clusters);
            rows::deployment(&world.db, owner, &new).await;
            change(&world, &mut dice).await;
            if n % 20 == 0 {
                check_books(&world.db).await;
            }
        }
        world.until_at_rest().await;
        check_books(&world.db).await;
        nobody_waits_who_would_fit(&world).await;
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

fn random(dice: &mut Dice, owner: OrganizationId, clusters: &[Cluster]) -> NewDeployment {
    let may_use = |c: &&Cluster| c.organization_id.is_none_or(|id| id == owner);
    let usable: Vec<_> = clusters.iter().filter(may_use).map(|cluster| cluster.id).collect();
    let pinned_to = if dice.one_in(2) { dice.pick(&usable).copied() } else { None };
    let image = match dice.below(10) {
        0 => None,
        1 => Some("registry/bad:1"),
        2 => Some("registry/job:1"),
        _ => Some("registry/web:1"),
    };
    let mut milli =
        |most: u64| Quantity::from_milli(i64::try_from(dice.below(most)).unwrap() * 250);
    let amounts = [("cpu".to_owned(), milli(20)), ("ram".to_owned(), milli(30))];
    let priority = i64::try_from(dice.below(6)).unwrap();
    rows::new_deployment(pinned_to, image, amounts.into_iter().collect(), priority)
}

/// Sometimes somebody changes their mind about something.
async fn change(world: &World, dice: &mut Dice) {
    if !dice.one_in(3) {
        return;
    }
    let all = world.all().await;
    let Some(one) = dice.pick(&all) else { return };
    if dice.one_in(2) {
        return delete_if_there(world, one.id).await;
    }
    let priority = Some(i64::try_from(dice.below(6)).unwrap());
    let mut tx = world.db.begin(Actor::Anonymous).await.unwrap();
    // It may have come to its end meanwhile.
    if store::deployment::set(&mut tx, one.id, &Change { priority, ..Change::default() })
        .await
        .is_ok()
    {
        tx.commit().await.unwrap();
    }
}

/// One that was on its way out already may be gone by now.
async fn delete_if_there(world: &World, id: DeploymentId) {
    let mut tx = world.db.begin(Actor::Anonymous).await.unwrap();
    match store::deployment::request_delete(&mut tx, Scope::All, id).await {
        Err(store::Error::NotFound { .. }) => {}
        deleted => {
            deleted.unwrap();
            tx.commit().await.unwrap();
        }
    }
}

/// Placement decides a moment after the last event; then nobody waits who would fit.
async fn nobody_waits_who_would_fit(world: &World) {
    let mut wrong = None;
    for _ in 0..200 {
        wrong = somebody_who_would_fit(world).await;
        if wrong.is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{}", wrong.unwrap());
}

async fn somebody_who_would_fit(world: &World) -> Option<String> {
    let all = world.all().await;
    assert!(all.iter().any(|one| one.placed_on.is_some()), "nothing runs at all");
    for cluster in world.clusters().await {
        let may_run_here = |one: &&Deployment| match one.pinned_to {
            Some(id) => id == cluster.id,
            None => cluster.organization_id.is_none_or(|owner| owner == one.organization_id),
        };
        let held: Vec<_> = all.iter().filter(|one| one.placed_on == Some(cluster.id)).collect();
        if let Some(one) = held.iter().find(|one| !one.status.is_wanted()) {
            return Some(format!("{one:?} never stopped"));
        }
        for one in all.iter().filter(|one| one.status.is_waiting()).filter(may_run_here) {
            let mut room = cluster.free();
            if one.spec.request().fits(&room) {
                return Some(format!("{one:?} could start on {cluster:?}"));
            }
            let lower = held.iter().filter(|other| other.priority < one.priority);
            lower.for_each(|other| room.add(&other.spec.request()));
            if one.spec.request().fits(&room) {
                return Some(format!("{one:?} could displace on {cluster:?}"));
            }
        }
    }
    None
}
