//! Environments from asked-for to deployed, changed, failed, mended and gone, with real workers and an
//! executor in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::environment::{self, Change, Wish};
use model::environment::{Environment, OnDrift, Reason, Status};
use model::event::Actor;
use model::resource::{self, Resource};
use model::template::{Act, parse};
use model::{EnvironmentId, UserId};
use port::Fault;
use serde_json::{Value, json};
use store::template::{NewTemplate, publish};
use store::{Page, Scope, Tx};
use testing::{Engine, TestClock, on_both_engines};

use crate::probe::until;
use crate::world::{World, changes_of};

pub(crate) const SHOP: &str = "
name: shop
version: 1.0.0
parameters:
  size: {type: integer, default: 2}
  color: {type: string, default: red}
resources:
  - {name: base, executor: vault-secret, with: {path: base}}
  - name: settings
    executor: consul-kv
    with: {prefix: shop/, values: {base: '{{ base.path }}', color: '{{ color }}'}}
  - name: part
    executor: consul-kv
    count: '{{ size }}'
    with: {prefix: 'part/{{ index }}/', values: {}}
    depends_on: [settings]
  - {name: beside, executor: vault-secret, with: {path: beside}}
";

/// A world with environments.
pub(crate) struct Shop {
    pub(crate) world: World,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) user: UserId,
}

impl Shop {
    pub(crate) async fn still(engine: Engine, templates: &[&str]) -> Self {
        let clock = Arc::new(TestClock::default());
        let world = World::still_with(engine, clock.clone()).await;
        let mut tx = world.db.begin(Actor::Anonymous).await.unwrap();
        let scope = Scope::Organization(world.owner);
        let user = store::user::list(&mut tx, scope, &Page::first(1)).await.unwrap()[0].id;
        tx.commit().await.unwrap();
        let shop = Self { world, clock, user };
        for text in templates {
            shop.publish(text).await;
        }
        shop
    }

    pub(crate) async fn start(engine: Engine, templates: &[&str]) -> Self {
        let mut shop = Self::still(engine, templates).await;
        shop.world.start_driver();
        shop
    }

    pub(crate) async fn publish(&self, text: &str) {
        let template = parse("template.yaml", text).unwrap();
        let mut tx = self.begin().await;
        let new = NewTemplate {
            organization_id: Some(self.world.owner),
            template: &template,
            source: text,
            files: &BTreeMap::new(),
            hash: text,
        };
        publish(&mut tx, &new).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn begin(&self) -> Tx {
        self.world.db.begin(Actor::User(self.user)).await.unwrap()
    }

    pub(crate) async fn create(&self, template: &str, parameters: Value) -> EnvironmentId {
        self.create_with(template, parameters, |_| {}).await
    }

    pub(crate) async fn create_with(
        &self,
        template: &str,
        parameters: Value,
        change: impl FnOnce(&mut Wish),
    ) -> EnvironmentId {
        let mut wish = Wish {
            name: "mine".into(),
            description: String::new(),
            tags: BTreeMap::new(),
            templates: vec![template.into()],
            parameters: parameters.as_object().unwrap().clone(),
            on_drift: OnDrift::Report,
            destroy_at: None,
            adopt: BTreeMap::new(),
        };
        change(&mut wish);
        let mut tx = self.begin().await;
        let owner = self.world.owner;
        let made = environment::create(&mut tx, owner, self.user, &wish, None).await.unwrap();
        tx.commit().await.unwrap();
        made.id
    }

    /// Asks something of an environment.
    pub(crate) async fn ask<R>(
        &self,
        id: EnvironmentId,
        act: impl AsyncFnOnce(&mut Tx, &mut Environment) -> store::Result<R>,
    ) -> store::Result<R> {
        let mut tx = self.begin().await;
        let mut now = store::environment::take(&mut tx, Scope::All, id).await?;
        let answer = act(&mut tx, &mut now).await?;
        tx.commit().await?;
        Ok(answer)
    }

    pub(crate) async fn apply(&self, id: EnvironmentId, change: Change) -> store::Result<()> {
        self.ask(id, async |tx, now| environment::apply(tx, now, &change, None).await.map(drop))
            .await
    }

    pub(crate) async fn destroy(&self, id: EnvironmentId) {
        let reason = Reason::DeletionRequested { by: None };
        self.ask(id, async |tx, now| environment::destroy(tx, now, reason).await).await.unwrap();
    }

    pub(crate) async fn get(&self, id: EnvironmentId) -> Environment {
        let mut read = self.world.db.read().await.unwrap();
        store::environment::get(&mut read, Scope::All, id).await.unwrap()
    }

    pub(crate) async fn resources(&self, id: EnvironmentId) -> Vec<Resource> {
        store::resource::of(&mut self.world.db.read().await.unwrap(), id).await.unwrap()
    }

    pub(crate) async fn resource(&self, id: EnvironmentId, name: &str) -> Resource {
        let mut read = self.world.db.read().await.unwrap();
        store::resource::by_name(&mut read, Scope::All, id, name).await.unwrap()
    }

    pub(crate) async fn until(&self, id: EnvironmentId, status: Status) -> Environment {
        let what = format!("{status}");
        until(&what, async || {
            let now = self.get(id).await;
            let is_stuck = now.status == Status::Failed && status != Status::Failed;
            assert!(!is_stuck, "{}", now.reason);
            now.status == status
        })
        .await;
        self.get(id).await
    }

    pub(crate) async fn until_resource(
        &self,
        id: EnvironmentId,
        name: &str,
        status: resource::Status,
    ) -> Resource {
        until(name, async || self.resource(id, name).await.status == status).await;
        self.resource(id, name).await
    }

    pub(crate) fn asked(&self, call: &str) -> Vec<String> {
        self.world.fleet.executor.held().names(call)
    }

    pub(crate) fn forget(&self) {
        self.world.fleet.executor.held().asked.clear();
    }
}

pub(crate) fn set(parameters: &Value) -> Change {
    Change { parameters: parameters.as_object().unwrap().clone(), ..Change::default() }
}

fn place(list: &[String], name: &str) -> usize {
    list.iter().position(|one| one == name).unwrap_or_else(|| panic!("{name} in {list:?}"))
}

on_both_engines! {
    async fn it_is_made_in_order_and_only_what_is_touched_runs_again(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        let now = shop.until(id, Status::Deployed).await;
        assert_eq!((now.progress, now.reason), (100, Reason::AsExpected));
        let made = shop.asked("apply");
        assert_eq!(made.len(), 5, "{made:?}");
        assert!(place(&made, "base") < place(&made, "settings"), "{made:?}");
        assert!(place(&made, "settings") < place(&made, "part-1"), "{made:?}");
        // What one gives, the other is told.
        let settings = shop.resource(id, "settings").await;
        assert_eq!(settings.applied.unwrap()["values"]["base"], "made/base");
        let log = store::operation::log::list(
            &mut shop.world.db.read().await.unwrap(), settings.id, 0, 100,
        ).await.unwrap();
        assert!(log.iter().any(|line| line.line == "settings is made"), "{log:?}");

        shop.forget();
        shop.apply(id, set(&json!({"color": "blue"}))).await.unwrap();
        shop.until(id, Status::Deployed).await;
        assert_eq!(shop.asked("apply"), ["settings"]);
        assert_eq!(shop.get(id).await.generation, 2);

        shop.forget();
        shop.apply(id, set(&json!({"size": 1}))).await.unwrap();
        shop.until(id, Status::Deployed).await;
        assert_eq!((shop.asked("apply"), shop.asked("destroy")), (vec![], vec!["part-1".into()]));
        shop.apply(id, set(&json!({"size": 3}))).await.unwrap();
        shop.until(id, Status::Deployed).await;
        assert_eq!(shop.asked("apply").len(), 2);

        let mut changes = changes_of(&shop.world.db, id).await;
        changes.dedup();
        assert_eq!((changes[0].as_str(), changes.last().unwrap().as_str()), ("created", "deployed"));
    }

    async fn it_goes_in_reverse_and_nothing_is_left(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        shop.destroy(id).await;
        let now = shop.until(id, Status::Destroyed).await;
        assert!(now.destroyed_at.is_some());
        let gone = shop.asked("destroy");
        assert!(place(&gone, "part-0") < place(&gone, "settings"), "{gone:?}");
        assert!(place(&gone, "settings") < place(&gone, "base"), "{gone:?}");
        assert!(shop.world.fleet.executor.held().of.is_empty());
        assert!(shop.resources(id).await.is_empty());
        let mut read = shop.world.db.read().await.unwrap();
        for sql in ["SELECT COUNT(*) FROM operation_secret", "SELECT COUNT(*) FROM environment_template"] {
            assert_eq!(read.number(sql, &[]).await.unwrap(), 0, "{sql}");
        }
        drop(read);
        // Its name is free.
        let again = shop.create("shop@1.0.0", json!({"size": 0})).await;
        shop.until(again, Status::Deployed).await;
    }

    async fn what_failed_says_why_and_a_retry_goes_on_from_there(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        shop.world.fleet.executor.held().refuses.insert("settings".into());
        let id = shop.create("shop@1.0.0", json!({})).await;
        let now = shop.until(id, Status::Failed).await;
        let refused = resource::Reason::BackendRefused { message: "settings is refused".into() };
        let (resource, reason) = ("settings".to_owned(), Box::new(refused));
        assert_eq!(now.reason, Reason::ResourceFailed { resource, reason, others: 0 });
        let all = shop.resources(id).await;
        let by = |status| all.iter().filter(|one| one.status == status).count();
        let counts = [
            resource::Status::Applied, resource::Status::Failed, resource::Status::Pending,
        ].map(by);
        assert_eq!(counts, [2, 1, 2]);
        let part = shop.resource(id, "part-0").await;
        assert_eq!(
            part.reason, resource::Reason::DependencyFailed { resource: "settings".into() });

        shop.world.fleet.executor.held().refuses.clear();
        shop.forget();
        shop.ask(id, async |tx, now| environment::retry(tx, now).await).await.unwrap();
        shop.until(id, Status::Deployed).await;
        let made = shop.asked("apply");
        assert_eq!((made.len(), made[0].as_str()), (3, "settings"), "{made:?}");
        let retry = shop.ask(id, async |tx, now| environment::retry(tx, now).await).await;
        assert!(matches!(retry, Err(store::Error::Conflict(_))), "{retry:?}");
    }

    async fn what_can_not_be_destroyed_is_tried_again_and_nothing_is_made_instead(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        shop.world.fleet.executor.held().refuses.insert("settings".into());
        shop.destroy(id).await;
        let now = shop.until(id, Status::Failed).await;
        let Reason::ResourceFailed { resource, .. } = now.reason else { panic!("{}", now.reason) };
        assert_eq!(resource, "settings");
        shop.world.fleet.executor.held().refuses.clear();
        shop.forget();
        shop.ask(id, async |tx, now| environment::retry(tx, now).await).await.unwrap();
        shop.until(id, Status::Destroyed).await;
        assert_eq!(shop.asked("destroy"), ["settings", "base"]);
        assert_eq!(shop.asked("apply"), Vec::<String>::new());
    }

    async fn a_destruction_that_is_called_off_leaves_what_is_there(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        shop.world.fleet.executor.held().slowness = u32::MAX;
        shop.destroy(id).await;
        shop.until_resource(id, "part-0", resource::Status::Destroying).await;
        shop.ask(id, async |tx, now| environment::cancel(tx, now).await).await.unwrap();
        shop.until(id, Status::Failed).await;
        shop.world.fleet.executor.held().slowness = 0;
        shop.forget();
        shop.apply(id, Change::default()).await.unwrap();
        shop.until(id, Status::Deployed).await;
        // Whose destruction had begun may be half gone and is made anew; the others are left alone.
        for name in ["base", "settings"] {
            assert!(!shop.asked("destroy").contains(&name.to_owned()), "{:?}", shop.asked("destroy"));
        }
        assert_eq!(shop.resources(id).await.len(), 5);
        assert!(shop.resources(id).await.iter().all(|one| one.act == Act::Nothing));
    }

    async fn what_one_executor_made_is_not_left_to_another(engine: Engine) {
        let other = SHOP.replace("1.0.0", "1.1.0")
            .replace("{name: beside, executor: vault-secret, with: {path: beside}}",
                "{name: beside, executor: consul-kv, with: {prefix: beside/}}");
        let shop = Shop::start(engine, &[SHOP, &other]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        let change = Change { templates: Some(vec!["shop@1.1.0".into()]), ..Change::default() };
        let why = shop.apply(id, change).await.unwrap_err().to_string();
        assert!(why.contains("beside was made by the executor vault-secret"), "{why}");
        assert_eq!(shop.get(id).await.templates, ["shop@1.0.0"]);
    }

    async fn what_is_down_is_waited_for(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let down = Fault::Unavailable("Consul is away".into());
        shop.world.fleet.executor.set_fault(Some(down));
        let id = shop.create("shop@1.0.0", json!({"size": 1})).await;
        until("it says so", async || {
            let reason = shop.resource(id, "base").await.reason;
            matches!(reason, resource::Reason::BackendUnavailable { message, .. } if message == "Consul is away")
        }).await;
        shop.world.fleet.executor.set_fault(None);
        shop.until(id, Status::Deployed).await;
    }

    async fn cancelling_really_cancels(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        shop.world.fleet.executor.held().slowness = u32::MAX;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until_resource(id, "base", resource::Status::Applying).await;
        let busy = shop.apply(id, set(&json!({"size": 3}))).await;
        assert!(matches!(busy, Err(store::Error::Conflict(_))), "{busy:?}");
        shop.ask(id, async |tx, now| environment::cancel(tx, now).await).await.unwrap();
        let now = shop.until(id, Status::Failed).await;
        assert_eq!(now.reason, Reason::Cancelled { left: Some(5) });
        let told = shop.world.fleet.executor.held().cancelled.clone();
        assert_eq!(told.iter().filter(|name| *name == "base").count(), 2, "{told:?}");
        let base = shop.resource(id, "base").await;
        assert_eq!(
            (base.status, base.reason), (resource::Status::Failed, resource::Reason::Cancelled));
        shop.world.fleet.executor.held().slowness = 1;
        shop.ask(id, async |tx, now| environment::retry(tx, now).await).await.unwrap();
        shop.until(id, Status::Deployed).await;
    }

    async fn what_is_destroyed_while_it_is_made_is_stopped_first(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        shop.world.fleet.executor.held().slowness = u32::MAX;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until_resource(id, "base", resource::Status::Applying).await;
        shop.destroy(id).await;
        until("it is told to stop", async || {
            shop.world.fleet.executor.held().cancelled.len() > 1
        }).await;
        shop.world.fleet.executor.held().slowness = 0;
        shop.until(id, Status::Destroyed).await;
        // What never began is gone without anybody being asked.
        assert!(!shop.asked("destroy").contains(&"part-0".to_owned()));
    }

    async fn what_drifts_is_seen_and_mended_when_asked(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        let base = shop.resource(id, "base").await.id;
        let by_hand = |value: &str| {
            let mut held = shop.world.fleet.executor.held();
            held.of.get_mut(&model::operation::Subject::from(base)).unwrap().insert("path".into(), value.into());
        };
        by_hand("elsewhere");
        shop.ask(id, async |tx, now| environment::observe(tx, now).await).await.unwrap();
        let seen = shop.until_resource(id, "base", resource::Status::Drifted).await;
        assert_eq!(seen.drift[0].field, "path");
        assert_eq!((&seen.drift[0].made, &seen.drift[0].found),
            (&Some(json!("base")), &Some(json!("elsewhere"))));
        assert_eq!(shop.get(id).await.status, Status::Deployed);
        let mended = shop.ask(id, async |tx, now| environment::repair(tx, now, None).await).await;
        assert_eq!(mended.unwrap(), ["base"]);
        shop.until(id, Status::Deployed).await;
        let now = shop.resource(id, "base").await;
        assert_eq!((now.status, now.drift.len()), (resource::Status::Applied, 0));
        // On a schedule, too; and by policy it is mended without asking.
        shop.ask(id, async |tx, now| {
            now.on_drift = OnDrift::Repair;
            store::environment::save(tx, now, "updated").await
        }).await.unwrap();
        by_hand("again");
        shop.forget();
        shop.clock.advance(Duration::from_mins(11));
        until("it is mended", async || shop.asked("apply") == ["base"]).await;
        shop.until(id, Status::Deployed).await;
    }

    async fn what_exists_is_taken_over(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create_with("shop@1.0.0", json!({}), |wish| {
            wish.adopt.insert("base".into(), "old/base".into());
        }).await;
        shop.until(id, Status::Deployed).await;
        assert_eq!(shop.asked("adopt"), ["old/base"]);
        let base = shop.resource(id, "base").await;
        assert_eq!((base.adopt, base.act), (None, Act::Nothing));
        let resource = shop.resource(id, "base").await;
        let late = shop.ask(id, async |tx, now| environment::adopt(tx, now, resource, "x").await).await;
        assert!(matches!(late, Err(store::Error::Conflict(_))), "{late:?}");
    }

    async fn two_templates_make_one_and_know_each_other(engine: Engine) {
        let other = "
name: front
version: '2'
needs: [base]
resources:
  - {name: page, executor: consul-kv, with: {prefix: page/, values: {of: '{{ base.path }}'}}}
";
        let shop = Shop::start(engine, &[SHOP, other]).await;
        let id = shop.create_with("shop@1.0.0", json!({}), |wish| {
            wish.templates.push("front@2".into());
        }).await;
        shop.until(id, Status::Deployed).await;
        let page = shop.resource(id, "page").await;
        assert_eq!(page.applied.unwrap()["values"]["of"], "made/base");
        // Without what it needs, it is refused, and nothing has changed.
        let alone = Change { templates: Some(vec!["front@2".into()]), ..Change::default() };
        let refused = shop.apply(id, alone).await;
        assert!(matches!(refused, Err(store::Error::Invalid(_))), "{refused:?}");
        assert_eq!(shop.get(id).await.generation, 1);
    }
}
