//! Expiry of instances: trials, denied owners, lost entitlements.

use std::sync::Arc;
use std::time::Duration;

use agent::simulated;
use model::InstanceId;
use model::event::Actor;
use model::instance::{Instance, Reason, Status, Suspension};
use store::quota::NewQuota;
use store::{Scope, denied_owner, deployment, instance, quota};
use testing::{Engine, TestClock, check_ledgers, on_both_engines};

use crate::fleet::dinosaur;
use crate::world::World;

const HOUR: Duration = Duration::from_hours(1);

async fn started(engine: Engine) -> (World, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    let mut world = World::still_with(engine, clock.clone()).await;
    world.start_driver();
    world.start_agent(simulated::Options::default()).await;
    world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
    (world, clock)
}

/// Advances the clock and wakes the workers.
async fn pass(world: &World, clock: &TestClock, time: Duration) {
    clock.advance(time);
    let mut tx = world.db.begin(Actor::Server).await.unwrap();
    store::resync::<Instance>(&mut tx).await.unwrap();
    instance::wake_owner(&mut tx, None, None).await.unwrap();
    tx.commit().await.unwrap();
}

async fn grant(world: &World, expires_at: Option<model::Time>) -> String {
    let new = NewQuota {
        holder: format!("organization/{}", world.owner),
        kind: None,
        instance_type: "standard".into(),
        billing_model: "standard".into(),
        limit: Some(10),
        expires_at,
    };
    let mut tx = world.db.begin(Actor::Server).await.unwrap();
    let granted = quota::create(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();
    granted.id
}

async fn revoke(world: &World, id: &str) {
    let mut tx = world.db.begin(Actor::Server).await.unwrap();
    quota::delete(&mut tx, id).await.unwrap();
    tx.commit().await.unwrap();
}

async fn running_image(world: &World, instance: &Instance) -> Option<String> {
    let mut read = world.db.read().await.unwrap();
    let id = instance.deployment_id.unwrap();
    deployment::get(&mut read, Scope::All, id).await.unwrap().spec.image
}

async fn ready(world: &World) -> InstanceId {
    let id = world.create_instance(&dinosaur("rex")).await;
    world.until_instance(id, Status::Ready).await;
    id
}

on_both_engines! {
    async fn expired_trial_is_deleted(engine: Engine) {
        let (world, clock) = started(engine).await;
        let mut new = dinosaur("rex");
        new.instance_type = "eval".into();
        new.lifespan = Some(48 * HOUR);
        let id = world.create_instance(&new).await;
        world.until_instance(id, Status::Ready).await;
        pass(&world, &clock, 47 * HOUR).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(world.instance(id).await.unwrap().status, Status::Ready);
        pass(&world, &clock, 2 * HOUR).await;
        world.until_instance_deleted(id).await;
        check_ledgers(&world.db).await;
    }

    async fn instances_of_a_denied_owner_are_deleted(engine: Engine) {
        let (world, _) = started(engine).await;
        let id = ready(&world).await;
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        denied_owner::create(&mut tx, "acme", "does not pay").await.unwrap();
        tx.commit().await.unwrap();
        world.until_instance_deleted(id).await;
        assert!(world.changes_of(id).await.contains(&"deprovision".to_owned()));
    }

    async fn denied_owners_file_is_enforced(engine: Engine) {
        let (world, clock) = started(engine).await;
        let id = ready(&world).await;
        world.fleet.rules_writer.change(|force| force.denied = Arc::new(["acme".to_owned()].into()));
        pass(&world, &clock, HOUR).await;
        world.until_instance_deleted(id).await;
    }

    async fn lost_entitlement_suspends_and_then_deletes_the_instance(engine: Engine) {
        let (world, clock) = started(engine).await;
        let granted = grant(&world, None).await;
        // Another user's grant keeps quota enforced when ours is revoked.
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        let other = NewQuota {
            holder: "user/other".into(),
            kind: None,
            instance_type: "standard".into(),
            billing_model: "standard".into(),
            limit: None,
            expires_at: None,
        };
        quota::create(&mut tx, &other).await.unwrap();
        tx.commit().await.unwrap();
        let id = ready(&world).await;
        revoke(&world, &granted).await;
        let suspended = world.until_instance(id, Status::Suspended).await;
        let end = suspended.expires_at.unwrap();
        assert!(end.since(world.db.now()) > 6 * 24 * HOUR, "{end}");
        let has_delete_at = matches!(suspended.reason, Reason::EntitlementExpired { delete_at: Some(at), .. } if at == end);
        assert!(has_delete_at, "{:?}", suspended.reason);
        assert_eq!(suspended.detail.rest, Some(Suspension::Entitlement));
        assert_eq!(running_image(&world, &suspended).await, None, "no container is running");
        check_ledgers(&world.db).await;

        // Restored in time: the instance resumes automatically.
        let granted = grant(&world, None).await;
        let back = world.until_instance(id, Status::Ready).await;
        assert_eq!(back.expires_at, None);
        assert!(running_image(&world, &back).await.is_some());

        // Lost again, and not restored in time.
        revoke(&world, &granted).await;
        world.until_instance(id, Status::Suspended).await;
        pass(&world, &clock, 6 * 24 * HOUR).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(world.instance(id).await.unwrap().status, Status::Suspended);
        pass(&world, &clock, 2 * 24 * HOUR).await;
        world.until_instance_deleted(id).await;
        check_ledgers(&world.db).await;
        let changes = world.changes_of(id).await;
        for change in ["entitlement_lost", "suspending", "suspended", "resuming", "deprovision"] {
            assert!(changes.iter().any(|other| other == change), "{change}: {changes:?}");
        }
    }

    async fn expired_grant_is_noticed(engine: Engine) {
        let (world, clock) = started(engine).await;
        grant(&world, Some(world.db.now() + 10 * HOUR)).await;
        let id = ready(&world).await;
        pass(&world, &clock, 11 * HOUR).await;
        world.until_instance(id, Status::Suspended).await;
    }

    async fn instance_suspended_by_an_administrator_is_not_resumed(engine: Engine) {
        let (world, clock) = started(engine).await;
        let id = ready(&world).await;
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        let mut now = instance::lock(&mut tx, Scope::All, id).await.unwrap();
        now.detail.rest = Some(Suspension::Asked);
        let reason = Reason::SuspensionRequested { by: None };
        instance::transition(&mut tx, &mut now, Status::Suspending, reason).await.unwrap();
        tx.commit().await.unwrap();
        world.until_instance(id, Status::Suspended).await;
        pass(&world, &clock, 24 * HOUR).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(world.instance(id).await.unwrap().status, Status::Suspended);
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        let mut now = instance::lock(&mut tx, Scope::All, id).await.unwrap();
        now.detail.rest = None;
        let reason = Reason::ResumeRequested { by: None };
        instance::transition(&mut tx, &mut now, Status::Resuming, reason).await.unwrap();
        tx.commit().await.unwrap();
        world.until_instance(id, Status::Ready).await;
    }

    async fn unplaced_instance_fails_after_an_hour_and_holds_no_capacity(engine: Engine) {
        let (world, clock) = started(engine).await;
        let mut new = dinosaur("rex");
        new.region = "nowhere".into();
        let id = world.create_instance(&new).await;
        world.until_reason(id, "DeploymentPending").await;
        pass(&world, &clock, 2 * HOUR).await;
        let failed = world.until_instance(id, Status::Failed).await;
        let Reason::DeadlineExceeded { after_seconds: 3600, last } = failed.reason else {
            panic!("{:?}", failed.reason)
        };
        assert!(matches!(*last, Reason::DeploymentPending { .. }), "{last:?}");
        assert_eq!(failed.deployment_id, None);
        check_ledgers(&world.db).await;
    }

    async fn instance_of_a_silent_agent_fails_and_recovers(engine: Engine) {
        let (mut world, clock) = started(engine).await;
        world.kill_agent().await;
        let id = world.create_instance(&dinosaur("rex")).await;
        world.until_instance(id, Status::Provisioning).await;
        pass(&world, &clock, 2 * HOUR).await;
        let failed = world.until_instance(id, Status::Failed).await;
        assert!(matches!(failed.reason, Reason::AgentNotResponding { .. }), "{failed:?}");
        world.start_agent(simulated::Options::default()).await;
        world.until_instance(id, Status::Ready).await;
    }

    async fn removed_kind_affects_only_its_instances(engine: Engine) {
        let (world, clock) = started(engine).await;
        let id = ready(&world).await;
        let mut odd = dinosaur("odd");
        odd.kind = "unicorn".into();
        let odd = world.create_instance(&odd).await;
        world.until_reason(odd, "KindNotFound").await;
        let other = world.create_instance(&dinosaur("other")).await;
        world.until_instance(other, Status::Ready).await;
        pass(&world, &clock, HOUR).await;
        world.end(odd).await;
        world.until_instance_deleted(odd).await;
        assert_eq!(world.instance(id).await.unwrap().status, Status::Ready);
    }

    async fn externally_deleted_objects_are_repaired(engine: Engine) {
        let (world, clock) = started(engine).await;
        let id = ready(&world).await;
        let host = world.instance(id).await.unwrap().host.unwrap();
        world.fleet.dns.state().clear();
        world.fleet.sso.state().clear();
        clock.advance(HOUR);
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        let key = model::work::Key::new(instance::WORKER, id);
        store::work::wake(&mut tx, model::work::Lane::Priority, key);
        tx.commit().await.unwrap();
        crate::probe::until("repaired", async || {
            world.fleet.dns.state().contains_key(&host) && world.fleet.sso.state().len() == 1
        })
        .await;
        world.until_reason(id, "Repaired").await;
    }

    async fn old_client_secret_is_rotated_and_redeployed(engine: Engine) {
        let (world, clock) = started(engine).await;
        let id = ready(&world).await;
        let of = |held: &Instance| held.deployment_id.unwrap();
        let before = world.instance(id).await.unwrap();
        clock.advance(31 * 24 * HOUR);
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        let key = model::work::Key::new(instance::WORKER, id);
        store::work::wake(&mut tx, model::work::Lane::Priority, key);
        tx.commit().await.unwrap();
        crate::probe::until("another secret", async || {
            world.fleet.sso.state().values().all(|secret| secret.ends_with('\''))
        })
        .await;
        crate::probe::until("the program has it", async || {
            let mut read = world.db.read().await.unwrap();
            let held = deployment::get(&mut read, Scope::All, of(&before)).await.unwrap();
            // The fake seal reverses texts.
            held.spec.sealed_env["OIDC_CLIENT_SECRET"].contains(": '")
        })
        .await;
    }

    async fn upgrade_runs_in_place(engine: Engine) {
        let (world, _clock) = started(engine).await;
        let id = ready(&world).await;
        let before = world.instance(id).await.unwrap();
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        let mut now = instance::lock(&mut tx, Scope::All, id).await.unwrap();
        now.detail.desired.service = "0.0.1".into();
        instance::save(&mut tx, &mut now, "updated").await.unwrap();
        tx.commit().await.unwrap();
        crate::probe::until("the other version runs", async || {
            let now = world.instance(id).await.unwrap();
            now.detail.actual.service == "0.0.1" && now.detail.upgrading.is_empty()
        })
        .await;
        let now = world.instance(id).await.unwrap();
        assert_eq!(now.status, Status::Ready, "{}", now.reason);
        assert_eq!((now.cluster_id, now.deployment_id), (before.cluster_id, before.deployment_id));
    }
}
