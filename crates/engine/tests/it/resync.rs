//! Periodic resync: a subject whose wake-up was lost is reconciled later.

use std::sync::Arc;
use std::time::Duration;

use base::SystemClock;
use engine::Options;
use model::Resources;
use model::cluster::Status;
use model::event::Actor;
use model::instance::NewInstance;
use server::{Parts, Running};
use store::{Db, Scope};
use testing::{Database, on_both_engines, rows};

use crate::fleet::{Fleet, dinosaur};
use crate::probe::until;
use crate::world::World;

async fn delete_all_wake_ups(db: &Db) {
    let mut tx = db.begin(Actor::Server).await.unwrap();
    assert!(tx.run("DELETE FROM work", &[]).await.unwrap() > 0);
    tx.commit().await.unwrap();
}

/// A server with a short resync interval.
fn start(fleet: &Fleet, db: &Db) -> Running {
    let driver = Options { resync: Duration::from_millis(200), ..Options::default() };
    Parts { driver, ..fleet.parts(db, "test") }.build().work()
}

on_both_engines! {
    async fn cluster_continues_after_a_lost_wake_up(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let db = &database.db;
        let made = rows::cluster(db, None, Resources::from([("cpu", 1)])).await;
        delete_all_wake_ups(db).await;
        let _running = start(&Fleet::new(), db);
        until("the cluster goes on", async || {
            let mut read = db.read().await.unwrap();
            let now = store::cluster::get(&mut read, Scope::All, made.id).await.unwrap();
            now.status == Status::WaitingForAgent
        })
        .await;
    }

    async fn instance_continues_after_a_lost_wake_up(engine: Engine) {
        let world = World::still(engine).await;
        let id = world.create_instance(&NewInstance { kind: "unicorn".into(), ..dinosaur("rex") }).await;
        delete_all_wake_ups(&world.db).await;
        let _running = start(&world.fleet, &world.db);
        world.until_reason(id, "KindNotFound").await;
    }

    async fn deployment_created_without_a_server_is_placed(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        let on = rows::ready_cluster(db, Some(own), Resources::from([("cpu", 4)])).await;
        let one = Resources::from([("cpu", 1)]);
        let pinned = rows::new_deployment(Some(on.id), None, one.clone(), 0);
        let roaming = rows::new_deployment(None, None, one, 0);
        let waiting =
            [rows::deployment(db, own, &pinned).await.id, rows::deployment(db, own, &roaming).await.id];
        let _running = start(&Fleet::new(), db);
        for id in waiting {
            until("the deployment runs", async || {
                let mut read = db.read().await.unwrap();
                let now = store::deployment::get(&mut read, Scope::All, id).await.unwrap();
                now.placed_on == Some(on.id)
            })
            .await;
        }
    }
}
