//! Instances from asked-for to gone, with foreign systems that come and go.

use agent::simulated;
use model::instance::{External, Reason, Status};
use port::Fault;
use store::{Scope, account, deployment};
use testing::{Engine, check_books, on_both_engines};

use crate::fleet::dinosaur;
use crate::world::World;

async fn lively(engine: Engine) -> World {
    World::start(engine, simulated::Options::default()).await
}

fn down() -> Fault {
    Fault::Unavailable("it is down".into())
}

fn waits_for(system: External) -> Reason {
    Reason::BackendUnavailable { system, message: down().to_string() }
}

on_both_engines! {
    async fn from_asked_for_to_gone(engine: Engine) {
        let world = lively(engine).await;
        let cluster = world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        let id = world.ask_for(&dinosaur("rex")).await;
        let ready = world.until_instance(id, Status::Ready).await;
        assert_eq!(ready.cluster_id, Some(cluster.id));
        assert_eq!(ready.detail.endpoints.len(), 1);
        let host = ready.host.clone().unwrap();
        assert!(world.fleet.dns.held().contains_key(&host), "{host}");
        assert_eq!(world.fleet.sso.held().len(), 1);
        check_books(&world.db).await;
        let mut changes = world.changes_of(id).await;
        changes.retain(|change| change != "waiting");
        let way = ["accepted", "preparing", "signed_up", "provisioning", "ready"];
        assert_eq!(changes, way);

        world.end(id).await;
        world.until_instance_gone(id).await;
        assert!(world.fleet.dns.held().is_empty());
        assert!(world.fleet.sso.held().is_empty());
        assert_eq!(world.free_cpu(cluster.id).await, 4);
        let mut read = world.db.read().await.unwrap();
        assert!(account::all(&mut read).await.unwrap().is_empty());
        let filter = deployment::Filter { with_instances: true, ..Default::default() };
        assert_eq!(deployment::count(&mut read, Scope::All, &filter).await.unwrap(), 0);
        drop(read);
        check_books(&world.db).await;
    }

    async fn waits_for_room_and_says_what_is_short(engine: Engine) {
        let world = lively(engine).await;
        let id = world.ask_for(&dinosaur("rex")).await;
        world.until_it_says(id, "DeploymentPending").await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        world.until_instance(id, Status::Ready).await;
    }

    async fn secrets_are_nowhere_but_where_they_are_needed(engine: Engine) {
        let world = lively(engine).await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        let id = world.ask_for(&dinosaur("rex")).await;
        let ready = world.until_instance(id, Status::Ready).await;
        let mut read = world.db.read().await.unwrap();
        let held = deployment::get(&mut read, Scope::All, ready.deployment_id.unwrap()).await.unwrap();
        assert!(held.spec.sealed_env["OIDC_CLIENT_SECRET"].starts_with("sealed for deployment/"));
        assert!(!held.spec.env.contains_key("OIDC_CLIENT_SECRET"));
        world.db.settle_events().await.unwrap();
        let all = store::event::Filter::default();
        let events = store::event::list(&mut read, Scope::All, &all, 0, 10_000).await.unwrap();
        let text = format!("{events:?}");
        assert!(!text.contains("secret 0") && !text.contains("sealed for"), "{text}");
    }

    async fn what_is_down_is_waited_for_and_nothing_is_lost(engine: Engine) {
        let world = lively(engine).await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        world.fleet.dns.set_fault(Some(down()));
        let id = world.ask_for(&dinosaur("rex")).await;
        assert_eq!(world.until_it_says(id, "BackendUnavailable").await, waits_for(External::Dns));
        assert_eq!(world.instance(id).await.unwrap().status, Status::Preparing);
        world.fleet.dns.set_fault(None);
        world.until_instance(id, Status::Ready).await;
        assert_eq!(world.fleet.sso.held().len(), 1);

        world.fleet.sso.set_fault(Some(down()));
        world.end(id).await;
        assert_eq!(world.until_it_says(id, "BackendUnavailable").await, waits_for(External::Sso));
        world.fleet.sso.set_fault(None);
        world.until_instance_gone(id).await;
        assert!(world.fleet.sso.held().is_empty() && world.fleet.dns.held().is_empty());
    }

    async fn what_can_not_be_sealed_waits(engine: Engine) {
        let world = lively(engine).await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        world.fleet.seal.set_fault(Some(down()));
        let id = world.ask_for(&dinosaur("rex")).await;
        let reason = world.until_it_says(id, "BackendUnavailable").await;
        assert_eq!(reason, waits_for(External::Secrets));
        world.fleet.seal.set_fault(None);
        world.until_instance(id, Status::Ready).await;
    }

    async fn a_refusal_fails_it_with_the_reason(engine: Engine) {
        let world = lively(engine).await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        world.fleet.sso.set_fault(Some(Fault::Refused("no more clients".into())));
        let id = world.ask_for(&dinosaur("rex")).await;
        let failed = world.until_instance(id, Status::Failed).await;
        let (system, message) = (External::Sso, "no more clients".into());
        assert_eq!(failed.reason, Reason::BackendRefused { system, message });
        world.fleet.sso.set_fault(None);
        world.end(id).await;
        world.until_instance_gone(id).await;
    }

    async fn an_agent_that_can_not_run_it_fails_it_with_the_reason(engine: Engine) {
        let fails = simulated::Options { fail: Some("busybox".into()), ..Default::default() };
        let world = World::start(engine, fails).await;
        world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
        let id = world.ask_for(&dinosaur("rex")).await;
        let failed = world.until_instance(id, Status::Failed).await;
        assert!(matches!(failed.reason, Reason::DeploymentFailed { .. }), "{failed:?}");
        world.end(id).await;
        world.until_instance_gone(id).await;
        check_books(&world.db).await;
    }

    async fn many_at_once(engine: Engine) {
        let world = lively(engine).await;
        world.cluster([("cpu", 40), ("ram", 80 << 30)]).await;
        let mut ids = Vec::new();
        for n in 0..60 {
            ids.push(world.ask_for(&dinosaur(&format!("rex-{n}"))).await);
        }
        for id in &ids {
            world.until_instance(*id, Status::Ready).await;
        }
        check_books(&world.db).await;
        for id in &ids {
            world.end(*id).await;
        }
        for id in &ids {
            world.until_instance_gone(*id).await;
        }
        assert!(world.instances().await.is_empty());
        assert!(world.fleet.dns.held().is_empty() && world.fleet.sso.held().is_empty());
        check_books(&world.db).await;
    }
}
