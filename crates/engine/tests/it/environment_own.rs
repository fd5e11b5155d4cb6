//! Environments with Paddock's own executors: deployments, instances and commands.

use std::time::Duration;

use agent::simulated;
use engine::environment;
use model::environment::{Reason, Status};
use model::resource::{
    self,
    Reason::{DeploymentFailed, InstanceFailed},
};
use port::Fault;
use serde_json::json;
use store::Scope;
use store::deployment::Change;
use testing::on_both_engines;

use crate::environment::{Shop, set};
use crate::probe::until;

const WEB: &str = "
name: web
version: '1'
resources:
  - {name: web, executor: deployment, with: {image: 'test/web:1', cpu: 1, ram: 64Mi, priority: 3}}
";

/// A user with a cluster on which everything runs, and an environment of one deployment.
async fn with_web(engine: testing::Engine) -> (Shop, model::EnvironmentId, model::DeploymentId) {
    let mut shop = Shop::start(engine, &[WEB]).await;
    shop.world.start_agent(simulated::Options::default()).await;
    shop.world.cluster([("cpu", 8), ("ram", 8 << 30)]).await;
    let id = shop.create("web@1", json!({})).await;
    shop.until(id, Status::Deployed).await;
    let web = shop.resource(id, "web").await.link.unwrap().id.parse().unwrap();
    (shop, id, web)
}

/// The resource that failed, and why.
fn failed_resource(reason: Reason) -> (String, resource::Reason) {
    let Reason::ResourceFailed { resource, reason, .. } = reason else { panic!("{reason}") };
    (resource, *reason)
}

on_both_engines! {
    async fn deployments_instances_and_commands_are_created_and_destroyed(engine: Engine) {
        let own = "
name: own
version: '1'
parameters: {replicas: {type: integer, default: 1}}
resources:
  - {name: web, executor: deployment, with: {image: 'test/web:1', cpu: 1, ram: 64Mi, ports: [80], replicas: '{{ replicas }}'}}
actions:
  - {name: migrate, after: [web], app: {url: 'test/job:1', command: [up]}}
";
        let mut shop = Shop::still(engine, &[own]).await;
        shop.world.start_driver();
        shop.world.start_agent(simulated::Options {
            complete: Some("job".into()),
            ..Default::default()
        }).await;
        let cluster = shop.world.cluster([("cpu", 8), ("ram", 1 << 30)]).await;
        let id = shop.create("own@1", json!({})).await;
        shop.until(id, Status::Deployed).await;
        let web = shop.resource(id, "web").await;
        assert_eq!(web.outputs["endpoint"], "127.0.0.1:80");
        let link = web.link.unwrap();
        shop.apply(id, set(&json!({"replicas": 2}))).await.unwrap();
        shop.until(id, Status::Deployed).await;
        let again = shop.resource(id, "web").await;
        assert_eq!(again.link.unwrap(), link, "the deployment is updated in place");
        assert_eq!(shop.world.all().await.len(), 2);
        // Deleted manually: the drift is detected, and repair recreates the deployment.
        shop.world.delete(link.id.parse().unwrap()).await;
        until("it is deleted", async || shop.world.all().await.len() == 1).await;
        shop.ask(id, async |tx, now| environment::observe(tx, now).await).await.unwrap();
        shop.until_resource(id, "web", resource::Status::Drifted).await;
        shop.ask(id, async |tx, now| environment::repair(tx, now, None).await).await.unwrap();
        shop.until(id, Status::Deployed).await;
        shop.destroy(id).await;
        shop.until(id, Status::Destroyed).await;
        assert!(shop.world.all().await.is_empty());
        assert_eq!(shop.world.free_cpu(cluster.id).await, 8);
    }

    async fn retry_recreates_failed_objects(engine: Engine) {
        let own = "
name: own
version: '1'
resources:
  - {name: web, executor: deployment, with: {image: 'test/web:1', cpu: 1, ram: 64Mi}}
  - {name: rex, executor: service, depends_on: [web], with: {kind: dinosaur}}
actions:
  - {name: migrate, after: [rex], app: {url: 'test/job:1', command: [up]}}
";
        let mut shop = Shop::start(engine, &[own]).await;
        shop.world.cluster([("cpu", 8), ("ram", 8 << 30)]).await;
        let agent = |fail: Option<&str>| simulated::Options {
            complete: Some("job".into()),
            fail: fail.map(str::to_owned),
            ..Default::default()
        };
        let retry = async |shop: &Shop, id| {
            shop.ask(id, async |tx, now| environment::retry(tx, now).await).await.unwrap();
        };
        shop.world.start_agent(agent(Some("test/"))).await;
        let id = shop.create("own@1", json!({})).await;
        let failed = shop.until(id, Status::Failed).await;
        let failed = failed_resource(failed.reason);
        assert!(matches!(&failed, (name, DeploymentFailed { .. }) if name == "web"), "{failed:?}");
        // The cause is not fixed yet: it fails once more, without a loop.
        let first = shop.resource(id, "web").await.link;
        retry(&shop, id).await;
        until("it has failed again", async || {
            let web = shop.resource(id, "web").await;
            web.status == resource::Status::Failed && web.link != first
        }).await;
        shop.until(id, Status::Failed).await;

        shop.world.start_agent(agent(Some("test/job"))).await;
        shop.world.fleet.sso.set_fault(Some(Fault::Refused("no more clients".into())));
        retry(&shop, id).await;
        until("the service fails", async || {
            shop.resource(id, "rex").await.status == resource::Status::Failed
        }).await;
        let failed = failed_resource(shop.until(id, Status::Failed).await.reason);
        assert!(matches!(&failed, (name, InstanceFailed { .. }) if name == "rex"), "{failed:?}");
        shop.world.fleet.sso.set_fault(None);
        retry(&shop, id).await;
        until("the program fails", async || {
            shop.resource(id, "migrate").await.status == resource::Status::Failed
        }).await;
        let failed = shop.until(id, Status::Failed).await;
        let failed = failed_resource(failed.reason);
        assert!(matches!(&failed, (name, DeploymentFailed { .. }) if name == "migrate"), "{failed:?}");

        shop.world.start_agent(agent(None)).await;
        retry(&shop, id).await;
        shop.until(id, Status::Deployed).await;
        shop.destroy(id).await;
        shop.until(id, Status::Destroyed).await;
        assert!(shop.world.all().await.is_empty());
    }

    async fn changed_deployment_fields_are_repaired(engine: Engine) {
        let (shop, id, web) = with_web(engine).await;
        let mut tx = shop.begin().await;
        let change = Change { priority: Some(9), ..Change::default() };
        store::deployment::set(&mut tx, web, &change).await.unwrap();
        tx.commit().await.unwrap();
        shop.ask(id, async |tx, now| environment::observe(tx, now).await).await.unwrap();
        let seen = shop.until_resource(id, "web", resource::Status::Drifted).await;
        assert_eq!(seen.drift[0].field, "priority");
        shop.ask(id, async |tx, now| environment::repair(tx, now, None).await).await.unwrap();
        shop.until(id, Status::Deployed).await;
        let now = store::deployment::get(&mut shop.world.db.read().await.unwrap(), Scope::All, web).await;
        assert_eq!(now.unwrap().priority, 3);
    }

    async fn object_of_another_resource_can_not_be_adopted(engine: Engine) {
        let (shop, id, web) = with_web(engine).await;
        let other = shop.create_with("web@1", json!({}), |request| {
            request.name = "other".into();
            request.adopt.insert("web".into(), web.to_string());
        }).await;
        let failed = shop.until(other, Status::Failed).await;
        let (_, reason) = failed_resource(failed.reason);
        let resource::Reason::BackendRefused { message } = reason else { panic!("{reason}") };
        assert!(message.ends_with("already belongs to resource web"), "{message}");
        shop.destroy(other).await;
        shop.until(other, Status::Destroyed).await;
        shop.ask(id, async |tx, now| environment::observe(tx, now).await).await.unwrap();
        until("it was observed", async || shop.resource(id, "web").await.observed_at.is_some()).await;
        assert_eq!(shop.resource(id, "web").await.status, resource::Status::Applied);
    }

    async fn adopted_deployment_gets_the_configured_image(engine: Engine) {
        let (shop, _, _) = with_web(engine).await;
        let mine = shop.world.deploy(None, Some("test/old:1"), 1, 0).await;
        let other = shop.create_with("web@1", json!({}), |request| {
            request.name = "other".into();
            request.adopt.insert("web".into(), mine.to_string());
        }).await;
        shop.until(other, Status::Deployed).await;
        let link = shop.resource(other, "web").await.link.unwrap().id;
        assert_ne!(link, mine.to_string());
        let all = shop.world.all().await;
        assert!(all.iter().all(|one| one.spec.image.as_deref() == Some("test/web:1")), "{all:?}");
        assert_eq!(all.len(), 2);
    }

    async fn object_of_an_outdated_spec_is_replaced(engine: Engine) {
        let next = WEB.replace("version: '1'", "version: '2'").replace("web:1", "web:2");
        let mut shop = Shop::start(engine, &[WEB, &next]).await;
        let slow = Duration::from_mins(10);
        let slow = simulated::Options { start_delay: slow, ..Default::default() };
        shop.world.start_agent(slow).await;
        shop.world.cluster([("cpu", 8), ("ram", 8 << 30)]).await;
        let id = shop.create("web@1", json!({})).await;
        until("it is requested", async || shop.resource(id, "web").await.link.is_some()).await;
        shop.ask(id, async |tx, now| environment::cancel(tx, now).await).await.unwrap();
        shop.until(id, Status::Failed).await;
        shop.world.start_agent(simulated::Options::default()).await;
        let change = environment::Change {
            templates: Some(vec!["web@2".into()]),
            ..environment::Change::default()
        };
        shop.apply(id, change).await.unwrap();
        shop.until(id, Status::Deployed).await;
        let all = shop.world.all().await;
        let images: Vec<_> = all.iter().map(|one| one.spec.image.as_deref()).collect();
        assert_eq!(images, [Some("test/web:2")]);
    }

    async fn http_call_is_cancelled_and_destroyed_by_its_executor(engine: Engine) {
        let hook = "
name: hook
version: '1'
actions:
  - {name: tell, app: {url: 'https://example.test/hook'}}
";
        let shop = Shop::start(engine, &[hook]).await;
        shop.world.fleet.executor.state().running_polls = u32::MAX;
        let id = shop.create("hook@1", json!({})).await;
        shop.until_resource(id, "tell", resource::Status::Applying).await;
        until("it is created", async || !shop.calls("apply").is_empty()).await;
        shop.ask(id, async |tx, now| environment::cancel(tx, now).await).await.unwrap();
        let failed = shop.until(id, Status::Failed).await;
        assert_eq!(failed.reason, Reason::Cancelled { left: Some(1) });
        // The call counts as stopped when it reports that, not when it was cancelled.
        assert_eq!(shop.world.fleet.executor.state().cancelled, ["tell", "tell"]);
        shop.world.fleet.executor.state().running_polls = 1;
        shop.destroy(id).await;
        shop.until(id, Status::Destroyed).await;
        assert_eq!(shop.calls("destroy"), ["tell", "tell"]);
    }
}
