//! Provisioned clusters: their whole lifecycle with a provider that is slow, unavailable, or
//! refuses, and with a worker or an agent that dies at any step.

use std::sync::Arc;
use std::time::Duration;

use base::{entropy, task};
use engine::Reconcile as _;
use engine::cluster::ClusterWorker;
use engine::placement::PlacementView;
use model::cluster::{
    AGENT_TOKEN, Cluster, HeartbeatTimeouts, KUBECONFIG, Kubernetes, NewCluster, Provider,
    Settings, Status,
};
use model::event::Actor;
use model::work::Requeue;
use model::{ClusterId, Resources, Secret};
use port::Fault;
use store::operation::secret;
use store::{Scope, agent_token};
use testing::{Engine, TestClock, on_both_engines, rows};

use crate::world::{World, changes_of};

const MOST_STEPS: usize = 40;

/// A cluster of a provider, without running workers, and a clock.
struct Lab {
    world: World,
    clock: Arc<TestClock>,
    id: ClusterId,
}

impl Lab {
    async fn new(engine: Engine, provider: Provider) -> Self {
        let clock = Arc::new(TestClock::default());
        let world = World::still_with(engine, clock.clone()).await;
        let id: ClusterId = world.db.id();
        let seal = world.fleet.seal.clone();
        let secrets = [(KUBECONFIG.to_owned(), Secret::new("top secret"))].into();
        let sealed = engine::operation::encrypt_all(&*seal, id, &secrets).await.unwrap();
        let new = NewCluster {
            provider,
            settings: Settings::Kubernetes(Kubernetes::default()),
            ..rows::new_cluster("far", Resources::default())
        };
        let mut tx = world.db.begin(Actor::Anonymous).await.unwrap();
        store::cluster::create_with_id(&mut tx, id, None, &new).await.unwrap();
        secret::set_unfenced(&mut tx, id, &sealed).await.unwrap();
        tx.commit().await.unwrap();
        Self { world, clock, id }
    }

    fn worker(&self) -> ClusterWorker {
        let db = self.world.db.clone();
        ClusterWorker::new(db.clone(), HeartbeatTimeouts::default(), PlacementView::standalone(db))
            .with(self.world.fleet.providers())
    }

    async fn get(&self) -> Option<Cluster> {
        let mut read = self.world.db.read().await.unwrap();
        store::cluster::get(&mut read, Scope::All, self.id).await.ok()
    }

    async fn status(&self) -> Option<Status> {
        self.get().await.map(|cluster| cluster.status)
    }

    async fn reason(&self) -> String {
        self.get().await.unwrap().reason.to_string()
    }

    async fn agent_heartbeat(&self) {
        let mut tx = self.world.db.begin(Actor::Agent).await.unwrap();
        store::cluster::record_heartbeat(&mut tx, self.id, "1", "kubernetes", Duration::ZERO)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    /// Reconciles until the cluster has the status, or is deleted; advances the clock as needed.
    async fn step_until(&self, worker: &ClusterWorker, status: Option<Status>) {
        for _ in 0..MOST_STEPS {
            if self.status().await == status {
                return;
            }
            match worker.reconcile(&self.id.to_string()).await.unwrap() {
                Requeue::Now => {}
                Requeue::At(at) => self.clock.advance(at.since(self.world.db.now())),
                Requeue::OnChange => break,
            }
        }
        assert_eq!(self.status().await, status, "{}", self.reason().await);
    }

    /// The same with a worker that dies whenever its provider does not respond, and is replaced.
    async fn step_over_crashes(&self, status: Option<Status>) {
        let mut worker = Arc::new(self.worker());
        let fell_silent = self.world.fleet.provider.state().unanswered.clone();
        for _ in 0..MOST_STEPS {
            if self.status().await == status {
                return;
            }
            let (id, who) = (self.id.to_string(), worker.clone());
            let mut step = task::spawn("step", async move { who.reconcile(&id).await.unwrap() });
            tokio::select! {
                next = &mut step => if next.unwrap() == Requeue::OnChange { break },
                () = fell_silent.notified() => {
                    step.abort();
                    let _ = step.await;
                    worker = Arc::new(self.worker());
                }
            }
        }
        assert_eq!(self.status().await, status, "{}", self.reason().await);
    }

    async fn end(&self, is_forced: bool) {
        let mut tx = self.world.db.begin(Actor::Anonymous).await.unwrap();
        let now = store::cluster::get(&mut tx, Scope::All, self.id).await.unwrap();
        store::cluster::request_delete(&mut tx, &now, is_forced).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn number(&self, sql: &str) -> i64 {
        self.world.db.read().await.unwrap().number(sql, &[]).await.unwrap()
    }

    fn calls(&self) -> Vec<String> {
        self.world.fleet.provider.state().calls.clone()
    }

    fn set_fault(&self, fault: Option<Fault>) {
        self.world.fleet.provider.set_fault(fault);
    }
}

async fn full_lifecycle(engine: Engine, provider: Provider, silent_at: Option<usize>) -> usize {
    let lab = Lab::new(engine, provider).await;
    lab.world.fleet.provider.state().unanswered_at = silent_at;
    lab.step_over_crashes(Some(Status::WaitingForAgent)).await;
    lab.agent_heartbeat().await;
    lab.step_over_crashes(Some(Status::Ready)).await;
    let words = "created provisioning provisioned token_made waiting_for_agent ready";
    let changes = changes_of(&lab.world.db, lab.id).await;
    assert_eq!(changes.join(" "), words, "silent at {silent_at:?}");
    assert_eq!(lab.number("SELECT COUNT(*) FROM agent_token").await, 1);
    let agent = {
        let sites = lab.world.fleet.provider.state();
        assert_eq!(sites.tasks[&lab.id.into()].persisted[KUBECONFIG].reveal(), "top secret");
        sites.agents[&lab.id.into()].clone()
    };
    assert_eq!((&*agent.server, &*agent.image), ("http://paddock.test", "paddock:test"));
    let (mut read, hash) =
        (lab.world.db.read().await.unwrap(), entropy::hash(agent.token.reveal()));
    let whose = agent_token::find(&mut read, &hash, lab.world.db.now()).await.unwrap();
    assert_eq!(whose, Some(lab.id), "silent at {silent_at:?}");
    drop(read);
    assert_eq!(lab.get().await.unwrap().hosting.dns.as_deref(), Some("far.clusters.test"));
    lab.end(false).await;
    lab.step_over_crashes(None).await;
    assert!(lab.world.fleet.provider.state().resources.is_empty(), "silent at {silent_at:?}");
    assert_eq!(lab.number("SELECT COUNT(*) FROM operation_secret").await, 0);
    lab.calls().len()
}

on_both_engines! {
    async fn cluster_is_created_prepared_connected_and_destroyed(engine: Engine) {
        full_lifecycle(engine, Provider::Terraform, None).await;
    }

    async fn worker_that_dies_at_any_call_is_replaced(engine: Engine) {
        let calls = full_lifecycle(engine, Provider::Kubernetes, None).await;
        assert!(calls >= 3, "{calls}");
        for call in 0..calls {
            full_lifecycle(engine, Provider::Kubernetes, Some(call)).await;
        }
    }

    async fn cluster_waits_for_an_agent_that_dies_at_any_step(engine: Engine) {
        let way = [Status::Provisioning, Status::Provisioned, Status::WaitingForAgent, Status::Ready];
        for dies_at in way {
            let lab = Lab::new(engine, Provider::Kubernetes).await;
            let worker = lab.worker();
            // The agent sent a heartbeat once, and dies at this step.
            if dies_at == Status::Ready {
                lab.step_until(&worker, Some(Status::WaitingForAgent)).await;
                lab.agent_heartbeat().await;
                lab.step_until(&worker, Some(Status::Ready)).await;
                lab.clock.advance(Duration::from_secs(31));
                lab.step_until(&worker, Some(Status::Unreachable)).await;
            } else {
                lab.step_until(&worker, Some(dies_at)).await;
                lab.agent_heartbeat().await;
                lab.clock.advance(Duration::from_secs(31));
                lab.step_until(&worker, Some(Status::WaitingForAgent)).await;
                worker.reconcile(&lab.id.to_string()).await.unwrap();
                assert_eq!(lab.status().await, Some(Status::WaitingForAgent), "{dies_at}");
            }
            lab.agent_heartbeat().await;
            lab.step_until(&worker, Some(Status::Ready)).await;
        }
    }

    async fn slow_provider_reports_progress_and_is_polled(engine: Engine) {
        let lab = Lab::new(engine, Provider::Kubernetes).await;
        lab.world.fleet.provider.state().running_polls = 2;
        let worker = lab.worker();
        lab.step_until(&worker, Some(Status::Provisioning)).await;
        assert_eq!(lab.reason().await, "It goes on (1 of 2).");
        worker.reconcile(&lab.id.to_string()).await.unwrap();
        assert_eq!(lab.reason().await, "It goes on (2 of 2).");
        lab.step_until(&worker, Some(Status::WaitingForAgent)).await;
        lab.agent_heartbeat().await;
        lab.step_until(&worker, Some(Status::Ready)).await;
        lab.end(false).await;
        lab.step_until(&worker, None).await;
    }

    async fn agent_heartbeat_makes_cluster_ready_while_provider_is_pending(engine: Engine) {
        let lab = Lab::new(engine, Provider::Kubernetes).await;
        let worker = lab.worker();
        lab.step_until(&worker, Some(Status::Provisioned)).await;
        lab.world.fleet.provider.state().running_polls = 1000;
        lab.agent_heartbeat().await;
        lab.step_until(&worker, Some(Status::Ready)).await;
    }

    async fn overdue_cluster_fails_and_can_be_retried(engine: Engine) {
        let lab = Lab::new(engine, Provider::Kubernetes).await;
        lab.world.fleet.provider.state().running_polls = 1_000_000;
        let worker = lab.worker();
        lab.step_until(&worker, Some(Status::Provisioning)).await;
        lab.clock.advance(Duration::from_mins(31));
        lab.step_until(&worker, Some(Status::Failed)).await;
        let reason = lab.reason().await;
        assert!(reason.starts_with("Provisioning timed out") && reason.contains("retry"), "{reason}");
        assert_eq!(worker.reconcile(&lab.id.to_string()).await.unwrap(), Requeue::OnChange);

        lab.world.fleet.provider.state().running_polls = 0;
        let mut tx = lab.world.db.begin(Actor::Anonymous).await.unwrap();
        let failed = store::cluster::get(&mut tx, Scope::All, lab.id).await.unwrap();
        store::cluster::retry(&mut tx, &failed).await.unwrap();
        tx.commit().await.unwrap();
        lab.step_until(&worker, Some(Status::WaitingForAgent)).await;
        // An agent that never sends a heartbeat also fails the cluster.
        lab.clock.advance(Duration::from_mins(31));
        lab.step_until(&worker, Some(Status::Failed)).await;
        lab.end(false).await;
        lab.step_until(&worker, None).await;
    }

    async fn cancelled_cluster_fails_and_can_be_retried(engine: Engine) {
        let lab = Lab::new(engine, Provider::Terraform).await;
        lab.world.fleet.provider.state().running_polls = 1_000_000;
        let worker = lab.worker();
        lab.step_until(&worker, Some(Status::Provisioning)).await;
        let mut tx = lab.world.db.begin(Actor::Anonymous).await.unwrap();
        store::cluster::cancel(&mut tx, &lab.get().await.unwrap()).await.unwrap();
        tx.commit().await.unwrap();
        worker.reconcile(&lab.id.to_string()).await.unwrap();
        assert_eq!(lab.reason().await, "Cancelling the provider's operation.", "the provider is stopped first");
        lab.step_until(&worker, Some(Status::Failed)).await;
        assert!(lab.reason().await.starts_with("Provisioning was cancelled"), "{}", lab.reason().await);
        let mut read = lab.world.db.read().await.unwrap();
        let log = store::operation::log::last(&mut read, lab.id, 10).await.unwrap();
        assert_eq!(log, ["It goes on (1 of 1000000).", "Provisioning was cancelled. Retry, or delete the cluster."]);
        drop(read);
        lab.world.fleet.provider.state().running_polls = 0;
        let mut tx = lab.world.db.begin(Actor::Anonymous).await.unwrap();
        store::cluster::retry(&mut tx, &lab.get().await.unwrap()).await.unwrap();
        tx.commit().await.unwrap();
        lab.step_until(&worker, Some(Status::WaitingForAgent)).await;
    }

    async fn fenced_server_can_not_persist_cluster_state(engine: Engine) {
        let lab = Lab::new(engine, Provider::Terraform).await;
        let life = Duration::from_secs(20);
        let mut tx = lab.world.db.begin(Actor::Anonymous).await.unwrap();
        let first = store::operation::acquire(&mut tx, lab.id, "first", life).await.unwrap().unwrap();
        assert_eq!(store::operation::acquire(&mut tx, lab.id, "second", life).await.unwrap(), None);
        store::operation::release(&mut tx, lab.id, "first").await.unwrap();
        let second = store::operation::acquire(&mut tx, lab.id, "second", life).await.unwrap();
        assert_eq!(second, Some(first + 1));
        let state = [("state".to_owned(), "sealed".to_owned())].into();
        secret::set(&mut tx, lab.id, first + 1, &state).await.unwrap();
        let late = secret::set(&mut tx, lab.id, first, &state).await;
        assert!(matches!(late, Err(store::Error::Conflict(_))), "{late:?}");
    }

    async fn unavailable_provider_is_retried_and_refusal_fails_the_cluster(engine: Engine) {
        let lab = Lab::new(engine, Provider::Kubernetes).await;
        let worker = lab.worker();
        lab.set_fault(Some(Fault::Unavailable("it is down".into())));
        worker.reconcile(&lab.id.to_string()).await.unwrap();
        assert_eq!(lab.reason().await, "Provider is unavailable: it is down. Retrying.");
        assert_eq!(lab.status().await, Some(Status::Accepted));
        lab.set_fault(Some(Fault::Refused("the token has no right to list nodes".into())));
        lab.step_until(&worker, Some(Status::Failed)).await;
        let reason = lab.reason().await;
        assert!(reason.starts_with("Provisioning failed: the token has no right to list nodes. Fix the cause"), "{reason}");
        // Nothing was created, so nothing has to be destroyed.
        lab.end(false).await;
        lab.step_until(&worker, None).await;
    }

    async fn cluster_that_can_not_be_destroyed_stays_until_forced(engine: Engine) {
        let lab = Lab::new(engine, Provider::Kubernetes).await;
        let worker = lab.worker();
        lab.step_until(&worker, Some(Status::WaitingForAgent)).await;
        for fault in [Fault::Unavailable("no answer".into()), Fault::Refused("not allowed".into())] {
            lab.set_fault(Some(fault.clone()));
            if lab.status().await != Some(Status::Deprovisioning) {
                lab.end(false).await;
            }
            for _ in 0..3 {
                worker.reconcile(&lab.id.to_string()).await.unwrap();
            }
            assert_eq!(lab.status().await, Some(Status::Deprovisioning));
            assert!(lab.reason().await.contains(&fault.to_string()), "{}", lab.reason().await);
        }
        assert!(lab.reason().await.contains("force the deletion"), "{}", lab.reason().await);
        lab.end(true).await;
        lab.step_until(&worker, None).await;
    }

    async fn installed_objects_are_repaired(engine: Engine) {
        let lab = Lab::new(engine, Provider::Kubernetes).await;
        let worker = lab.worker();
        lab.step_until(&worker, Some(Status::WaitingForAgent)).await;
        lab.agent_heartbeat().await;
        lab.step_until(&worker, Some(Status::Ready)).await;
        let reconcile = async || {
            let before = lab.calls().len();
            lab.agent_heartbeat().await;
            worker.reconcile(&lab.id.to_string()).await.unwrap();
            lab.calls()[before..].to_vec()
        };
        let _first = reconcile().await;
        assert_eq!(reconcile().await, Vec::<String>::new());
        lab.clock.advance(Duration::from_mins(11));
        assert_eq!(reconcile().await, ["prepare far"]);
        assert_eq!(reconcile().await, Vec::<String>::new());
        // A change of the owner is applied immediately.
        let mut tx = lab.world.db.begin(Actor::Anonymous).await.unwrap();
        let quota = Resources::from([("cpu", 2)]);
        let settings = Settings::Kubernetes(Kubernetes { quota, ..Kubernetes::default() });
        store::cluster::set_settings(&mut tx, lab.id, &settings).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(reconcile().await, ["prepare far"]);
        // The cluster stays ready when a repair is refused, with the reason.
        lab.set_fault(Some(Fault::Refused("the quota is not ours".into())));
        lab.clock.advance(Duration::from_mins(11));
        reconcile().await;
        assert_eq!(lab.status().await, Some(Status::Ready));
        assert!(lab.reason().await.contains("the quota is not ours"), "{}", lab.reason().await);
    }

    async fn cluster_secrets_are_stored_encrypted(engine: Engine) {
        let lab = Lab::new(engine, Provider::Kubernetes).await;
        lab.step_until(&lab.worker(), Some(Status::WaitingForAgent)).await;
        let mut read = lab.world.db.read().await.unwrap();
        lab.world.db.number_events().await.unwrap();
        let all = store::event::Filter::default();
        let events = store::event::list(&mut read, Scope::All, &all, 0, 10_000).await.unwrap();
        let text = format!("{events:?} {:?}", store::cluster::get(&mut read, Scope::All, lab.id).await);
        assert!(!text.contains("top secret") && !text.contains("kept by"), "{text}");
        let sealed = secret::list(&mut read, lab.id).await.unwrap();
        assert_eq!(sealed.keys().collect::<Vec<_>>(), [AGENT_TOKEN, KUBECONFIG, "note"]);
        for (name, sealed) in sealed {
            let prefix = format!("sealed:cluster/{}/{name}", lab.id);
            assert!(sealed.starts_with(&prefix), "{sealed}");
        }
    }
}
