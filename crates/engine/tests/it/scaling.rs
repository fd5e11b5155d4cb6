//! Autoscaling of pools with the real workers, placement, and a simulated agent.

use std::sync::Arc;
use std::time::Duration;

use agent::simulated;
use model::Resources;
use model::cluster::Cluster;
use model::deployment::Status;
use model::event::Actor;
use model::scaling::{Host, Pool};
use store::{Page, Scope, deployment, lease};
use testing::{Engine, TestClock, check_ledgers, on_both_engines, pools, rows};

use crate::fleet::dinosaur;
use crate::probe::until;
use crate::world::World;

fn east(at_most: u32) -> Pool {
    pools::pool("east", [("cpu", 4), ("ram", 1 << 40)], at_most)
}

/// A world with pools and a test clock. Workers are not started.
async fn still(engine: Engine, pools: Vec<Pool>) -> (World, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    let world = World::still_with(engine, clock.clone()).await;
    rows::platform(&world.db).await;
    world.fleet.rules_writer.change(|force| force.pools = Arc::new(pools));
    (world, clock)
}

/// The same with running workers.
async fn start(engine: Engine, pools: Vec<Pool>) -> (World, Arc<TestClock>) {
    let (mut world, clock) = still(engine, pools).await;
    world.start_driver();
    world.start_agent(simulated::Options::default()).await;
    (world, clock)
}

impl World {
    /// Advances the clock and wakes what is due.
    async fn pass(&self, clock: &TestClock, minutes: u64) {
        clock.advance(Duration::from_mins(minutes));
        let mut tx = self.db.begin(Actor::Agent).await.unwrap();
        let life = Duration::from_hours(1);
        lease::acquire(&mut tx, engine::local_agent::LEASE, "test", life).await.unwrap();
        store::pool::resync(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn pooled(&self) -> Vec<Cluster> {
        let clusters = self.clusters().await;
        clusters.into_iter().filter(|cluster| cluster.pool.is_some()).collect()
    }

    async fn held(&self) -> Vec<model::deployment::Deployment> {
        let filter = deployment::Filter { with_instances: true, ..Default::default() };
        let (mut read, page) = (self.db.read().await.unwrap(), Page::first(1000));
        let all = deployment::list(&mut read, Scope::All, &filter, &page).await.unwrap();
        all.into_iter().filter(|one| one.reserved.is_some()).collect()
    }
}

on_both_engines! {
    async fn pending_deployment_adds_a_cluster_and_an_empty_one_is_removed(engine: Engine) {
        let (world, clock) = start(engine, vec![east(5)]).await;
        let first = world.deploy(None, Some("registry/web:1"), 3, 0).await;
        world.until(first, Status::Running).await;
        assert_eq!(world.pooled().await.len(), 1);
        let second = world.deploy(None, None, 3, 0).await;
        world.until(second, Status::Running).await;
        assert_eq!(world.pooled().await.len(), 2);
        // Demand that fits on no cluster of the pool creates none.
        let huge = world.deploy(None, None, 5, 0).await;
        world.pass(&clock, 30).await;
        world.until(huge, Status::Queued).await;
        world.delete(huge).await;
        world.delete(second).await;
        world.until_deleted(second).await;
        until("seen empty", async || {
            world.pass(&clock, 1).await;
            world.pooled().await.len() == 1
        })
        .await;
        world.pass(&clock, 60).await;
        assert_eq!(world.pooled().await.len(), 1, "something runs on the other one");
        let changes = world.changes_of("east").await;
        assert_eq!(changes, ["grown", "grown", "shrunk"]);
        check_ledgers(&world.db).await;
    }

    async fn empty_clusters_of_a_retired_pool_are_removed(engine: Engine) {
        let room = Resources::from([("cpu", 1)]);
        let host = Host { kind: "dinosaur".into(), instance_type: "standard".into(), reserved: 1, room };
        let (world, clock) = start(engine, vec![Pool { hosts: vec![host], ..east(5) }]).await;
        let (first, second) = (world.deploy(None, None, 3, 0).await, world.deploy(None, None, 3, 0).await);
        world.until(first, Status::Running).await;
        world.until(second, Status::Running).await;
        assert_eq!(world.pooled().await.len(), 2);
        world.delete(second).await;
        world.until_deleted(second).await;
        // A missing pool file deletes nothing.
        world.fleet.rules_writer.change(|force| force.pools = Arc::default());
        world.pass(&clock, 60).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(world.pooled().await.len(), 2);
        let west = pools::pool("west", [("cpu", 4)], 1);
        world.fleet.rules_writer.change(|force| force.pools = Arc::new(vec![west]));
        until("the empty one goes", async || {
            world.pass(&clock, 5).await;
            world.pooled().await.len() == 1
        })
        .await;
        world.pass(&clock, 60).await;
        assert_eq!(world.get(first).await.unwrap().status, Status::Running);
        until("no reservations are left", async || world.held().await.is_empty()).await;
        world.delete(first).await;
        until("the other one goes", async || {
            world.pass(&clock, 5).await;
            world.pooled().await.is_empty()
        })
        .await;
        check_ledgers(&world.db).await;
    }

    async fn new_capacity_goes_to_the_oldest_pending_deployment(engine: Engine) {
        let (mut world, _clock) = still(engine, vec![east(1)]).await;
        world.start_driver();
        // Without an agent the cluster is created, but does not become ready.
        let cause = world.deploy(None, None, 4, 0).await;
        until("a cluster comes", async || !world.pooled().await.is_empty()).await;
        let late = world.deploy(None, None, 4, 0).await;
        let low = world.deploy(None, None, 1, -1).await;
        world.start_agent(simulated::Options::default()).await;
        world.until(cause, Status::Running).await;
        for newcomer in [late, low] {
            world.until(newcomer, Status::Queued).await;
            let changes = world.changes_of(newcomer).await;
            assert!(!changes.contains(&"scheduled".into()), "placed too early: {changes:?}");
        }
        check_ledgers(&world.db).await;
    }

    async fn dry_run_reports_a_decision_once(engine: Engine) {
        let (world, clock) = start(engine, vec![Pool { dry_run: true, ..east(5) }]).await;
        let waits = world.deploy(None, None, 3, 0).await;
        until("it is told", async || !world.changes_of("east").await.is_empty()).await;
        for _ in 0..3 {
            world.pass(&clock, 5).await;
            let more = world.deploy(None, None, 2, 0).await;
            world.until(more, Status::Queued).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(world.changes_of("east").await, ["would_grow"]);
        assert_eq!(world.pooled().await, []);
        world.until(waits, Status::Queued).await;
    }

    async fn reservation_is_preempted_immediately_and_restored(engine: Engine) {
        let host = Host {
            kind: "dinosaur".into(),
            instance_type: "standard".into(),
            reserved: 2,
            room: Resources::from([("cpu", 1)]),
        };
        let pool = Pool { hosts: vec![host], at_least: 1, ..east(1) };
        let (world, clock) = start(engine, vec![pool]).await;
        until("capacity is reserved", async || {
            world.pass(&clock, 1).await;
            world.held().await.iter().filter(|one| one.status == Status::Running).count() == 2
        })
        .await;
        assert_eq!(world.all().await, [], "reservations are hidden");
        let on = &world.pooled().await[0];
        assert_eq!(world.free_cpu(on.id).await, 2);
        let real = world.deploy(None, None, 4, -1_000_000).await;
        world.until(real, Status::Running).await;
        assert_eq!(world.held().await.iter().filter(|o| o.status == Status::Running).count(), 0);
        let hour_ago = world.db.now() - Duration::from_hours(1);
        let mut read = world.db.read().await.unwrap();
        let counted = store::deployment::placement::preemptions(&mut read, hour_ago).await.unwrap();
        drop(read);
        assert_eq!(counted, [], "preempting a reservation costs no budget");
        check_ledgers(&world.db).await;
        world.delete(real).await;
        until("capacity is reserved again", async || {
            world.held().await.iter().filter(|one| one.status == Status::Running).count() == 2
        })
        .await;
        check_ledgers(&world.db).await;
    }

    async fn instance_demand_counts_for_the_pool_of_its_type(engine: Engine) {
        let catalog = model::kind::Catalog::built_in();
        let kind = catalog.kind("dinosaur").unwrap();
        let room = kind.instance_type("standard").unwrap().default_size().resources.clone();
        let host = Host {
            kind: "dinosaur".into(), instance_type: "standard".into(), reserved: 0, room: room.clone(),
        };
        let mut other = east(5);
        other.template.capacity = room.clone();
        let mut hosts = Pool { name: "west".into(), hosts: vec![host], ..other.clone() };
        hosts.template.labels.insert("for".into(), "dinosaurs".into());
        let (world, _clock) = start(engine, vec![other, hosts]).await;
        world.create_instance(&dinosaur("rex")).await;
        until("a cluster for it", async || !world.pooled().await.is_empty()).await;
        until("it is there", async || {
            world.pooled().await.iter().any(|cluster| cluster.deployments == 1)
        })
        .await;
        let pooled = world.pooled().await;
        let of: Vec<_> = pooled.iter().map(|cluster| cluster.pool.as_deref()).collect();
        assert_eq!(of, [Some("west")]);
        check_ledgers(&world.db).await;
    }

    async fn draining_cluster_counts_as_full_and_its_replicas_add_a_cluster(engine: Engine) {
        let mut pool = east(3);
        let room = Resources::from([("cpu", 1)]);
        pool.hosts = vec![Host { kind: "dinosaur".into(), instance_type: "standard".into(), reserved: 1, room }];
        let (world, _clock) = start(engine, vec![pool]).await;
        let web = world.deploy(None, None, 3, 0).await;
        world.until(web, Status::Running).await;
        let first = world.pooled().await.remove(0);
        until("capacity is reserved", async || world.held().await.len() == 1).await;
        let mut tx = world.db.begin(Actor::Anonymous).await.unwrap();
        let now = store::cluster::get(&mut tx, Scope::All, first.id).await.unwrap();
        store::cluster::drain(&mut tx, &now).await.unwrap();
        tx.commit().await.unwrap();
        // It finds no capacity elsewhere and stays; a new deployment gets a new cluster.
        let next = world.deploy(None, None, 1, 0).await;
        world.until(next, Status::Running).await;
        let on = world.get(next).await.unwrap().placed_on;
        assert!(on.is_some() && on != Some(first.id));
        until("nothing is held there", async || {
            let held = world.held().await;
            held.iter().all(|one| one.pinned_to != Some(first.id))
        })
        .await;
        check_ledgers(&world.db).await;
    }

    async fn concurrent_servers_add_one_cluster_per_pending_deployment(engine: Engine) {
        let (mut world, _clock) = still(engine, vec![east(9)]).await;
        let mut others = Vec::new();
        for i in 0..3 {
            let db = world.replica().await;
            others.push(world.fleet.parts(&db, &format!("other {i}")).build().work());
        }
        world.start_driver();
        world.start_agent(simulated::Options::default()).await;
        for n in 1..=4 {
            let one = world.deploy(None, None, 4, 0).await;
            world.until(one, Status::Running).await;
            assert_eq!(world.pooled().await.len(), n, "one cluster per pending deployment");
        }
        assert_eq!(world.changes_of("east").await, ["grown"; 4]);
        check_ledgers(&world.db).await;
    }
}
