//! Environments with incomplete changes: cancelled, refused, superseded.

use std::sync::Arc;
use std::time::Duration;

use engine::environment::{self, Change};
use model::environment::Status;
use model::resource;
use model::template::Executor;
use serde_json::json;
use store::Scope;
use testing::on_both_engines;
use tokio::sync::Semaphore;

use crate::environment::{SHOP, Shop, set};
use crate::probe::until;

const PAGE: &str = "
name: page
version: '1'
entry_points: ['http://{{ environment.name }}.test/']
resources:
  - {name: web, executor: consul-kv, with: {prefix: web/}}
";

const MISSING: resource::Reason =
    resource::Reason::BackendNotConfigured { executor: Executor::ConsulKv };

/// Long enough to observe that nothing happens.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(400)).await;
}

async fn cancel(shop: &Shop, id: model::EnvironmentId) {
    shop.ask(id, async |tx, now| environment::cancel(tx, now).await).await.unwrap();
}

on_both_engines! {
    async fn ttl_fires_once(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let end = shop.world.db.now() + Duration::from_hours(1);
        let id = shop.create_with("shop@1.0.0", json!({}), |request| request.destroy_at = Some(end)).await;
        shop.until(id, Status::Deployed).await;
        shop.world.fleet.executor.state().refuses.insert("beside".into());
        shop.clock.advance(Duration::from_hours(2));
        until("it can't be destroyed", async || shop.get(id).await.status == Status::Failed).await;
        a_while().await;
        let asked = shop.calls("destroy");
        assert_eq!(asked.iter().filter(|name| *name == "beside").count(), 1, "{asked:?}");
        assert_eq!(shop.get(id).await.destroy_at, None);
        shop.world.fleet.executor.state().refuses.clear();
        shop.ask(id, async |tx, now| environment::retry(tx, now).await).await.unwrap();
        shop.until(id, Status::Destroyed).await;
    }

    async fn repair_does_not_resume_a_cancelled_change(engine: Engine) {
        let less = SHOP.replace("1.0.0", "1.1.0")
            .replace("  - {name: beside, executor: vault-secret, with: {path: beside}}\n", "");
        let shop = Shop::start(engine, &[SHOP, &less]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        shop.world.fleet.executor.state().running_polls = u32::MAX;
        let change = Change {
            templates: Some(vec!["shop@1.1.0".into()]),
            ..set(&json!({"color": "blue"}))
        };
        shop.apply(id, change).await.unwrap();
        shop.until_resource(id, "settings", resource::Status::Applying).await;
        cancel(&shop, id).await;
        until("it is cancelled", async || shop.get(id).await.status == Status::Failed).await;
        let base = shop.resource(id, "base").await.id;
        shop.world.fleet.executor.state().resources.get_mut(&model::operation::Subject::from(base)).unwrap().insert("path".into(), json!("x"));
        shop.ask(id, async |tx, now| environment::observe(tx, now).await).await.unwrap();
        shop.until_resource(id, "base", resource::Status::Drifted).await;
        let repaired = shop.ask(id, async |tx, now| environment::repair(tx, now, None).await).await;
        let why = repaired.unwrap_err().to_string();
        assert!(why.contains("is incomplete"), "{why}");
        a_while().await;
        assert_eq!(shop.get(id).await.status, Status::Failed);
        assert_eq!(shop.calls("destroy"), Vec::<String>::new());
    }

    async fn destruction_revoked_before_it_begins_keeps_resources(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        shop.world.fleet.executor.state().running_polls = u32::MAX;
        shop.apply(id, set(&json!({"color": "blue"}))).await.unwrap();
        shop.until_resource(id, "settings", resource::Status::Applying).await;
        shop.destroy(id).await;
        shop.until_resource(id, "settings", resource::Status::Pending).await;
        shop.until_resource(id, "part-0", resource::Status::Destroying).await;
        cancel(&shop, id).await;
        until("it is cancelled", async || shop.get(id).await.status == Status::Failed).await;
        shop.world.fleet.executor.state().running_polls = 0;
        shop.clear_calls();
        shop.apply(id, Change::default()).await.unwrap();
        shop.until(id, Status::Deployed).await;
        let gone = shop.calls("destroy");
        assert!(!gone.iter().any(|name| name == "settings" || name == "base"), "{gone:?}");
    }

    async fn validation_can_be_cancelled(engine: Engine) {
        let shop = Shop::start(engine, &[PAGE]).await;
        let id = shop.create("page@1", json!({})).await;
        shop.until(id, Status::Validating).await;
        cancel(&shop, id).await;
        let now = shop.get(id).await;
        assert_eq!((now.status, now.is_cancelled), (Status::Failed, false));
        // Health checks continue from here.
        shop.world.fleet.probe.state().insert("http://mine.test/".into(), 200);
        until("it works", async || {
            shop.clock.advance(Duration::from_secs(31));
            shop.get(id).await.status == Status::Deployed
        }).await;
    }

    async fn resource_refused_before_creation_can_be_destroyed(engine: Engine) {
        let bad = SHOP.replace("with: {path: beside}", "with: {path: bad}");
        let shop = Shop::start(engine, &[&bad]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Failed).await;
        let beside = shop.resource(id, "beside").await;
        assert!(!beside.may_exist() && beside.fence > 0, "{beside:?}");
        shop.world.fleet.executor.state().refuses.insert("beside".into());
        shop.destroy(id).await;
        shop.until(id, Status::Destroyed).await;
    }

    async fn resource_without_executor_waits_and_is_deleted_if_never_created(engine: Engine) {
        let mut shop = Shop::still(engine, &[SHOP]).await;
        shop.world.fleet.missing = vec![Executor::ConsulKv];
        shop.world.start_driver();
        let id = shop.create("shop@1.0.0", json!({})).await;
        until("the reason is recorded", async || {
            shop.resource(id, "settings").await.reason == MISSING
        }).await;
        shop.destroy(id).await;
        shop.until(id, Status::Destroyed).await;
    }

    async fn created_resource_without_executor_stays_without_busy_loop(engine: Engine) {
        let mut shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({"size": 0})).await;
        shop.until(id, Status::Deployed).await;
        shop.world.stop_driver().await;
        shop.world.fleet.missing = vec![Executor::ConsulKv];
        shop.world.start_driver();
        shop.destroy(id).await;
        until("the reason is recorded", async || {
            shop.resource(id, "settings").await.reason == MISSING
        }).await;
        let events = async || shop.world.changes_of(shop.resource(id, "settings").await.id).await.len();
        let before = events().await;
        a_while().await;
        assert_eq!(events().await, before);
    }

    async fn attempted_configuration_is_recorded_without_expressions(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let (settings, id) = {
            shop.world.fleet.executor.state().running_polls = 2;
            let id = shop.create("shop@1.0.0", json!({"color": "hidden-93be"})).await;
            (shop.until_resource(id, "settings", resource::Status::Applying).await, id)
        };
        assert_eq!(settings.tried.unwrap()["values"]["base"], "made/base");
        shop.until(id, Status::Deployed).await;
        let settings = shop.resource(id, "settings").await;
        assert_eq!((settings.tried, settings.applied.unwrap()["values"]["color"].clone()), (None, json!("hidden-93be")));
        // Parameters may become secret values: the log contains only their names.
        shop.world.db.number_events().await.unwrap();
        let filter = store::event::Filter { subject: Some(id.to_string()), ..Default::default() };
        let mut read = shop.world.db.read().await.unwrap();
        let events = store::event::list(&mut read, Scope::All, &filter, 0, 1_000).await.unwrap();
        let text = serde_json::to_string(&events).unwrap();
        assert!(text.contains("\"color\"") && !text.contains("hidden-93be"), "{text}");
    }

    async fn first_template_with_a_default_wins(engine: Engine) {
        let one = |name: &str, size: i64| format!(
            "name: {name}\nversion: '1'\nparameters: {{size: {{type: integer, default: {size}}}}}\nresources:\n  \
             - {{name: {name}, executor: consul-kv, with: {{prefix: '{name}/', values: {{size: '{{{{ size }}}}'}}}}}}\n"
        );
        let shop = Shop::start(engine, &[&one("aa", 1), &one("bb", 2)]).await;
        let id = shop.create_with("bb@1", json!({}), |request| request.templates.push("aa@1".into())).await;
        shop.until(id, Status::Deployed).await;
        for name in ["aa", "bb"] {
            assert_eq!(shop.resource(id, name).await.applied.unwrap()["values"]["size"], 2, "{name}");
        }
    }

    async fn resource_that_fails_during_destruction_is_destroyed(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let gate = Arc::new(Semaphore::new(0));
        shop.world.fleet.executor.state().gate = Some(gate.clone());
        shop.world.fleet.executor.state().refuses.insert("base".into());
        let id = shop.create("shop@1.0.0", json!({})).await;
        until("it is being created", async || shop.calls("apply").contains(&"base".to_owned())).await;
        shop.destroy(id).await;
        shop.world.fleet.executor.state().refuses.clear();
        gate.add_permits(1_000);
        shop.until(id, Status::Destroyed).await;
    }

    async fn resource_created_during_destruction_is_destroyed(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({"size": 0})).await;
        shop.until(id, Status::Deployed).await;
        let executor = &shop.world.fleet.executor;
        let base = shop.resource(id, "base").await.id;
        executor.state().resources.get_mut(&model::operation::Subject::from(base)).unwrap().insert("path".into(), json!("by hand"));
        executor.state().observations = 0;
        shop.ask(id, async |tx, now| environment::observe(tx, now).await).await.unwrap();
        shop.until_resource(id, "base", resource::Status::Drifted).await;
        // An observation that started later would wait at the gate and block the destruction.
        until("all are observed", async || executor.state().observations == 3).await;
        let gate = Arc::new(Semaphore::new(0));
        executor.state().gate = Some(gate.clone());
        shop.clear_calls();
        shop.ask(id, async |tx, now| environment::repair(tx, now, None).await).await.unwrap();
        until("it is being repaired", async || shop.calls("apply") == ["base"]).await;
        // During this call the environment is destroyed, and its dependents can't be.
        executor.state().gate = None;
        executor.state().refuses.insert("settings".into());
        shop.destroy(id).await;
        shop.until_resource(id, "settings", resource::Status::Failed).await;
        gate.add_permits(1);
        shop.until(id, Status::Failed).await;
        executor.state().refuses.clear();
        shop.ask(id, async |tx, now| environment::retry(tx, now).await).await.unwrap();
        shop.until(id, Status::Destroyed).await;
        assert!(executor.state().resources.is_empty());
    }

    async fn requested_observation_begins_after_the_request(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({"size": 0})).await;
        shop.until(id, Status::Deployed).await;
        let gate = Arc::new(Semaphore::new(0));
        let executor = &shop.world.fleet.executor;
        executor.state().gate = Some(gate.clone());
        executor.state().observations = 0;
        let look = async || {
            shop.ask(id, async |tx, now| environment::observe(tx, now).await).await.unwrap();
        };
        look().await;
        until("all are observed", async || executor.state().observations == 3).await;
        let base = shop.resource(id, "base").await.id;
        executor.state().resources.get_mut(&model::operation::Subject::from(base)).unwrap().insert("path".into(), json!("by hand"));
        look().await;
        gate.add_permits(1_000);
        shop.until_resource(id, "base", resource::Status::Drifted).await;
    }
}
