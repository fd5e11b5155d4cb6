//! Draining clusters: replicas move by placement's rules; the others stay and are counted.

use agent::simulated;
use model::cluster::Cluster;
use model::deployment::Status;
use model::event::Actor;
use model::instance;
use model::{ClusterId, DeploymentId, Resources};
use store::Scope;
use testing::{Engine, check_ledgers, on_both_engines, rows};

use crate::fleet::dinosaur;
use crate::probe::until;
use crate::replica::{nodes, replicas};
use crate::world::World;

async fn started(engine: Engine) -> World {
    World::start(engine, simulated::Options::default()).await
}

async fn drain(world: &World, id: ClusterId) {
    let mut tx = world.db.begin(Actor::Anonymous).await.unwrap();
    let now = store::cluster::get(&mut tx, Scope::All, id).await.unwrap();
    store::cluster::drain(&mut tx, &now).await.unwrap();
    tx.commit().await.unwrap();
}

async fn undrain(world: &World, id: ClusterId) {
    let mut tx = world.db.begin(Actor::Anonymous).await.unwrap();
    let now = store::cluster::get(&mut tx, Scope::All, id).await.unwrap();
    store::cluster::undrain(&mut tx, &now).await.unwrap();
    tx.commit().await.unwrap();
}

async fn get(world: &World, id: ClusterId) -> Cluster {
    store::cluster::get(&mut world.db.read().await.unwrap(), Scope::All, id).await.unwrap()
}

async fn until_reason(world: &World, id: ClusterId, message: &str) {
    until(message, async || get(world, id).await.reason.to_string().contains(message)).await;
}

async fn until_on(world: &World, id: DeploymentId, on: &Cluster) {
    until("runs there", async || {
        let now = world.get(id).await.unwrap();
        now.status == Status::Running && now.placed_on == Some(on.id)
    })
    .await;
}

on_both_engines! {
    async fn draining_cluster_loses_its_replicas_and_gets_no_new_ones(engine: Engine) {
        let world = started(engine).await;
        let old = world.cluster([("cpu", 4)]).await;
        let web = world.deploy(None, Some("web:1"), 2, 0).await;
        let held = world.deploy(None, None, 1, 0).await;
        until_on(&world, web, &old).await;
        until_on(&world, held, &old).await;
        let new = world.cluster([("cpu", 4)]).await;
        drain(&world, old.id).await;
        until_on(&world, web, &new).await;
        until_on(&world, held, &new).await;
        until_reason(&world, old.id, "Drained").await;
        assert_eq!(world.free_cpu(old.id).await, 4);
        // Only the draining cluster has free capacity, and it is not used.
        let late = world.deploy(None, Some("web:1"), 2, 0).await;
        until("it is pending", async || world.get(late).await.unwrap().status == Status::Queued).await;
        check_ledgers(&world.db).await;
        undrain(&world, old.id).await;
        until_on(&world, late, &old).await;
        check_ledgers(&world.db).await;
    }

    async fn replica_without_capacity_elsewhere_keeps_running(engine: Engine) {
        let world = started(engine).await;
        let old = world.cluster([("cpu", 8)]).await;
        let big = world.deploy(None, Some("web:1"), 4, 0).await;
        let pinned = world.deploy(Some(&old), Some("web:1"), 1, 0).await;
        let small = world.deploy(None, Some("web:1"), 2, 0).await;
        for id in [big, pinned, small] {
            until_on(&world, id, &old).await;
        }
        let new = world.cluster([("cpu", 2)]).await;
        drain(&world, old.id).await;
        until_on(&world, small, &new).await;
        until_reason(&world, old.id, "1 deployment without capacity elsewhere, 1 deployment pinned here").await;
        for id in [big, pinned] {
            let now = world.get(id).await.unwrap();
            assert_eq!((now.status, now.placed_on), (Status::Running, Some(old.id)));
        }
        // Moves as soon as another cluster has capacity.
        let more = world.cluster([("cpu", 4)]).await;
        until_on(&world, big, &more).await;
        check_ledgers(&world.db).await;
    }

    async fn higher_priority_replica_moves_by_preemption(engine: Engine) {
        let world = started(engine).await;
        let old = world.cluster([("cpu", 2)]).await;
        let high = world.deploy(None, Some("web:1"), 2, 10).await;
        until_on(&world, high, &old).await;
        let new = world.cluster([("cpu", 2)]).await;
        let low = world.deploy(None, Some("web:1"), 2, 0).await;
        until_on(&world, low, &new).await;
        drain(&world, old.id).await;
        until_on(&world, high, &new).await;
        until("the lower one is pending", async || {
            matches!(world.get(low).await.unwrap().status, Status::Preempted | Status::Queued)
        })
        .await;
        // A lower priority preempts nobody.
        undrain(&world, old.id).await;
        until_on(&world, low, &old).await;
        drain(&world, old.id).await;
        until_reason(&world, old.id, "1 deployment without capacity elsewhere").await;
        assert_eq!(world.get(high).await.unwrap().placed_on, Some(new.id));
        check_ledgers(&world.db).await;
    }

    async fn anti_affine_replicas_move_one_by_one(engine: Engine) {
        let world = started(engine).await;
        let old = nodes(&world, &[1, 1]).await;
        let one = Resources::from([("cpu", 1)]);
        let mut new = rows::new_deployment(None, Some("web:1"), one, 0);
        new.spec.replicas = 2;
        new.spec.anti_affinity = true;
        let id = world.deploy_new(&new).await;
        until_on(&world, id, &old).await;
        // Capacity for one replica elsewhere is enough to move one.
        let first = world.cluster([("cpu", 4)]).await;
        drain(&world, old.id).await;
        let on = async |cluster: ClusterId| {
            let replicas = replicas(&world, id).await;
            replicas.iter().filter(|r| r.place.as_ref().is_some_and(|p| p.cluster == cluster)).count()
        };
        until("one has moved", async || on(first.id).await == 1 && on(old.id).await == 1).await;
        until_reason(&world, old.id, "1 deployment without capacity elsewhere").await;
        let second = world.cluster([("cpu", 4)]).await;
        until("both have moved", async || on(second.id).await == 1 && on(first.id).await == 1).await;
        until_reason(&world, old.id, "Drained").await;
        check_ledgers(&world.db).await;
    }

    async fn instance_is_recreated_on_a_cluster_with_capacity(engine: Engine) {
        let world = started(engine).await;
        let old = world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        let id = world.create_instance(&dinosaur("rex")).await;
        world.until_instance(id, instance::Status::Ready).await;
        let new = world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        drain(&world, old.id).await;
        until("it is ready there", async || {
            let now = world.instance(id).await.unwrap();
            now.status == instance::Status::Ready && now.cluster_id == Some(new.id)
        })
        .await;
        until_reason(&world, old.id, "Drained").await;
        assert_eq!(world.free_cpu(old.id).await, 4);
        check_ledgers(&world.db).await;
    }
}
