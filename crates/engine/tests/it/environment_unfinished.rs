//! Environments whose changes and ends did not come to their end: cancelled, refused, overtaken.

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

/// Long enough to see that nothing happens.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(400)).await;
}

async fn cancel(shop: &Shop, id: model::EnvironmentId) {
    shop.ask(id, async |tx, now| environment::cancel(tx, now).await).await.unwrap();
}

on_both_engines! {
    async fn a_planned_end_comes_once(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let end = shop.world.db.now() + Duration::from_hours(1);
        let id = shop.create_with("shop@1.0.0", json!({}), |wish| wish.destroy_at = Some(end)).await;
        shop.until(id, Status::Deployed).await;
        shop.world.fleet.executor.held().refuses.insert("beside".into());
        shop.clock.advance(Duration::from_hours(2));
        until("it can't be destroyed", async || shop.get(id).await.status == Status::Failed).await;
        a_while().await;
        let asked = shop.asked("destroy");
        assert_eq!(asked.iter().filter(|name| *name == "beside").count(), 1, "{asked:?}");
        assert_eq!(shop.get(id).await.destroy_at, None);
        shop.world.fleet.executor.held().refuses.clear();
        shop.ask(id, async |tx, now| environment::retry(tx, now).await).await.unwrap();
        shop.until(id, Status::Destroyed).await;
    }

    async fn what_was_cancelled_does_not_go_on_because_something_is_mended(engine: Engine) {
        let less = SHOP.replace("1.0.0", "1.1.0")
            .replace("  - {name: beside, executor: vault-secret, with: {path: beside}}\n", "");
        let shop = Shop::start(engine, &[SHOP, &less]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        shop.world.fleet.executor.held().slowness = u32::MAX;
        let change = Change {
            templates: Some(vec!["shop@1.1.0".into()]),
            ..set(&json!({"color": "blue"}))
        };
        shop.apply(id, change).await.unwrap();
        shop.until_resource(id, "settings", resource::Status::Applying).await;
        cancel(&shop, id).await;
        until("it is cancelled", async || shop.get(id).await.status == Status::Failed).await;
        let base = shop.resource(id, "base").await.id;
        shop.world.fleet.executor.held().of.get_mut(&model::operation::Subject::from(base)).unwrap().insert("path".into(), json!("x"));
        shop.ask(id, async |tx, now| environment::observe(tx, now).await).await.unwrap();
        shop.until_resource(id, "base", resource::Status::Drifted).await;
        let mended = shop.ask(id, async |tx, now| environment::repair(tx, now, None).await).await;
        let why = mended.unwrap_err().to_string();
        assert!(why.contains("did not come to its end"), "{why}");
        a_while().await;
        assert_eq!(shop.get(id).await.status, Status::Failed);
        assert_eq!(shop.asked("destroy"), Vec::<String>::new());
    }

    async fn what_is_called_off_before_its_turn_is_whole(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        shop.world.fleet.executor.held().slowness = u32::MAX;
        shop.apply(id, set(&json!({"color": "blue"}))).await.unwrap();
        shop.until_resource(id, "settings", resource::Status::Applying).await;
        shop.destroy(id).await;
        shop.until_resource(id, "settings", resource::Status::Pending).await;
        shop.until_resource(id, "part-0", resource::Status::Destroying).await;
        cancel(&shop, id).await;
        until("it is called off", async || shop.get(id).await.status == Status::Failed).await;
        shop.world.fleet.executor.held().slowness = 0;
        shop.forget();
        shop.apply(id, Change::default()).await.unwrap();
        shop.until(id, Status::Deployed).await;
        let gone = shop.asked("destroy");
        assert!(!gone.iter().any(|name| name == "settings" || name == "base"), "{gone:?}");
    }

    async fn a_look_at_whether_it_works_can_be_cancelled(engine: Engine) {
        let shop = Shop::start(engine, &[PAGE]).await;
        let id = shop.create("page@1", json!({})).await;
        shop.until(id, Status::Validating).await;
        cancel(&shop, id).await;
        let now = shop.get(id).await;
        assert_eq!((now.status, now.is_cancelled), (Status::Failed, false));
        // It is watched from there.
        shop.world.fleet.probe.held().insert("http://mine.test/".into(), 200);
        until("it works", async || {
            shop.clock.advance(Duration::from_secs(31));
            shop.get(id).await.status == Status::Deployed
        }).await;
    }

    async fn what_was_refused_before_anything_was_made_can_go(engine: Engine) {
        let bad = SHOP.replace("with: {path: beside}", "with: {path: bad}");
        let shop = Shop::start(engine, &[&bad]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Failed).await;
        let beside = shop.resource(id, "beside").await;
        assert!(!beside.is_touched() && beside.fence > 0, "{beside:?}");
        shop.world.fleet.executor.held().refuses.insert("beside".into());
        shop.destroy(id).await;
        shop.until(id, Status::Destroyed).await;
    }

    async fn without_its_executor_it_waits_and_what_was_never_made_goes(engine: Engine) {
        let mut shop = Shop::still(engine, &[SHOP]).await;
        shop.world.fleet.missing = vec![Executor::ConsulKv];
        shop.world.start_driver();
        let id = shop.create("shop@1.0.0", json!({})).await;
        until("it says what is missing", async || {
            shop.resource(id, "settings").await.reason == MISSING
        }).await;
        shop.destroy(id).await;
        shop.until(id, Status::Destroyed).await;
    }

    async fn without_its_executor_what_was_made_stays_and_nothing_spins(engine: Engine) {
        let mut shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({"size": 0})).await;
        shop.until(id, Status::Deployed).await;
        shop.world.stop_driver().await;
        shop.world.fleet.missing = vec![Executor::ConsulKv];
        shop.world.start_driver();
        shop.destroy(id).await;
        until("it says what is missing", async || {
            shop.resource(id, "settings").await.reason == MISSING
        }).await;
        let events = async || shop.world.changes_of(shop.resource(id, "settings").await.id).await.len();
        let before = events().await;
        a_while().await;
        assert_eq!(events().await, before);
    }

    async fn what_is_tried_is_known_without_expressions(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let (settings, id) = {
            shop.world.fleet.executor.held().slowness = 2;
            let id = shop.create("shop@1.0.0", json!({"color": "hidden-93be"})).await;
            (shop.until_resource(id, "settings", resource::Status::Applying).await, id)
        };
        assert_eq!(settings.tried.unwrap()["values"]["base"], "made/base");
        shop.until(id, Status::Deployed).await;
        let settings = shop.resource(id, "settings").await;
        assert_eq!((settings.tried, settings.applied.unwrap()["values"]["color"].clone()), (None, json!("hidden-93be")));
        // Parameters may become secret values: the log has their names.
        shop.world.db.settle_events().await.unwrap();
        let filter = store::event::Filter { subject: Some(id.to_string()), ..Default::default() };
        let mut read = shop.world.db.read().await.unwrap();
        let events = store::event::list(&mut read, Scope::All, &filter, 0, 1_000).await.unwrap();
        let text = serde_json::to_string(&events).unwrap();
        assert!(text.contains("\"color\"") && !text.contains("hidden-93be"), "{text}");
    }

    async fn the_first_template_s_default_counts(engine: Engine) {
        let one = |name: &str, size: i64| format!(
            "name: {name}\nversion: '1'\nparameters: {{size: {{type: integer, default: {size}}}}}\nresources:\n  \
             - {{name: {name}, executor: consul-kv, with: {{prefix: '{name}/', values: {{size: '{{{{ size }}}}'}}}}}}\n"
        );
        let shop = Shop::start(engine, &[&one("aa", 1), &one("bb", 2)]).await;
        let id = shop.create_with("bb@1", json!({}), |wish| wish.templates.push("aa@1".into())).await;
        shop.until(id, Status::Deployed).await;
        for name in ["aa", "bb"] {
            assert_eq!(shop.resource(id, name).await.applied.unwrap()["values"]["size"], 2, "{name}");
        }
    }

    async fn what_fails_while_it_is_doomed_goes_all_the_same(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let gate = Arc::new(Semaphore::new(0));
        shop.world.fleet.executor.held().gate = Some(gate.clone());
        shop.world.fleet.executor.held().refuses.insert("base".into());
        let id = shop.create("shop@1.0.0", json!({})).await;
        until("it is being made", async || shop.asked("apply").contains(&"base".to_owned())).await;
        shop.destroy(id).await;
        shop.world.fleet.executor.held().refuses.clear();
        gate.add_permits(1_000);
        shop.until(id, Status::Destroyed).await;
    }

    async fn what_is_made_while_it_is_doomed_goes_all_the_same(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({"size": 0})).await;
        shop.until(id, Status::Deployed).await;
        let executor = &shop.world.fleet.executor;
        let base = shop.resource(id, "base").await.id;
        executor.held().of.get_mut(&model::operation::Subject::from(base)).unwrap().insert("path".into(), json!("by hand"));
        shop.ask(id, async |tx, now| environment::observe(tx, now).await).await.unwrap();
        shop.until_resource(id, "base", resource::Status::Drifted).await;
        let gate = Arc::new(Semaphore::new(0));
        executor.held().gate = Some(gate.clone());
        shop.forget();
        shop.ask(id, async |tx, now| environment::repair(tx, now, None).await).await.unwrap();
        until("it is being mended", async || shop.asked("apply") == ["base"]).await;
        // While that is not answered, its environment goes, and what needs it can't.
        executor.held().gate = None;
        executor.held().refuses.insert("settings".into());
        shop.destroy(id).await;
        shop.until_resource(id, "settings", resource::Status::Failed).await;
        gate.add_permits(1);
        shop.until(id, Status::Failed).await;
        executor.held().refuses.clear();
        shop.ask(id, async |tx, now| environment::retry(tx, now).await).await.unwrap();
        shop.until(id, Status::Destroyed).await;
        assert!(executor.held().of.is_empty());
    }

    async fn who_asks_for_a_look_gets_one_that_began_afterwards(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({"size": 0})).await;
        shop.until(id, Status::Deployed).await;
        let gate = Arc::new(Semaphore::new(0));
        let executor = &shop.world.fleet.executor;
        executor.held().gate = Some(gate.clone());
        executor.held().looks = 0;
        let look = async || {
            shop.ask(id, async |tx, now| environment::observe(tx, now).await).await.unwrap();
        };
        look().await;
        until("all are looked at", async || executor.held().looks == 3).await;
        let base = shop.resource(id, "base").await.id;
        executor.held().of.get_mut(&model::operation::Subject::from(base)).unwrap().insert("path".into(), json!("by hand"));
        look().await;
        gate.add_permits(1_000);
        shop.until_resource(id, "base", resource::Status::Drifted).await;
    }
}
