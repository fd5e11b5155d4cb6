//! The capacity of machines: shared by the containers of all clusters, never overcommitted.

use base::task;
use model::agent::{Observed, Report};
use model::cluster::Cluster;
use model::deployment::Reason;
use model::event::Actor;
use model::{DeploymentId, OrganizationId, ReplicaId, Resources};
use store::deployment::{eviction, placement, reports};
use store::machine::{self, LOCAL};
use store::{Db, Error};
use testing::{check_ledgers, on_both_engines, rows};

use crate::support::database;

const IMAGE: Option<&str> = Some("web:1");

fn cpus(n: i64) -> Resources {
    Resources::from([("cpu", n)])
}

async fn set_size(db: &Db, size: &Resources) {
    let mut size = size.clone();
    size.add(&Resources::from([("ram", 1 << 40)]));
    let mut tx = db.begin(Actor::Server).await.unwrap();
    machine::set_size(&mut tx, LOCAL, &size).await.unwrap();
    tx.commit().await.unwrap();
}

/// What is used, except memory: containers that request none take their limit of 64Mi.
async fn used(db: &Db) -> Resources {
    let mut machines = machine::list(&mut db.read().await.unwrap()).await.unwrap();
    let used = machines.pop().map(|machine| machine.used).unwrap_or_default();
    assert_eq!(used.get("ram").milli() % (64_000 << 20), 0, "{used:?}");
    assert_eq!(used.get("ram").is_zero(), used.get("cpu").is_zero(), "{used:?}");
    used.iter()
        .filter(|(kind, _)| *kind != "ram")
        .map(|(k, amount)| (k.to_owned(), amount))
        .collect()
}

/// A large cluster of a new organization.
async fn cluster(db: &Db, name: &str) -> (OrganizationId, Cluster) {
    let owner = rows::tenant(db, name).await.organization_id;
    (owner, rows::ready_cluster(db, Some(owner), cpus(1000)).await)
}

async fn place(db: &Db, id: DeploymentId, on: &Cluster) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    store::cluster::lock(&mut tx, on.id).await?;
    placement::place(&mut tx, id, &[(0, rows::only_node(on))], &["main".into()]).await?;
    tx.commit().await
}

async fn deploy(db: &Db, owner: OrganizationId, image: Option<&str>, cpu: i64) -> DeploymentId {
    rows::deployment(db, owner, &rows::new_deployment(None, image, cpus(cpu), 0)).await.id
}

async fn stop(db: &Db, id: DeploymentId, on: &Cluster) {
    let mut tx = db.begin(Actor::Server).await.unwrap();
    store::deployment::request_delete(&mut tx, store::Scope::All, id).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = db.begin(Actor::Agent).await.unwrap();
    store::cluster::lock(&mut tx, on.id).await.unwrap();
    let replica = ReplicaId { deployment: id, number: 0 };
    let (cluster, observed) = (on.id, Observed::Gone);
    let report = Report { replica, cluster, generation: 2, observed, tail: Vec::new() };
    reports::record(&mut tx, &report).await.unwrap();
    tx.commit().await.unwrap();
}

on_both_engines! {
    async fn concurrent_placements_on_several_clusters_never_overcommit_the_machine(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        set_size(db, &cpus(5)).await;
        let clusters = [cluster(db, "acme").await, cluster(db, "zoo").await];
        let mut tasks = Vec::new();
        for n in 0..20 {
            let (owner, on) = clusters[n % 2].clone();
            let (id, db) = (deploy(db, owner, IMAGE, 1).await, db.clone());
            tasks.push(task::spawn("placement", async move { place(&db, id, &on).await }));
        }
        let mut placed = 0;
        for task in tasks {
            match task.await.unwrap() {
                Ok(()) => placed += 1,
                Err(error) => assert!(matches!(error, Error::InsufficientCapacity { .. }), "{error}"),
            }
        }
        assert_eq!((placed, used(db).await), (5, cpus(5)));
        check_ledgers(db).await;
    }

    async fn only_containers_take_from_the_machine_and_release_it(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        set_size(db, &cpus(2)).await;
        let (owner, on) = cluster(db, "acme").await;
        let held = deploy(db, owner, None, 900).await;
        place(db, held, &on).await.unwrap();
        assert_eq!(used(db).await, cpus(0));
        let first = deploy(db, owner, IMAGE, 2).await;
        place(db, first, &on).await.unwrap();
        let second = deploy(db, owner, IMAGE, 1).await;
        let refused = place(db, second, &on).await;
        assert!(matches!(refused, Err(Error::InsufficientCapacity { .. })), "{refused:?}");
        stop(db, first, &on).await;
        place(db, second, &on).await.unwrap();
        assert_eq!(used(db).await, cpus(1));
        // The machine has none of it, whatever the cluster declares.
        let request = Resources::from([("cpu", 1), ("gpu", 1)]);
        let new = rows::new_deployment(None, IMAGE, request.clone(), 0);
        let gpu = rows::deployment(db, owner, &new).await.id;
        let on = rows::ready_cluster(db, Some(owner), request).await;
        let refused = place(db, gpu, &on).await;
        assert!(matches!(refused, Err(Error::InsufficientCapacity { .. })), "{refused:?}");
        check_ledgers(db).await;
    }

    async fn smaller_machine_gives_nothing_new_until_enough_is_released(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        set_size(db, &cpus(3)).await;
        let (owner, on) = cluster(db, "acme").await;
        let mut running = Vec::new();
        for _ in 0..3 {
            let id = deploy(db, owner, IMAGE, 1).await;
            place(db, id, &on).await.unwrap();
            running.push(id);
        }
        set_size(db, &cpus(1)).await;
        let late = deploy(db, owner, IMAGE, 1).await;
        for id in running {
            place(db, late, &on).await.unwrap_err();
            stop(db, id, &on).await;
        }
        place(db, late, &on).await.unwrap();
        assert_eq!(used(db).await, cpus(1));
        check_ledgers(db).await;
    }

    async fn leftover_holds_the_machine_until_the_agent_answers(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        set_size(db, &cpus(1)).await;
        let (owner, on) = cluster(db, "acme").await;
        let id = deploy(db, owner, IMAGE, 1).await;
        place(db, id, &on).await.unwrap();
        let mut tx = db.begin(Actor::Server).await.unwrap();
        let reason = Reason::Evicted { cluster: "main".into() };
        eviction::evict(&mut tx, id, on.id, &reason).await.unwrap();
        tx.commit().await.unwrap();
        let other = rows::ready_cluster(db, Some(owner), cpus(9)).await;
        place(db, id, &other).await.unwrap_err();
        check_ledgers(db).await;
        let mut tx = db.begin(Actor::Agent).await.unwrap();
        store::cluster::lock(&mut tx, on.id).await.unwrap();
        let replica = ReplicaId { deployment: id, number: 0 };
        let (cluster, observed) = (on.id, Observed::Gone);
        let report = Report { replica, cluster, generation: 2, observed, tail: Vec::new() };
        reports::record(&mut tx, &report).await.unwrap();
        tx.commit().await.unwrap();
        place(db, id, &other).await.unwrap();
        check_ledgers(db).await;
    }

    async fn containers_placed_before_the_machine_was_counted_are_adopted(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let (owner, on) = cluster(db, "acme").await;
        let early = deploy(db, owner, IMAGE, 4).await;
        place(db, early, &on).await.unwrap();
        set_size(db, &cpus(2)).await;
        for _ in 0..2 {
            let found = machine::uncounted(&mut db.read().await.unwrap()).await.unwrap();
            for id in found {
                let mut tx = db.begin(Actor::Server).await.unwrap();
                machine::adopt(&mut tx, LOCAL, id).await.unwrap();
                tx.commit().await.unwrap();
            }
            assert_eq!(used(db).await, cpus(4));
        }
        let late = deploy(db, owner, IMAGE, 1).await;
        place(db, late, &on).await.unwrap_err();
        stop(db, early, &on).await;
        place(db, late, &on).await.unwrap();
        check_ledgers(db).await;
        // No longer counted.
        let mut tx = db.begin(Actor::Server).await.unwrap();
        assert!(machine::delete(&mut tx, LOCAL).await.unwrap());
        tx.commit().await.unwrap();
        stop(db, late, &on).await;
        check_ledgers(db).await;
    }
}
