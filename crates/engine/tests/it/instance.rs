//! Lifecycle of instances, with external systems that become unavailable.

use agent::simulated;
use model::instance::{External, Reason, Status};
use port::Fault;
use store::{Scope, deployment, quota_usage};
use testing::{Engine, check_ledgers, on_both_engines};

use crate::fleet::dinosaur;
use crate::world::World;

async fn started(engine: Engine) -> World {
    World::start(engine, simulated::Options::default()).await
}

fn down() -> Fault {
    Fault::Unavailable("it is down".into())
}

fn unavailable(system: External) -> Reason {
    Reason::BackendUnavailable { system, message: down().to_string() }
}

on_both_engines! {
    async fn instance_is_created_and_deleted(engine: Engine) {
        let world = started(engine).await;
        let cluster = world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        let id = world.create_instance(&dinosaur("rex")).await;
        let ready = world.until_instance(id, Status::Ready).await;
        assert_eq!(ready.cluster_id, Some(cluster.id));
        assert_eq!(ready.detail.endpoints.len(), 1);
        let host = ready.host.clone().unwrap();
        assert!(world.fleet.dns.state().contains_key(&host), "{host}");
        assert_eq!(world.fleet.sso.state().len(), 1);
        check_ledgers(&world.db).await;
        let mut changes = world.changes_of(id).await;
        changes.retain(|change| change != "waiting");
        let way = ["accepted", "preparing", "signed_up", "provisioning", "ready"];
        assert_eq!(changes, way);

        world.end(id).await;
        world.until_instance_deleted(id).await;
        assert!(world.fleet.dns.state().is_empty());
        assert!(world.fleet.sso.state().is_empty());
        assert_eq!(world.free_cpu(cluster.id).await, 4);
        let mut read = world.db.read().await.unwrap();
        assert!(quota_usage::list(&mut read).await.unwrap().is_empty());
        let filter = deployment::Filter { with_instances: true, ..Default::default() };
        assert_eq!(deployment::count(&mut read, Scope::All, &filter).await.unwrap(), 0);
        drop(read);
        check_ledgers(&world.db).await;
    }

    async fn instance_without_capacity_waits_with_the_shortage(engine: Engine) {
        let world = started(engine).await;
        let id = world.create_instance(&dinosaur("rex")).await;
        world.until_reason(id, "DeploymentPending").await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        world.until_instance(id, Status::Ready).await;
    }

    async fn secrets_are_stored_encrypted(engine: Engine) {
        let world = started(engine).await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        let id = world.create_instance(&dinosaur("rex")).await;
        let ready = world.until_instance(id, Status::Ready).await;
        let mut read = world.db.read().await.unwrap();
        let held = deployment::get(&mut read, Scope::All, ready.deployment_id.unwrap()).await.unwrap();
        assert!(held.spec.sealed_env["OIDC_CLIENT_SECRET"].starts_with("sealed:deployment/"));
        assert!(!held.spec.env.contains_key("OIDC_CLIENT_SECRET"));
        world.db.number_events().await.unwrap();
        let all = store::event::Filter::default();
        let events = store::event::list(&mut read, Scope::All, &all, 0, 10_000).await.unwrap();
        let text = format!("{events:?}");
        assert!(!text.contains("secret 0") && !text.contains("sealed:"), "{text}");
    }

    async fn unavailable_external_system_is_retried_without_leaks(engine: Engine) {
        let world = started(engine).await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        world.fleet.dns.set_fault(Some(down()));
        let id = world.create_instance(&dinosaur("rex")).await;
        assert_eq!(world.until_reason(id, "BackendUnavailable").await, unavailable(External::Dns));
        assert_eq!(world.instance(id).await.unwrap().status, Status::Preparing);
        world.fleet.dns.set_fault(None);
        world.until_instance(id, Status::Ready).await;
        assert_eq!(world.fleet.sso.state().len(), 1);

        world.fleet.sso.set_fault(Some(down()));
        world.end(id).await;
        assert_eq!(world.until_reason(id, "BackendUnavailable").await, unavailable(External::Sso));
        world.fleet.sso.set_fault(None);
        world.until_instance_deleted(id).await;
        assert!(world.fleet.sso.state().is_empty() && world.fleet.dns.state().is_empty());
    }

    async fn instance_waits_while_encryption_is_unavailable(engine: Engine) {
        let world = started(engine).await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        world.fleet.seal.set_fault(Some(down()));
        let id = world.create_instance(&dinosaur("rex")).await;
        let reason = world.until_reason(id, "BackendUnavailable").await;
        assert_eq!(reason, unavailable(External::Secrets));
        world.fleet.seal.set_fault(None);
        world.until_instance(id, Status::Ready).await;
    }

    async fn refusal_fails_the_instance_with_a_reason(engine: Engine) {
        let world = started(engine).await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        world.fleet.sso.set_fault(Some(Fault::Refused("no more clients".into())));
        let id = world.create_instance(&dinosaur("rex")).await;
        let failed = world.until_instance(id, Status::Failed).await;
        let (system, message) = (External::Sso, "no more clients".into());
        assert_eq!(failed.reason, Reason::BackendRefused { system, message });
        world.fleet.sso.set_fault(None);
        world.end(id).await;
        world.until_instance_deleted(id).await;
    }

    async fn agent_failure_fails_the_instance_with_a_reason(engine: Engine) {
        let fails = simulated::Options { fail: Some("paddock-page".into()), ..Default::default() };
        let world = World::start(engine, fails).await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        let id = world.create_instance(&dinosaur("rex")).await;
        let failed = world.until_instance(id, Status::Failed).await;
        assert!(matches!(failed.reason, Reason::DeploymentFailed { .. }), "{failed:?}");
        world.end(id).await;
        world.until_instance_deleted(id).await;
        check_ledgers(&world.db).await;
    }

    async fn many_instances_become_ready_concurrently(engine: Engine) {
        let world = started(engine).await;
        world.cluster([("cpu", 40), ("ram", 80 << 30)]).await;
        let mut ids = Vec::new();
        for n in 0..60 {
            ids.push(world.create_instance(&dinosaur(&format!("rex-{n}"))).await);
        }
        for id in &ids {
            world.until_instance(*id, Status::Ready).await;
        }
        check_ledgers(&world.db).await;
        for id in &ids {
            world.end(*id).await;
        }
        for id in &ids {
            world.until_instance_deleted(*id).await;
        }
        assert!(world.instances().await.is_empty());
        assert!(world.fleet.dns.state().is_empty() && world.fleet.sso.state().is_empty());
        check_ledgers(&world.db).await;
    }
}
