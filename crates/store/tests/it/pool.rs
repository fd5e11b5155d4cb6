//! Pools: their persisted state; concurrent servers neither grow twice nor remove clusters in use.

use base::task;
use model::cluster::{Cluster, Reason, Status};
use model::deployment::Deployment;
use model::event::Actor;
use model::scaling::{Host, Pool};
use model::{ClusterId, OrganizationId, Resources, Time};
use store::deployment::{Filter, placement, reserving};
use store::pool::{self, State};
use store::{Db, Page, Scope, cluster, deployment, event};
use testing::{check_ledgers, on_both_engines, pools, rows};

use crate::support::database;

const ME: Actor = Actor::Worker(pool::WORKER);

fn east() -> Pool {
    pools::pool("east", [("cpu", 8)], 50)
}

async fn state(db: &Db) -> State {
    pool::get(&mut db.read().await.unwrap(), "east", db.now()).await.unwrap()
}

async fn grow(db: &Db, from: &State) -> store::Result<Cluster> {
    let mut tx = db.begin(ME).await?;
    let next = State { made: from.made + 1, decision: "grow".into(), ..from.clone() };
    let made = pool::grow(&mut tx, &next, &east().template).await?;
    tx.commit().await?;
    Ok(made)
}

async fn shrink(db: &Db, from: &State, id: ClusterId) -> store::Result<()> {
    let mut tx = db.begin(ME).await?;
    let next = State { decision: "shrink".into(), ..from.clone() };
    pool::shrink(&mut tx, &next, id).await?;
    tx.commit().await
}

async fn ready(db: &Db) -> Cluster {
    use Status::{Provisioned, Provisioning, Ready, WaitingForAgent};
    let mut now = grow(db, &state(db).await).await.unwrap();
    for to in [Provisioning, Provisioned, WaitingForAgent, Ready] {
        let mut tx = db.begin(ME).await.unwrap();
        cluster::transition(&mut tx, &mut now, to, Reason::AsExpected).await.unwrap();
        tx.commit().await.unwrap();
    }
    now
}

async fn status(db: &Db, id: ClusterId) -> Status {
    cluster::get(&mut db.read().await.unwrap(), Scope::All, id).await.unwrap().status
}

async fn place(db: &Db, what: &Deployment, on: &Cluster) -> store::Result<()> {
    let mut tx = db.begin(ME).await?;
    cluster::lock(&mut tx, on.id).await?;
    placement::place(&mut tx, what.id, &[(0, rows::only_node(on))], &["east".into()]).await?;
    tx.commit().await
}

async fn waiting(db: &Db, owner: OrganizationId) -> Deployment {
    let new = rows::new_deployment(None, None, Resources::from([("cpu", 2)]), 0);
    rows::deployment(db, owner, &new).await
}

async fn events(db: &Db) -> Vec<String> {
    db.number_events().await.unwrap();
    let filter = event::Filter { kind: Some("pool".into()), ..Default::default() };
    let mut read = db.read().await.unwrap();
    let events = event::list(&mut read, Scope::All, &filter, 0, 1000).await.unwrap();
    events.into_iter().map(|event| event.change).collect()
}

on_both_engines! {
    async fn pool_state_is_read_as_written(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let first = state(db).await;
        assert_eq!((first.generation, first.made), (0, 0));
        let mut next = State { look_again: Some(Time(7)), reason: "So.".into(), ..first.clone() };
        next.memory.wish = Some(model::scaling::ScaleUpCause::Slack);
        next.memory.wish_since = Some(Time(3));
        next.idle.insert(ClusterId(model::Xid::new(1, [0; 5], 1)), Time(5));
        let mut tx = db.begin(ME).await.unwrap();
        pool::set(&mut tx, &next).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(state(db).await, State { generation: 1, ..next });
        // A decision from an older state is refused as a whole.
        let late = grow(db, &first).await;
        assert!(matches!(late, Err(store::Error::Conflict(_))), "{late:?}");
        assert!(events(db).await.is_empty());
    }

    async fn one_of_many_concurrent_servers_grows_the_pool(engine: Engine) {
        let database = database(engine).await;
        let other = database.replica(std::sync::Arc::new(base::SystemClock)).await;
        for round in 1..=5 {
            let seen = state(&database.db).await;
            let tries = (0..16).map(|i| {
                let db = if i % 2 == 0 { database.db.clone() } else { other.clone() };
                let seen = seen.clone();
                task::spawn("grow", async move { grow(&db, &seen).await.is_ok() })
            });
            let mut made = 0;
            for one in tries.collect::<Vec<_>>() {
                made += usize::from(one.await.unwrap());
            }
            assert_eq!(made, 1, "round {round}");
            let clusters = pool::clusters(&mut other.read().await.unwrap(), "east").await.unwrap();
            assert_eq!(clusters.len(), round);
            let mut names: Vec<_> = clusters.iter().map(|one| one.name.clone()).collect();
            names.sort();
            assert_eq!(names, (1..=round).map(|n| format!("east-{n}")).collect::<Vec<_>>());
            assert!(clusters.iter().all(|one| one.organization_id.is_none()));
        }
        assert_eq!(events(&database.db).await, ["pool.grown"; 5]);
    }

    async fn only_empty_clusters_are_removed(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let owner = rows::tenant(db, "acme").await.organization_id;
        let cluster = ready(db).await;
        let used = waiting(db, owner).await;
        place(db, &used, &cluster).await.unwrap();
        let refused = shrink(db, &state(db).await, cluster.id).await;
        assert!(matches!(refused, Err(store::Error::Conflict(_))), "{refused:?}");
        assert_eq!(status(db, cluster.id).await, Status::Ready);
        let mut tx = db.begin(ME).await.unwrap();
        deployment::request_delete(&mut tx, Scope::All, used.id).await.unwrap();
        cluster::reserve(&mut tx, cluster.id, &Resources::from([("cpu", 1)])).await.unwrap();
        tx.commit().await.unwrap();
        let refused = shrink(db, &state(db).await, cluster.id).await;
        assert!(matches!(refused, Err(store::Error::Conflict(_))), "capacity is reserved manually");
        let mut tx = db.begin(ME).await.unwrap();
        cluster::release(&mut tx, cluster.id, &Resources::from([("cpu", 1)])).await.unwrap();
        tx.commit().await.unwrap();
        shrink(db, &state(db).await, cluster.id).await.unwrap();
        assert_eq!(status(db, cluster.id).await, Status::Deprovisioning);
        assert_eq!(events(db).await, ["pool.grown", "pool.shrunk"]);
        check_ledgers(db).await;
    }

    async fn deployment_is_never_placed_on_a_cluster_being_removed(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let other = database.replica(std::sync::Arc::new(base::SystemClock)).await;
        let owner = rows::tenant(db, "acme").await.organization_id;
        for _ in 0..10 {
            let (cluster, comes) = (ready(db).await, waiting(db, owner).await);
            let seen = state(db).await;
            let (gone, placed) =
                tokio::join!(shrink(&other, &seen, cluster.id), place(db, &comes, &cluster));
            assert!(gone.is_ok() != placed.is_ok(), "{gone:?} {placed:?}");
            let left = status(db, cluster.id).await;
            assert_eq!(left == Status::Ready, placed.is_ok(), "{left}");
            check_ledgers(db).await;
        }
    }

    async fn reservations_are_held_until_the_cluster_is_removed(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        rows::tenant(db, "acme").await;
        let cluster = ready(db).await;
        let host = |reserved| Host {
            kind: "goat".into(),
            instance_type: "big".into(),
            reserved,
            room: Resources::from([("cpu", 2)]),
        };
        let reserve = async |reserved| {
            let mut tx = db.begin(ME).await.unwrap();
            let pool = Pool { hosts: vec![host(reserved)], ..east() };
            pool::reserve(&mut tx, &pool, cluster.id).await.unwrap();
            tx.commit().await.unwrap();
            reserving::of_pool(&mut db.read().await.unwrap(), "east").await.unwrap()
        };
        assert!(reserve(3).await.is_empty(), "no platform organization can own it");
        rows::platform(db).await;
        let held = reserve(3).await;
        assert_eq!(held.len(), 3);
        assert!(held.iter().all(|one| one.for_type == "goat-big" && one.node.is_none()));
        for one in &held {
            let one = deployment::get(&mut db.read().await.unwrap(), Scope::All, one.id).await;
            place(db, &one.unwrap(), &cluster).await.unwrap();
        }
        assert_eq!(reserve(3).await.len(), 3, "reservations are not duplicated");
        assert_eq!(reserve(2).await.len(), 2);
        let page = Page::first(100);
        let mut read = db.read().await.unwrap();
        let shown = deployment::list(&mut read, Scope::All, &Filter::default(), &page).await;
        assert_eq!(shown.unwrap(), []);
        assert_eq!(deployment::queue(&mut read, Scope::All, None, 100).await.unwrap(), []);
        drop(read);
        check_ledgers(db).await;
        // A manual deletion ignores reservations.
        let mut tx = db.begin(ME).await.unwrap();
        cluster::request_delete(&mut tx, &cluster, false).await.unwrap();
        drop(tx);
        assert_eq!(status(db, cluster.id).await, Status::Ready);
        shrink(db, &state(db).await, cluster.id).await.unwrap();
        assert_eq!(status(db, cluster.id).await, Status::Deprovisioning);
        let held = reserving::of_pool(&mut db.read().await.unwrap(), "east").await.unwrap();
        assert_eq!(held, []);
        check_ledgers(db).await;
    }
}
