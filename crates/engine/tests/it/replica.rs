//! Replicas on nodes: fit, anti-affinity, scaling.

use agent::simulated;
use engine::placement;
use model::cluster::{Cluster, Heartbeat, NewCluster, NewNode, Step, next_step};
use model::deployment::{NewDeployment, Reason, Status};
use model::event::Actor;
use model::reason::StatusReason as _;
use model::replica::Replica;
use model::{DeploymentId, Resources};
use store::deployment::{Change, replica};
use testing::{check_ledgers, on_both_engines, rows};

use crate::probe::until;
use crate::world::World;

const IMAGE: Option<&str> = Some("registry/web:1");

/// Creates a cluster of nodes with the given CPU each; a label of each node names it.
pub(crate) async fn nodes(world: &World, cpus: &[i64]) -> Cluster {
    let names = (b'a'..).map(|letter| char::from(letter).to_string());
    let node = |(name, cpu): (String, &i64)| NewNode {
        labels: [("rack".to_owned(), name.clone())].into(),
        name,
        capacity: Resources::from([("cpu", *cpu)]),
    };
    let nodes: Vec<NewNode> = names.zip(cpus).map(node).collect();
    let capacity = model::cluster::total_capacity(&nodes);
    let new = NewCluster { nodes, ..rows::new_cluster("rack", capacity) };
    let mut tx = world.db.begin(Actor::Server).await.unwrap();
    let mut made = store::cluster::create(&mut tx, Some(world.owner), &new).await.unwrap();
    let next = |now: &Cluster| next_step(now.provider, now.status, Heartbeat::Alive(None));
    while let Step::Transition(to, reason) = next(&made) {
        store::cluster::transition(&mut tx, &mut made, to, reason).await.unwrap();
    }
    tx.commit().await.unwrap();
    made
}

fn new_deployment(on: &Cluster, cpu: i64, replicas: u32) -> NewDeployment {
    let mut new = rows::new_deployment(Some(on.id), IMAGE, Resources::from([("cpu", cpu)]), 0);
    new.spec.replicas = replicas;
    new
}

pub(crate) async fn replicas(world: &World, id: DeploymentId) -> Vec<Replica> {
    replica::list(&mut world.db.read().await.unwrap(), id).await.unwrap()
}

/// The nodes of replicas, by number.
async fn places(world: &World, id: DeploymentId) -> Vec<Option<String>> {
    let all = replicas(world, id).await;
    all.into_iter().map(|replica| replica.place.map(|place| place.node.to_string())).collect()
}

async fn until_running(world: &World, id: DeploymentId, count: usize) {
    until("so many run", async || {
        let all = replicas(world, id).await;
        all.iter().filter(|r| r.status == Status::Running).count() == count && all.len() >= count
    })
    .await;
}

async fn scale(world: &World, id: DeploymentId, count: u32) {
    let mut tx = world.db.begin(Actor::Anonymous).await.unwrap();
    let change = Change { replicas: Some(count), ..Change::default() };
    store::deployment::set(&mut tx, id, &change).await.unwrap();
    tx.commit().await.unwrap();
}

on_both_engines! {
    async fn replica_larger_than_every_node_stays_pending(engine: Engine) {
        let world = World::start(engine, simulated::Options::default()).await;
        let on = nodes(&world, &[2, 2]).await;
        let id = world.deploy_new(&new_deployment(&on, 3, 1)).await;
        until("a reason", async || {
            matches!(world.get(id).await.unwrap().reason, Reason::ExceedsCapacity { .. })
        }).await;
        let fits = world.deploy_new(&new_deployment(&on, 2, 2)).await;
        until_running(&world, fits, 2).await;
        let mut on_nodes = places(&world, fits).await;
        on_nodes.sort();
        assert_eq!(on_nodes, [Some("a".into()), Some("b".into())]);
        check_ledgers(&world.db).await;
    }

    async fn node_selector_restricts_placement(engine: Engine) {
        let world = World::start(engine, simulated::Options::default()).await;
        let on = nodes(&world, &[4, 4, 4]).await;
        for rack in ["c", "a", "b"] {
            let mut new = new_deployment(&on, 1, 1);
            new.spec.node_selector = [("rack".to_owned(), rack.to_owned())].into();
            let id = world.deploy_new(&new).await;
            until_running(&world, id, 1).await;
            assert_eq!(places(&world, id).await, [Some(rack.to_owned())]);
        }
        let mut new = new_deployment(&on, 1, 1);
        new.spec.node_selector = [("rack".to_owned(), "nowhere".to_owned())].into();
        let id = world.deploy_new(&new).await;
        until("a reason", async || {
            matches!(world.get(id).await.unwrap().reason, Reason::NoMatchingNode { .. } | Reason::ExceedsCapacity { .. })
        }).await;
    }

    async fn anti_affine_replicas_run_on_different_nodes(engine: Engine) {
        let world = World::start(engine, simulated::Options::default()).await;
        let on = nodes(&world, &[8, 8]).await;
        let mut new = new_deployment(&on, 1, 3);
        new.spec.anti_affinity = true;
        let id = world.deploy_new(&new).await;
        until_running(&world, id, 2).await;
        world.until_idle().await;
        let mut on_nodes = places(&world, id).await;
        on_nodes.sort();
        assert_eq!(on_nodes, [None, Some("a".into()), Some("b".into())]);
        let now = world.get(id).await.unwrap();
        assert_eq!(now.status, Status::Running);
        assert!(now.reason.to_string().starts_with("2 of 3 replicas running."), "{}", now.reason);
        check_ledgers(&world.db).await;
    }

    async fn deployment_scales_up_and_down(engine: Engine) {
        let world = World::start(engine, simulated::Options::default()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let id = world.deploy_new(&new_deployment(&on, 1, 1)).await;
        until_running(&world, id, 1).await;
        scale(&world, id, 4).await;
        until_running(&world, id, 4).await;
        assert_eq!(world.free_cpu(on.id).await, 0);
        scale(&world, id, 6).await;
        until("two wait", async || {
            world.get(id).await.unwrap().reason.to_string().starts_with("4 of 6 replicas running.")
        }).await;
        scale(&world, id, 2).await;
        until("two are left", async || replicas(&world, id).await.len() == 2).await;
        assert_eq!(world.free_cpu(on.id).await, 2);
        scale(&world, id, 3).await;
        until_running(&world, id, 3).await;
        let numbers: Vec<u32> = replicas(&world, id).await.iter().map(|r| r.id.number).collect();
        assert_eq!(numbers, [0, 1, 6], "numbers are not reused");
        check_ledgers(&world.db).await;
        world.delete(id).await;
        world.until_deleted(id).await;
        assert_eq!(world.free_cpu(on.id).await, 4);
        check_ledgers(&world.db).await;
    }

    async fn minimum_number_of_replicas_is_preempted(engine: Engine) {
        let world = World::start(engine, simulated::Options::default()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let low = world.deploy_new(&new_deployment(&on, 1, 4)).await;
        until_running(&world, low, 4).await;
        let high = world.deploy(Some(&on), IMAGE, 2, 10).await;
        world.until(high, Status::Running).await;
        until_running(&world, low, 2).await;
        world.delete(high).await;
        until_running(&world, low, 4).await;
        check_ledgers(&world.db).await;
    }

    async fn organization_without_preemption_budget_waits(engine: Engine) {
        let mut world = World::still(engine).await;
        world.start_driver_with(placement::Settings {
            preemptions_per_hour: Some(1),
            ..placement::Settings::default()
        });
        world.start_agent(simulated::Options::default()).await;
        let on = world.cluster([("cpu", 2)]).await;
        let low = world.deploy_new(&new_deployment(&on, 1, 2)).await;
        until_running(&world, low, 2).await;
        let first = world.deploy(Some(&on), IMAGE, 1, 10).await;
        world.until(first, Status::Running).await;
        let second = world.deploy(Some(&on), IMAGE, 1, 10).await;
        until("a reason", async || {
            world.get(second).await.unwrap().reason.code() == "PreemptionBudgetExceeded"
        }).await;
        assert_eq!(world.get(second).await.unwrap().status, Status::Queued);
        // Free capacity needs no budget.
        world.delete(low).await;
        world.until(second, Status::Running).await;
        check_ledgers(&world.db).await;
    }

    async fn deployment_with_run_for_ends(engine: Engine) {
        let world = World::start(engine, simulated::Options::default()).await;
        let on = world.cluster([("cpu", 2)]).await;
        for image in [IMAGE, None] {
            let mut new = rows::new_deployment(Some(on.id), image, Resources::from([("cpu", 1)]), 0);
            new.spec.run_for = Some(1);
            let id = world.deploy_new(&new).await;
            let ended = world.until(id, Status::Completed).await;
            assert_eq!(ended.reason, Reason::RunForElapsed { seconds: 1 });
            until("its capacity is free", async || world.free_cpu(on.id).await == 2).await;
        }
        check_ledgers(&world.db).await;
    }

    async fn failed_replica_fails_the_deployment(engine: Engine) {
        let fail = Some("bad".into());
        let world = World::start(engine, simulated::Options { fail, ..Default::default() }).await;
        let on = world.cluster([("cpu", 2)]).await;
        let mut new = new_deployment(&on, 1, 3);
        new.spec.image = Some("bad:1".into());
        let id = world.deploy_new(&new).await;
        let failed = world.until(id, Status::Failed).await;
        assert!(failed.reason.to_string().contains("bad:1"), "{}", failed.reason);
        until("its capacity is free", async || world.free_cpu(on.id).await == 2).await;
        assert!(replicas(&world, id).await.iter().all(|r| r.status == Status::Failed));
        check_ledgers(&world.db).await;
    }
}
