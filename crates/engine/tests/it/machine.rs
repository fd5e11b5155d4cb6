//! Placement on a machine that several organizations' clusters share.

use agent::simulated;
use engine::local_cluster;
use model::Resources;
use model::deployment::Status;
use model::reason::StatusReason as _;
use testing::{check_ledgers, on_both_engines, rows};

use crate::probe::until;
use crate::world::World;

const IMAGE: Option<&str> = Some("registry/web:1");

/// The size of a machine with enough memory.
fn cpus(n: i64) -> Resources {
    Resources::from([("cpu", n), ("ram", 1 << 40)])
}

on_both_engines! {
    async fn containers_of_two_organizations_share_the_machine(engine: Engine) {
        let world = World::start(engine, simulated::Options::default()).await;
        let size = cpus(2);
        local_cluster::ensure(&world.db, &size).await.unwrap();
        local_cluster::count_machine(&world.db, Some(&size)).await.unwrap();
        let other = rows::tenant(&world.db, "zoo").await.organization_id;
        let (mine, theirs) = (
            world.cluster([("cpu", 100_000)]).await,
            rows::ready_cluster(&world.db, Some(other), Resources::from([("cpu", 100_000)])).await,
        );
        let first = world.deploy(Some(&mine), IMAGE, 1, 0).await;
        let new = rows::new_deployment(Some(theirs.id), IMAGE, Resources::from([("cpu", 1)]), 0);
        let second = rows::deployment(&world.db, other, &new).await.id;
        world.until(first, Status::Running).await;
        world.until(second, Status::Running).await;
        // The cluster has capacity, the machine does not.
        let third = world.deploy(Some(&mine), IMAGE, 1, 0).await;
        until("the machine is named", async || {
            world.get(third).await.unwrap().reason.code() == "InsufficientMachineCapacity"
        })
        .await;
        let large = world.deploy(Some(&mine), IMAGE, 3, 0).await;
        until("the machine is too small", async || {
            world.get(large).await.unwrap().reason.code() == "ExceedsMachineCapacity"
        })
        .await;
        // What only holds capacity needs no machine.
        let held = world.deploy(Some(&mine), None, 90_000, 0).await;
        world.until(held, Status::Running).await;
        check_ledgers(&world.db).await;
        world.delete(second).await;
        world.until(third, Status::Running).await;
        // A larger machine wakes the replicas that are pending for it.
        let size = cpus(9);
        local_cluster::count_machine(&world.db, Some(&size)).await.unwrap();
        world.until(large, Status::Running).await;
        check_ledgers(&world.db).await;
    }

    async fn machine_that_is_not_counted_limits_nothing(engine: Engine) {
        let world = World::start(engine, simulated::Options::default()).await;
        let size = cpus(1);
        local_cluster::ensure(&world.db, &size).await.unwrap();
        local_cluster::count_machine(&world.db, Some(&size)).await.unwrap();
        let on = world.cluster([("cpu", 100)]).await;
        let first = world.deploy(Some(&on), IMAGE, 1, 0).await;
        let second = world.deploy(Some(&on), IMAGE, 50, 0).await;
        world.until(first, Status::Running).await;
        local_cluster::count_machine(&world.db, None).await.unwrap();
        world.until(second, Status::Running).await;
        check_ledgers(&world.db).await;
        // What runs already is counted again.
        local_cluster::count_machine(&world.db, Some(&size)).await.unwrap();
        check_ledgers(&world.db).await;
        let third = world.deploy(Some(&on), IMAGE, 1, 0).await;
        until("the machine is full", async || {
            world.get(third).await.unwrap().reason.code() == "InsufficientMachineCapacity"
        })
        .await;
    }
}
