//! Lifecycle of environments, with real workers and an in-memory executor.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::environment::{self, Change, NewEnvironmentRequest};
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
        change: impl FnOnce(&mut NewEnvironmentRequest),
    ) -> EnvironmentId {
        let mut request = NewEnvironmentRequest {
            name: "mine".into(),
            description: String::new(),
            tags: BTreeMap::new(),
            templates: vec![template.into()],
            parameters: parameters.as_object().unwrap().clone(),
            on_drift: OnDrift::Report,
            destroy_at: None,
            adopt: BTreeMap::new(),
        };
        change(&mut request);
        let mut tx = self.begin().await;
        let owner = self.world.owner;
        let made = environment::create(&mut tx, owner, self.user, &request, None).await.unwrap();
        tx.commit().await.unwrap();
        made.id
    }

    /// Runs a command on an environment.
    pub(crate) async fn ask<R>(
        &self,
        id: EnvironmentId,
        act: impl AsyncFnOnce(&mut Tx, &mut Environment) -> store::Result<R>,
    ) -> store::Result<R> {
        let mut tx = self.begin().await;
        let mut now = store::environment::lock(&mut tx, Scope::All, id).await?;
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
        store::resource::list_of_environment(&mut self.world.db.read().await.unwrap(), id)
            .await
            .unwrap()
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

    pub(crate) fn calls(&self, call: &str) -> Vec<String> {
        self.world.fleet.executor.state().names(call)
    }

    pub(crate) fn clear_calls(&self) {
        self.world.fleet.executor.state().calls.clear();
    }
}

pub(crate) fn set(parameters: &Value) -> Change {
    Change { parameters: parameters.as_object().unwrap().clone(), ..Change::default() }
}

fn place(list: &[String], name: &str) -> usize {
    list.iter().position(|one| one == name).unwrap_or_else(|| panic!("{name} in {list:?}"))
}

on_both_engines! {
    async fn resources_are_created_in_order_and_only_changed_ones_are_applied_again(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        let now = shop.until(id, Status::Deployed).await;
        assert_eq!((now.progress, now.reason), (100, Reason::AsExpected));
        let made = shop.calls("apply");
        assert_eq!(made.len(), 5, "{made:?}");
        assert!(place(&made, "base") < place(&made, "settings"), "{made:?}");
        assert!(place(&made, "settings") < place(&made, "part-1"), "{made:?}");
        // Outputs of a resource are inputs of its dependents.
        let settings = shop.resource(id, "settings").await;
        assert_eq!(settings.applied.unwrap()["values"]["base"], "made/base");
        let log = store::operation::log::list(
            &mut shop.world.db.read().await.unwrap(), settings.id, 0, 100,
        ).await.unwrap();
        assert!(log.iter().any(|line| line.line == "settings is made"), "{log:?}");

        shop.clear_calls();
        shop.apply(id, set(&json!({"color": "blue"}))).await.unwrap();
        shop.until(id, Status::Deployed).await;
        assert_eq!(shop.calls("apply"), ["settings"]);
        assert_eq!(shop.get(id).await.generation, 2);

        shop.clear_calls();
        shop.apply(id, set(&json!({"size": 1}))).await.unwrap();
        shop.until(id, Status::Deployed).await;
        assert_eq!((shop.calls("apply"), shop.calls("destroy")), (vec![], vec!["part-1".into()]));
        shop.apply(id, set(&json!({"size": 3}))).await.unwrap();
        shop.until(id, Status::Deployed).await;
        assert_eq!(shop.calls("apply").len(), 2);

        let mut changes = changes_of(&shop.world.db, id).await;
        changes.dedup();
        assert_eq!((changes[0].as_str(), changes.last().unwrap().as_str()), ("created", "deployed"));
    }

    async fn environment_is_destroyed_in_reverse_order_without_leftovers(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        shop.destroy(id).await;
        let now = shop.until(id, Status::Destroyed).await;
        assert!(now.destroyed_at.is_some());
        let gone = shop.calls("destroy");
        assert!(place(&gone, "part-0") < place(&gone, "settings"), "{gone:?}");
        assert!(place(&gone, "settings") < place(&gone, "base"), "{gone:?}");
        assert!(shop.world.fleet.executor.state().resources.is_empty());
        assert!(shop.resources(id).await.is_empty());
        let mut read = shop.world.db.read().await.unwrap();
        for sql in ["SELECT COUNT(*) FROM operation_secret", "SELECT COUNT(*) FROM environment_template"] {
            assert_eq!(read.number(sql, &[]).await.unwrap(), 0, "{sql}");
        }
        drop(read);
        // Its name can be used again.
        let again = shop.create("shop@1.0.0", json!({"size": 0})).await;
        shop.until(again, Status::Deployed).await;
    }

    async fn failed_environment_has_a_reason_and_retry_resumes(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        shop.world.fleet.executor.state().refuses.insert("settings".into());
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

        shop.world.fleet.executor.state().refuses.clear();
        shop.clear_calls();
        shop.ask(id, async |tx, now| environment::retry(tx, now).await).await.unwrap();
        shop.until(id, Status::Deployed).await;
        let made = shop.calls("apply");
        assert_eq!((made.len(), made[0].as_str()), (3, "settings"), "{made:?}");
        let retry = shop.ask(id, async |tx, now| environment::retry(tx, now).await).await;
        assert!(matches!(retry, Err(store::Error::Conflict(_))), "{retry:?}");
    }

    async fn failed_destruction_is_retried_and_creates_nothing(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        shop.world.fleet.executor.state().refuses.insert("settings".into());
        shop.destroy(id).await;
        let now = shop.until(id, Status::Failed).await;
        let Reason::ResourceFailed { resource, .. } = now.reason else { panic!("{}", now.reason) };
        assert_eq!(resource, "settings");
        shop.world.fleet.executor.state().refuses.clear();
        shop.clear_calls();
        shop.ask(id, async |tx, now| environment::retry(tx, now).await).await.unwrap();
        shop.until(id, Status::Destroyed).await;
        assert_eq!(shop.calls("destroy"), ["settings", "base"]);
        assert_eq!(shop.calls("apply"), Vec::<String>::new());
    }

    async fn revoked_destruction_keeps_existing_resources(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        shop.world.fleet.executor.state().running_polls = u32::MAX;
        shop.destroy(id).await;
        shop.until_resource(id, "part-0", resource::Status::Destroying).await;
        shop.ask(id, async |tx, now| environment::cancel(tx, now).await).await.unwrap();
        shop.until(id, Status::Failed).await;
        shop.world.fleet.executor.state().running_polls = 0;
        shop.clear_calls();
        shop.apply(id, Change::default()).await.unwrap();
        shop.until(id, Status::Deployed).await;
        // Resources whose destruction had begun are recreated; the others stay.
        for name in ["base", "settings"] {
            assert!(!shop.calls("destroy").contains(&name.to_owned()), "{:?}", shop.calls("destroy"));
        }
        assert_eq!(shop.resources(id).await.len(), 5);
        assert!(shop.resources(id).await.iter().all(|one| one.act == Act::Nothing));
    }

    async fn executor_of_a_created_resource_can_not_change(engine: Engine) {
        let other = SHOP.replace("1.0.0", "1.1.0")
            .replace("{name: beside, executor: vault-secret, with: {path: beside}}",
                "{name: beside, executor: consul-kv, with: {prefix: beside/}}");
        let shop = Shop::start(engine, &[SHOP, &other]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        let change = Change { templates: Some(vec!["shop@1.1.0".into()]), ..Change::default() };
        let why = shop.apply(id, change).await.unwrap_err().to_string();
        assert!(why.contains("beside was created by executor vault-secret"), "{why}");
        assert_eq!(shop.get(id).await.templates, ["shop@1.0.0"]);
    }

    async fn unavailable_executor_is_retried(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let down = Fault::Unavailable("Consul is away".into());
        shop.world.fleet.executor.set_fault(Some(down));
        let id = shop.create("shop@1.0.0", json!({"size": 1})).await;
        until("the reason is recorded", async || {
            let reason = shop.resource(id, "base").await.reason;
            matches!(reason, resource::Reason::BackendUnavailable { message, .. } if message == "Consul is away")
        }).await;
        shop.world.fleet.executor.set_fault(None);
        shop.until(id, Status::Deployed).await;
    }

    async fn cancel_stops_running_resources(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        shop.world.fleet.executor.state().running_polls = u32::MAX;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until_resource(id, "base", resource::Status::Applying).await;
        let busy = shop.apply(id, set(&json!({"size": 3}))).await;
        assert!(matches!(busy, Err(store::Error::Conflict(_))), "{busy:?}");
        shop.ask(id, async |tx, now| environment::cancel(tx, now).await).await.unwrap();
        let now = shop.until(id, Status::Failed).await;
        assert_eq!(now.reason, Reason::Cancelled { left: Some(5) });
        let told = shop.world.fleet.executor.state().cancelled.clone();
        assert_eq!(told.iter().filter(|name| *name == "base").count(), 2, "{told:?}");
        let base = shop.resource(id, "base").await;
        assert_eq!(
            (base.status, base.reason), (resource::Status::Failed, resource::Reason::Cancelled));
        shop.world.fleet.executor.state().running_polls = 1;
        shop.ask(id, async |tx, now| environment::retry(tx, now).await).await.unwrap();
        shop.until(id, Status::Deployed).await;
    }

    async fn destroy_cancels_a_running_deployment_first(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        shop.world.fleet.executor.state().running_polls = u32::MAX;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until_resource(id, "base", resource::Status::Applying).await;
        shop.destroy(id).await;
        until("it is cancelled", async || {
            shop.world.fleet.executor.state().cancelled.len() > 1
        }).await;
        shop.world.fleet.executor.state().running_polls = 0;
        shop.until(id, Status::Destroyed).await;
        // A resource that never started is deleted without a call.
        assert!(!shop.calls("destroy").contains(&"part-0".to_owned()));
    }

    async fn drift_is_detected_and_repaired_on_request(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create("shop@1.0.0", json!({})).await;
        shop.until(id, Status::Deployed).await;
        let base = shop.resource(id, "base").await.id;
        let by_hand = |value: &str| {
            let mut held = shop.world.fleet.executor.state();
            held.resources.get_mut(&model::operation::Subject::from(base)).unwrap().insert("path".into(), value.into());
        };
        by_hand("elsewhere");
        shop.ask(id, async |tx, now| environment::observe(tx, now).await).await.unwrap();
        let seen = shop.until_resource(id, "base", resource::Status::Drifted).await;
        assert_eq!(seen.drift[0].field, "path");
        assert_eq!((&seen.drift[0].made, &seen.drift[0].found),
            (&Some(json!("base")), &Some(json!("elsewhere"))));
        assert_eq!(shop.get(id).await.status, Status::Deployed);
        let repaired = shop.ask(id, async |tx, now| environment::repair(tx, now, None).await).await;
        assert_eq!(repaired.unwrap(), ["base"]);
        shop.until(id, Status::Deployed).await;
        let now = shop.resource(id, "base").await;
        assert_eq!((now.status, now.drift.len()), (resource::Status::Applied, 0));
        // Periodic detection finds drift too; the policy `repair` repairs it.
        shop.ask(id, async |tx, now| {
            now.on_drift = OnDrift::Repair;
            store::environment::save(tx, now, "updated").await
        }).await.unwrap();
        by_hand("again");
        shop.clear_calls();
        shop.clock.advance(Duration::from_mins(11));
        until("it is repaired", async || shop.calls("apply") == ["base"]).await;
        shop.until(id, Status::Deployed).await;
    }

    async fn existing_object_is_adopted(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let id = shop.create_with("shop@1.0.0", json!({}), |request| {
            request.adopt.insert("base".into(), "old/base".into());
        }).await;
        shop.until(id, Status::Deployed).await;
        assert_eq!(shop.calls("adopt"), ["old/base"]);
        let base = shop.resource(id, "base").await;
        assert_eq!((base.adopt, base.act), (None, Act::Nothing));
        let resource = shop.resource(id, "base").await;
        let late = shop.ask(id, async |tx, now| environment::adopt(tx, now, resource, "x").await).await;
        assert!(matches!(late, Err(store::Error::Conflict(_))), "{late:?}");
    }

    async fn resources_of_two_templates_can_reference_each_other(engine: Engine) {
        let other = "
name: front
version: '2'
needs: [base]
resources:
  - {name: page, executor: consul-kv, with: {prefix: page/, values: {of: '{{ base.path }}'}}}
";
        let shop = Shop::start(engine, &[SHOP, other]).await;
        let id = shop.create_with("shop@1.0.0", json!({}), |request| {
            request.templates.push("front@2".into());
        }).await;
        shop.until(id, Status::Deployed).await;
        let page = shop.resource(id, "page").await;
        assert_eq!(page.applied.unwrap()["values"]["of"], "made/base");
        // Without a required template, the change is refused and nothing changes.
        let alone = Change { templates: Some(vec!["front@2".into()]), ..Change::default() };
        let refused = shop.apply(id, alone).await;
        assert!(matches!(refused, Err(store::Error::Invalid(_))), "{refused:?}");
        assert_eq!(shop.get(id).await.generation, 1);
    }
}
