//! Capacity is never overcommitted: random sequential and concurrent changes stay consistent.

use std::collections::BTreeMap;

use base::task;
use model::agent::{Observed, Report};
use model::cluster::Cluster;
use model::deployment::{Deployment, Reason};
use model::event::Actor;
use model::reason::StatusReason as _;
use model::{ClusterId, DeploymentId, OrganizationId, Quantity, ReplicaId, Resources};
use store::deployment::{Limits, placement, replica, reports};
use store::{Db, Error, Page, Read, Scope, Tx, cluster, deployment};
use testing::{Rng, check_ledgers, on_both_engines, rows};

use crate::support::database;

const LIMITS: Limits = Limits { per_organization: 60, per_cluster: 25, max_priority: 100 };

on_both_engines! {
    async fn random_changes_keep_capacity_consistent(engine: Engine) {
        let database = database(engine).await;
        let owners = prepare(&database.db).await;
        let mut rng = Rng::from_env();
        let mut done = BTreeMap::new();
        for _ in 0..500 {
            let what = change(&database.db, &mut rng, &owners).await;
            *done.entry(what).or_insert(0) += 1;
            check_ledgers(&database.db).await;
        }
        // A run without successful changes would prove nothing.
        assert!(done.keys().filter(|what| what.1).count() >= 7, "{done:?}");
    }

    async fn concurrent_random_changes_keep_capacity_consistent(engine: Engine) {
        let database = database(engine).await;
        let owners = prepare(&database.db).await;
        let mut rng = Rng::from_env();
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (db, mut rng, owners) = (database.db.clone(), rng.split(), owners.clone());
                task::spawn("changes", async move {
                    for _ in 0..60 {
                        change(&db, &mut rng, &owners).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        check_ledgers(&database.db).await;
    }

    async fn manual_release_never_releases_replica_capacity(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        let on = rows::ready_cluster(db, Some(own), Resources::from([("cpu", 4)])).await;
        let two = Resources::from([("cpu", 2)]);
        let waiting = rows::deployment(db, own, &rows::new_deployment(None, None, two, 0)).await;
        let mut tx = db.begin(Actor::Server).await.unwrap();
        placement::place(&mut tx, waiting.id, &[(0, rows::only_node(&on))], &["main".into()]).await.unwrap();
        cluster::reserve(&mut tx, on.id, &Resources::from([("cpu", 1)])).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.begin(Actor::Server).await.unwrap();
        let too_much = cluster::release(&mut tx, on.id, &Resources::from([("cpu", 2)])).await;
        let Err(Error::InsufficientCapacity { missing }) = too_much else { panic!("{too_much:?}") };
        assert_eq!(missing, Resources::from([("cpu", 1)]));
        drop(tx);
        let mut tx = db.begin(Actor::Server).await.unwrap();
        let less = cluster::set_total(&mut tx, on.id, &Resources::from([("cpu", 2)])).await;
        assert!(matches!(less, Err(Error::Conflict(_))), "{less:?}");
        drop(tx);
        check_ledgers(db).await;
    }

    async fn extreme_amounts_do_not_overflow(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let all: Resources = [("cpu".to_owned(), Quantity::MAX)].into_iter().collect();
        let on = rows::ready_cluster(db, None, all.clone()).await;
        let mut tx = db.begin(Actor::Server).await.unwrap();
        cluster::reserve(&mut tx, on.id, &all).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.begin(Actor::Server).await.unwrap();
        assert!(matches!(cluster::reserve(&mut tx, on.id, &all).await, Err(Error::InsufficientCapacity { .. })));
        drop(tx);
        check_ledgers(db).await;
    }
}

/// Creates two organizations with a cluster each, and a shared cluster.
async fn prepare(db: &Db) -> Vec<OrganizationId> {
    let mut owners = Vec::new();
    for name in ["acme", "globex"] {
        let owner = rows::tenant(db, name).await.organization_id;
        rows::ready_cluster(db, Some(owner), Resources::from([("cpu", 8), ("ram", 8)])).await;
        owners.push(owner);
    }
    rows::ready_cluster(db, None, Resources::from([("cpu", 16), ("gpu", 2), ("ram", 16)])).await;
    owners
}

/// Applies a random change. Returns its name, and whether it succeeded.
async fn change(db: &Db, rng: &mut Rng, owners: &[OrganizationId]) -> (&'static str, bool) {
    let mut tx = db.begin(Actor::Server).await.unwrap();
    let (what, outcome) = attempt(&mut tx, rng, owners).await;
    let outcome = match outcome {
        Ok(()) => tx.commit().await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => (what, true),
        Err(
            Error::InsufficientCapacity { .. }
            | Error::Conflict(_)
            | Error::Limit { .. }
            | Error::QuotaExceeded(_)
            | Error::NotFound { .. },
        ) => (what, false),
        Err(error) => panic!("{what}: {error}"),
    }
}

async fn attempt(
    tx: &mut Tx,
    rng: &mut Rng,
    owners: &[OrganizationId],
) -> (&'static str, store::Result<()>) {
    let clusters = clusters(tx).await;
    let on = rng.pick(&clusters).unwrap().clone();
    let all = deployments(tx).await;
    let one = rng.pick(&all).cloned();
    match (rng.below(12), one) {
        (0..=2, _) | (_, None) => {
            let owner = *rng.pick(owners).unwrap();
            let pinned_to = rng.one_in(2).then_some(on.id);
            let image = rng.one_in(2).then_some("image");
            let priority = i64::try_from(rng.below(5)).unwrap();
            let new = rows::new_deployment(pinned_to, image, amounts(rng), priority);
            ("create", deployment::create(tx, owner, &new, LIMITS).await.map(drop))
        }
        (3..=5, Some(one)) => {
            let own = |id: ClusterId| clusters.iter().find(|cluster| cluster.id == id).cloned();
            let on = one.pinned_to.and_then(own).unwrap_or(on);
            cluster::lock(tx, on.id).await.unwrap();
            let numbers = waiting_numbers(tx, one.id).await;
            let places: Vec<_> = numbers.map(|number| (number, rows::only_node(&on))).collect();
            ("place", placement::place(tx, one.id, &places, &["main".into()]).await.map(drop))
        }
        (6, Some(one)) => {
            cluster::lock(tx, one.cluster_id().unwrap_or(on.id)).await.unwrap();
            let (victim, by) = (first(one.id), first(rng.pick(&all).unwrap().id));
            ("preempt", placement::preempt(tx, victim, by, Reason::AwaitingPlacement).await)
        }
        (7 | 8, Some(one)) => {
            let report = random_report(tx, rng, &one, on.id).await;
            cluster::lock(tx, report.cluster).await.unwrap();
            ("report", reports::record(tx, &report).await)
        }
        (9, Some(one)) => {
            ("delete", deployment::request_delete(tx, Scope::All, one.id).await.map(drop))
        }
        (10, _) if rng.one_in(2) => {
            ("reserve", cluster::reserve(tx, on.id, &amounts(rng)).await.map(drop))
        }
        (10, _) => ("release", cluster::release(tx, on.id, &amounts(rng)).await.map(drop)),
        _ => {
            let cpu = i64::try_from(rng.below(20)).unwrap();
            let total = Resources::from([("cpu", cpu)]);
            cluster::set_metadata(tx, on.id, Some("main"), None).await.unwrap();
            ("total", cluster::set_total(tx, on.id, &total).await.map(drop))
        }
    }
}

fn amounts(rng: &mut Rng) -> Resources {
    let kinds = if rng.one_in(5) { &["cpu", "gpu", "ram"][..] } else { &["cpu", "ram"] };
    let milli = |rng: &mut Rng| i64::try_from(rng.below(9) * 500).unwrap();
    kinds.iter().map(|kind| ((*kind).to_owned(), Quantity::from_milli(milli(rng)))).collect()
}

/// A random report of an agent, current or outdated.
async fn random_report(
    read: &mut Read,
    rng: &mut Rng,
    about: &Deployment,
    on: ClusterId,
) -> Report {
    let observed = match rng.below(6) {
        0 => Observed::Starting,
        1 => Observed::Running { endpoints: vec!["127.0.0.1:80".into()] },
        2 => Observed::Completed,
        3 => Observed::Failed { reason: Reason::reported("It can't.") },
        _ => Observed::Gone,
    };
    let all = replica::list(read, about.id).await.unwrap();
    let seen = rng.pick(&all).cloned();
    let replica = seen.as_ref().map_or(first(about.id), |replica| replica.id);
    let generation = seen.as_ref().map_or(1, |r| r.desired) - i64::from(rng.one_in(4));
    let cluster = seen.and_then(|replica| replica.place).map_or(on, |place| place.cluster);
    Report { replica, cluster, generation, observed, tail: Vec::new() }
}

fn first(deployment: DeploymentId) -> ReplicaId {
    ReplicaId { deployment, number: 0 }
}

/// The numbers of pending replicas, and now and then one that is not pending.
async fn waiting_numbers(read: &mut Read, id: DeploymentId) -> impl Iterator<Item = u32> + use<> {
    let all = replica::list(read, id).await.unwrap();
    all.into_iter().filter(|r| r.place.is_none()).map(|r| r.id.number)
}

async fn clusters(read: &mut Read) -> Vec<Cluster> {
    let page = Page::first(1000);
    cluster::list(read, Scope::All, &cluster::Filter::default(), &page).await.unwrap()
}

async fn deployments(read: &mut Read) -> Vec<Deployment> {
    let page = Page::first(100_000);
    deployment::list(read, Scope::All, &deployment::Filter::default(), &page).await.unwrap()
}
