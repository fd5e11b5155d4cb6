//! Transactions are atomic, even if their task is cancelled.

use std::sync::Arc;
use std::time::Duration;

use base::{SystemClock, task};
use model::event::Actor;
use model::{OrganizationId, Resources};
use store::deployment::placement;
use store::{Error, Scope, cluster};
use testing::{on_both_engines, rows};
use tokio::sync::oneshot;

use crate::support::{commit_note, database, note, notes, soon, texts};

on_both_engines! {
    async fn dropped_transaction_is_rolled_back(engine: Engine) {
        let database = database(engine).await;
        let mut tx = database.db.begin(Actor::Server).await.unwrap();
        note(&mut tx, "gone").await.unwrap();
        drop(tx);
        commit_note(&database.db, "stays").await.unwrap();
        assert_eq!(notes(&database.db).await, ["stays"]);
    }

    async fn uncommitted_changes_are_invisible_to_others(engine: Engine) {
        let database = database(engine).await;
        let mut tx = database.db.begin(Actor::Server).await.unwrap();
        note(&mut tx, "soon").await.unwrap();
        assert_eq!(tx.number("SELECT COUNT(*) FROM idempotency", &[]).await.unwrap(), 1);
        assert!(notes(&database.db).await.is_empty());
        tx.commit().await.unwrap();
        assert_eq!(notes(&database.db).await, ["soon"]);
    }

    async fn failed_statement_poisons_the_transaction(engine: Engine) {
        let database = database(engine).await;
        let mut tx = database.db.begin(Actor::Server).await.unwrap();
        note(&mut tx, "gone").await.unwrap();
        let senseless = "UPDATE idempotency SET status = NULL";
        assert!(matches!(tx.run(senseless, &[]).await, Err(Error::Database(_))));
        assert!(matches!(tx.commit().await, Err(Error::Database(_))));
        assert!(notes(&database.db).await.is_empty());
    }

    async fn failed_returning_statement_poisons_the_transaction(engine: Engine) {
        let database = database(engine).await;
        let mut tx = database.db.begin(Actor::Server).await.unwrap();
        note(&mut tx, "gone").await.unwrap();
        let senseless = "UPDATE idempotency SET status = NULL RETURNING key";
        assert!(matches!(tx.first(senseless, &[]).await, Err(Error::Database(_))));
        assert!(matches!(tx.commit().await, Err(Error::Database(_))), "committed after a failure");
        assert!(notes(&database.db).await.is_empty());
    }

    async fn partial_reservation_can_not_be_committed(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        let on = rows::ready_cluster(db, Some(own), Resources::from([("cpu", 4), ("ram", 1)])).await;
        let big = Resources::from([("cpu", 2), ("ram", 2)]);
        let waiting = rows::deployment(db, own, &rows::new_deployment(None, None, big, 0)).await;
        let mut tx = db.begin(Actor::Server).await.unwrap();
        let placed = placement::place(&mut tx, waiting.id, &[(0, rows::only_node(&on))], &["main".into()]).await;
        assert!(matches!(placed, Err(Error::InsufficientCapacity { .. })), "{placed:?}");
        assert!(tx.commit().await.is_err(), "a partial reservation was committed");
        let after = cluster::get(&mut db.read().await.unwrap(), Scope::All, on.id).await.unwrap();
        assert_eq!((after.free(), after.deployments), (on.free(), 0));
    }

    async fn task_cancelled_while_waiting_leaves_no_changes(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let mut first = db.begin(Actor::Server).await.unwrap();
        note(&mut first, "shared").await.unwrap();
        // On SQLite these wait for the writer, on PostgreSQL for the row.
        let waiters: Vec<_> = (0..10)
            .map(|n| {
                let db = db.clone();
                task::spawn("waiter", async move {
                    let mut tx = db.begin(Actor::Server).await.unwrap();
                    note(&mut tx, "shared").await.unwrap();
                    note(&mut tx, n).await.unwrap();
                    tx.commit().await.unwrap();
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        for waiter in waiters {
            waiter.abort();
            assert!(waiter.await.unwrap_err().is_cancelled());
        }
        soon(first.commit()).await.unwrap();
        soon(commit_note(db, "shared")).await.unwrap();
        assert_eq!(notes(db).await, ["shared"]);
    }

    async fn task_cancelled_mid_transaction_leaves_no_changes(engine: Engine) {
        let database = database(engine).await;
        for _ in 0..20 {
            let (db, (tell, half_way)) = (database.db.clone(), oneshot::channel());
            let task = task::spawn("half way", async move {
                let mut tx = db.begin(Actor::Server).await.unwrap();
                note(&mut tx, "shared").await.unwrap();
                note(&mut tx, "gone").await.unwrap();
                tell.send(()).unwrap();
                std::future::pending::<()>().await;
                tx.commit().await.unwrap();
            });
            half_way.await.unwrap();
            task.abort();
        }
        soon(commit_note(&database.db, "shared")).await.unwrap();
        assert_eq!(notes(&database.db).await, ["shared"]);
    }

    async fn committed_changes_are_visible_to_all_servers(engine: Engine) {
        let database = database(engine).await;
        let replica = database.replica(Arc::new(SystemClock)).await;
        let writers: Vec<_> = (0..500)
            .map(|n| {
                let (db, replica) = (database.db.clone(), replica.clone());
                task::spawn("writer", async move {
                    commit_note(&db, n).await.unwrap();
                    let mine = format!("SELECT key FROM idempotency WHERE key = '{n}'");
                    assert_eq!(texts(&replica, &mine).await.len(), 1, "{n} is missing");
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        let later = database.replica(Arc::new(SystemClock)).await;
        assert_eq!(notes(&later).await.len(), 500);
    }

    async fn readers_see_transactions_atomically(engine: Engine) {
        let database = database(engine).await;
        let db = database.db.clone();
        let writer = task::spawn("writer", async move {
            for n in 0..50 {
                let mut tx = db.begin(Actor::Server).await.unwrap();
                note(&mut tx, format!("a{n}")).await.unwrap();
                tokio::task::yield_now().await;
                note(&mut tx, format!("b{n}")).await.unwrap();
                tx.commit().await.unwrap();
            }
        });
        while !writer.is_finished() {
            assert_eq!(notes(&database.db).await.len() % 2, 0);
        }
        writer.await.unwrap();
    }

    async fn ids_sort_by_creation_order(engine: Engine) {
        let database = database(engine).await;
        let tx = database.db.begin(Actor::Server).await.unwrap();
        let ids: Vec<OrganizationId> = (0..1000).map(|_| tx.id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
}
