//! Servers that die at any executor call: another one takes over and the environment converges.

use std::sync::Arc;
use std::time::Duration;

use base::task;
use engine::Reconcile as _;
use engine::environment::EnvironmentWorker;
use engine::resource::ResourceWorker;
use model::EnvironmentId;
use model::environment::Status;
use model::work::Requeue;
use serde_json::json;
use store::{Db, Scope, resource};
use testing::{Engine, on_both_engines};

use crate::environment::{SHOP, Shop};

const MOST_ROUNDS: usize = 200;

/// The workers of one server.
struct Server {
    environments: EnvironmentWorker,
    resources: ResourceWorker,
}

impl Server {
    fn new(shop: &Shop) -> Arc<Self> {
        let (db, fleet) = (shop.world.db.clone(), &shop.world.fleet);
        let name = format!("test {}", base::entropy::random_u64(db.entropy()));
        Arc::new(Self {
            environments: EnvironmentWorker::new(db.clone(), fleet.probe.clone()),
            resources: ResourceWorker::new(db.clone(), fleet.parts(&db, &name).executors()),
        })
    }

    /// Reconciles the environment and each of its resources once; returns the earliest next time.
    async fn round(&self, db: &Db, id: EnvironmentId) -> Option<Duration> {
        let mut waits = Vec::new();
        let mut next = |next: Requeue| match next {
            Requeue::At(at) => waits.push(at.since(db.now())),
            Requeue::Now => waits.push(Duration::ZERO),
            Requeue::OnChange => {}
        };
        next(self.environments.reconcile(&id.to_string()).await.unwrap());
        for one in resource::list_of_environment(&mut db.read().await.unwrap(), id).await.unwrap() {
            next(self.resources.reconcile(&one.id.to_string()).await.unwrap());
        }
        waits.into_iter().min()
    }
}

/// Runs servers until the environment has the status; each dies where a call gets no response.
async fn until_over_crashes(shop: &Shop, id: EnvironmentId, status: Status) -> usize {
    let (mut server, mut deaths) = (Server::new(shop), 0);
    let fell_silent = shop.world.fleet.executor.state().unanswered.clone();
    for _ in 0..MOST_ROUNDS {
        if shop.get(id).await.status == status {
            return deaths;
        }
        let (who, db) = (server.clone(), shop.world.db.clone());
        let mut round = task::spawn("round", async move { who.round(&db, id).await });
        tokio::select! {
            wait = &mut round => shop.clock.advance(wait.unwrap().unwrap_or_default()),
            () = fell_silent.notified() => {
                round.abort();
                let _ = round.await;
                server = Server::new(shop);
                deaths += 1;
            }
        }
    }
    let now = shop.get(id).await;
    panic!("it is {}, not {status}: {}", now.status, now.reason);
}

/// The lifecycle of an environment whose server dies at that call. Returns the number of calls.
async fn full_lifecycle(engine: Engine, silent_at: Option<usize>) -> usize {
    let shop = Shop::still(engine, &[SHOP]).await;
    shop.world.fleet.executor.state().unanswered_at = silent_at;
    let id = shop.create("shop@1.0.0", json!({"size": 1})).await;
    let mut deaths = until_over_crashes(&shop, id, Status::Deployed).await;
    assert_eq!(shop.world.fleet.executor.state().resources.len(), 4);
    shop.destroy(id).await;
    deaths += until_over_crashes(&shop, id, Status::Destroyed).await;
    let held = shop.world.fleet.executor.state();
    assert!(held.resources.is_empty(), "{:?}", held.resources);
    assert_eq!(deaths, usize::from(silent_at.is_some()));
    held.calls.len()
}

on_both_engines! {
    async fn server_that_dies_at_any_call_is_replaced(engine: Engine) {
        let calls = full_lifecycle(engine, None).await;
        assert_eq!(calls, 8);
        for at in 0..calls {
            full_lifecycle(engine, Some(at)).await;
        }
    }

    async fn fenced_server_can_not_write(engine: Engine) {
        let shop = Shop::still(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        let base = shop.resource(id, "base").await;
        let life = Duration::from_secs(20);
        let mut tx = shop.begin().await;
        let first = store::operation::acquire(&mut tx, base.id, "first", life).await.unwrap().unwrap();
        assert_eq!(store::operation::acquire(&mut tx, base.id, "second", life).await.unwrap(), None);
        assert_eq!(store::operation::acquire(&mut tx, base.id, "first", life).await.unwrap(), Some(first));
        tx.commit().await.unwrap();
        shop.clock.advance(Duration::from_secs(21));
        let mut tx = shop.begin().await;
        let second = store::operation::acquire(&mut tx, base.id, "second", life).await.unwrap().unwrap();
        assert_eq!(second, first + 1);
        tx.commit().await.unwrap();
        let kept = [("state".to_owned(), "sealed".to_owned())].into();
        let mut tx = shop.begin().await;
        let late = store::operation::secret::set(&mut tx, base.id, first, &kept).await;
        assert!(matches!(late, Err(store::Error::Conflict(_))), "{late:?}");
        drop(tx);
        let mut tx = shop.begin().await;
        let mut old = resource::get(&mut tx, Scope::All, base.id).await.unwrap();
        old.fence = first;
        let late = resource::save(&mut tx, &mut old, "updated").await;
        assert!(matches!(late, Err(store::Error::Conflict(_))), "{late:?}");
        drop(tx);
        let mut tx = shop.begin().await;
        store::operation::secret::set(&mut tx, base.id, second, &kept).await.unwrap();
        tx.commit().await.unwrap();
    }
}
