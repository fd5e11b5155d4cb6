//! The cluster worker: from `accepted` to `ready` to deleted, with crashes between any two steps.

use std::time::Duration;

use base::{stop, task};
use engine::cluster::ClusterWorker;
use engine::placement::PlacementView;
use engine::{Reconcile, local_agent};
use model::cluster::{Cluster, Heartbeat, HeartbeatTimeouts, Status, Step, next_step};
use model::event::Actor;
use model::reason::StatusReason as _;
use model::work::Requeue;
use model::{ClusterId, Resources};
use store::{Db, Scope, lease};
use testing::{Rng, on_both_engines, rows};
use tokio::sync::watch;

use crate::probe::until;
use crate::world::{World, changes_of};

const WAY_IN: [&str; 5] = ["created", "provisioning", "provisioned", "waiting_for_agent", "ready"];
const WAY_OUT: [&str; 3] = ["deprovisioning", "cleanup", "deleted"];

async fn get(db: &Db, id: ClusterId) -> Option<Cluster> {
    store::cluster::get(&mut db.read().await.unwrap(), Scope::All, id).await.ok()
}

async fn new(db: &Db) -> Cluster {
    rows::cluster(db, None, Resources::from([("cpu", 4)])).await
}

fn worker_on(db: &Db) -> ClusterWorker {
    ClusterWorker::new(
        db.clone(),
        HeartbeatTimeouts::default(),
        PlacementView::standalone(db.clone()),
    )
}

async fn agent_heartbeat(db: &Db) {
    let mut tx = db.begin(Actor::Agent).await.unwrap();
    let life = Duration::from_hours(1);
    lease::acquire(&mut tx, local_agent::LEASE, "test", life).await.unwrap();
    tx.commit().await.unwrap();
}

async fn request_delete(db: &Db, cluster: &Cluster) {
    let mut tx = db.begin(Actor::Anonymous).await.unwrap();
    store::cluster::request_delete(&mut tx, cluster, false).await.unwrap();
    tx.commit().await.unwrap();
}

/// Takes single steps, like a worker that dies after each.
async fn take_steps(db: &Db, id: ClusterId, steps: usize) {
    for _ in 0..steps {
        let mut cluster = get(db, id).await.unwrap();
        let step = next_step(cluster.provider, cluster.status, Heartbeat::Alive(None));
        let Step::Transition(to, reason) = step else { return };
        let mut tx = db.begin(Actor::Worker("cluster")).await.unwrap();
        store::cluster::transition(&mut tx, &mut cluster, to, reason).await.unwrap();
        tx.commit().await.unwrap();
    }
}

on_both_engines! {
    async fn cluster_becomes_ready_with_an_event_per_transition(engine: Engine) {
        let mut world = World::still(engine).await;
        agent_heartbeat(&world.db).await;
        let made = new(&world.db).await;
        world.start_driver();
        let db = &world.db;
        until("ready", async || get(db, made.id).await.unwrap().status == Status::Ready).await;
        assert_eq!(changes_of(db, made.id).await, WAY_IN);
        world.until_idle().await;
    }

    async fn cluster_waits_for_its_agent_and_becomes_ready_on_heartbeat(engine: Engine) {
        let mut world = World::still(engine).await;
        let made = new(&world.db).await;
        world.start_driver();
        let db = &world.db;
        until("waiting", async || {
            get(db, made.id).await.unwrap().status == Status::WaitingForAgent
        })
        .await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let waiting = get(db, made.id).await.unwrap();
        assert_eq!(waiting.status, Status::WaitingForAgent);
        assert_eq!(waiting.reason.code(), "AwaitingAgent");
        let (leads, is_ours) = watch::channel(false);
        let (_stopper, stop) = stop::channel();
        task::spawn("lead", local_agent::run_election(db.clone(), "test".into(), leads, stop));
        // Before the worker polls by itself.
        let ready = async || get(db, made.id).await.unwrap().status == Status::Ready;
        tokio::time::timeout(Duration::from_secs(3), until("ready", ready)).await.unwrap();
        assert!(*is_ours.borrow());
        assert_eq!(changes_of(db, made.id).await, WAY_IN);
    }

    async fn local_agent_lease_is_released_on_shutdown(engine: Engine) {
        let world = World::still(engine).await;
        let lead = |name: &str| {
            let ((leads, is_ours), (stopper, stop)) = (watch::channel(false), stop::channel());
            let db = world.db.clone();
            let task = task::spawn("lead", local_agent::run_election(db, name.into(), leads, stop));
            (is_ours, stopper, task)
        };
        let (mut first, stopper, task) = lead("first");
        first.wait_for(|ours| *ours).await.unwrap();
        let (mut second, _keep, _task) = lead("second");
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!*second.borrow_and_update());
        stopper.stop();
        task.await.unwrap();
        let taken = tokio::time::timeout(Duration::from_secs(8), second.wait_for(|ours| *ours)).await;
        assert!(taken.is_ok(), "the lease was not released");
    }

    async fn empty_cluster_is_deleted_with_an_event_per_transition(engine: Engine) {
        let mut world = World::still(engine).await;
        let made = rows::ready_cluster(&world.db, None, Resources::from([("cpu", 4)])).await;
        world.start_driver();
        request_delete(&world.db, &made).await;
        until("deleted", async || get(&world.db, made.id).await.is_none()).await;
        assert_eq!(changes_of(&world.db, made.id).await, [&WAY_IN[..], &WAY_OUT].concat());
        world.until_idle().await;
    }

    async fn cluster_lifecycle_resumes_after_every_step(engine: Engine) {
        let world = World::still(engine).await;
        let db = &world.db;
        agent_heartbeat(db).await;
        let worker = worker_on(db);
        for steps in 0..5 {
            let made = new(db).await;
            take_steps(db, made.id, steps).await;
            assert_eq!(worker.reconcile(&made.id.to_string()).await.unwrap(), Requeue::OnChange);
            assert_eq!(get(db, made.id).await.unwrap().status, Status::Ready, "after {steps}");
            assert_eq!(changes_of(db, made.id).await, WAY_IN, "after {steps}");
        }
        for steps in 0..3 {
            let made = new(db).await;
            take_steps(db, made.id, steps).await;
            request_delete(db, &get(db, made.id).await.unwrap()).await;
            take_steps(db, made.id, steps % 2).await;
            assert_eq!(worker.reconcile(&made.id.to_string()).await.unwrap(), Requeue::OnChange);
            assert!(get(db, made.id).await.is_none(), "after {steps}");
            assert!(changes_of(db, made.id).await.ends_with(&WAY_OUT.map(String::from)));
        }
    }

    async fn crashing_worker_does_every_transition_once(engine: Engine) {
        let world = World::still(engine).await;
        let db = &world.db;
        agent_heartbeat(db).await;
        let (worker, mut rng) = (worker_on(db), Rng::from_env());
        for _ in 0..10 {
            let made = new(db).await;
            let key = made.id.to_string();
            for _ in 0..5 {
                let patience = Duration::from_micros(rng.below(4_000));
                let _ = tokio::time::timeout(patience, worker.reconcile(&key)).await;
            }
            worker.reconcile(&key).await.unwrap();
            assert_eq!(changes_of(db, made.id).await, WAY_IN);
        }
    }

    async fn concurrent_workers_do_every_transition_once(engine: Engine) {
        let world = World::still(engine).await;
        let replica = world.replica().await;
        agent_heartbeat(&world.db).await;
        for _ in 0..10 {
            let made = new(&world.db).await;
            let key = made.id.to_string();
            let (one, other) = (worker_on(&world.db), worker_on(&replica));
            // One of them may get a conflict because the other was faster; it would retry.
            let (first, second) = tokio::join!(one.reconcile(&key), other.reconcile(&key));
            assert!(first.is_ok() || second.is_ok());
            assert_eq!(changes_of(&world.db, made.id).await, WAY_IN);
        }
    }

    async fn missing_cluster_is_ignored_and_invalid_key_is_an_error(engine: Engine) {
        let world = World::still(engine).await;
        let worker = worker_on(&world.db);
        assert_eq!(worker.reconcile("9m4e2mr0ui3e8a215n4g").await.unwrap(), Requeue::OnChange);
        assert!(worker.reconcile("nonsense").await.is_err());
    }
}
