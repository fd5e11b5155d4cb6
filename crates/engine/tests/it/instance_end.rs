//! What ends by itself: trials, what belongs to denied owners, what nobody is entitled to any more.

use std::sync::Arc;
use std::time::Duration;

use agent::simulated;
use model::InstanceId;
use model::event::Actor;
use model::instance::{Instance, Reason, Rest, Status};
use store::quota::NewQuota;
use store::{Scope, denied_owner, deployment, instance, quota};
use testing::{Engine, TestClock, check_books, on_both_engines};

use crate::fleet::dinosaur;
use crate::world::World;

const HOUR: Duration = Duration::from_hours(1);

async fn lively(engine: Engine) -> (World, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    let mut world = World::still_with(engine, clock.clone()).await;
    world.start_driver();
    world.start_agent(simulated::Options::default()).await;
    world.cluster([("cpu", 4), ("ram", 8 << 30)]).await;
    (world, clock)
}

/// Lets time pass, and has it noticed at once.
async fn pass(world: &World, clock: &TestClock, time: Duration) {
    clock.advance(time);
    let mut tx = world.db.begin(Actor::Server).await.unwrap();
    store::resync::<Instance>(&mut tx).await.unwrap();
    instance::wake_all_of(&mut tx, None, None).await.unwrap();
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

async fn held_image(world: &World, instance: &Instance) -> Option<String> {
    let mut read = world.db.read().await.unwrap();
    let id = instance.deployment_id.unwrap();
    deployment::get(&mut read, Scope::All, id).await.unwrap().spec.image
}

async fn ready(world: &World) -> InstanceId {
    let id = world.ask_for(&dinosaur("rex")).await;
    world.until_instance(id, Status::Ready).await;
    id
}

on_both_engines! {
    async fn a_trial_ends_when_its_life_is_over(engine: Engine) {
        let (world, clock) = lively(engine).await;
        let mut new = dinosaur("rex");
        new.instance_type = "eval".into();
        new.lifespan = Some(48 * HOUR);
        let id = world.ask_for(&new).await;
        world.until_instance(id, Status::Ready).await;
        pass(&world, &clock, 47 * HOUR).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(world.instance(id).await.unwrap().status, Status::Ready);
        pass(&world, &clock, 2 * HOUR).await;
        world.until_instance_gone(id).await;
        check_books(&world.db).await;
    }

    async fn what_belongs_to_a_denied_owner_goes(engine: Engine) {
        let (world, _) = lively(engine).await;
        let id = ready(&world).await;
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        denied_owner::create(&mut tx, "acme", "does not pay").await.unwrap();
        tx.commit().await.unwrap();
        world.until_instance_gone(id).await;
        assert!(world.changes_of(id).await.contains(&"deprovision".to_owned()));
    }

    async fn the_list_of_denied_owners_is_gone_by_too(engine: Engine) {
        let (world, clock) = lively(engine).await;
        let id = ready(&world).await;
        world.fleet.rulebook.change(|force| force.denied = Arc::new(["acme".to_owned()].into()));
        pass(&world, &clock, HOUR).await;
        world.until_instance_gone(id).await;
    }

    async fn a_lost_entitlement_has_it_rest_for_the_grace_and_then_go(engine: Engine) {
        let (world, clock) = lively(engine).await;
        let granted = grant(&world, None).await;
        // Somebody else's grant keeps limits in force when ours is gone.
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
        let resting = world.until_instance(id, Status::Suspended).await;
        let end = resting.expires_at.unwrap();
        assert!(end.since(world.db.now()) > 6 * 24 * HOUR, "{end}");
        let says_when = matches!(resting.reason, Reason::EntitlementExpired { delete_at: Some(at), .. } if at == end);
        assert!(says_when, "{:?}", resting.reason);
        assert_eq!(resting.detail.rest, Some(Rest::Entitlement));
        assert_eq!(held_image(&world, &resting).await, None, "nothing runs");
        check_books(&world.db).await;

        // Back in time: it resumes by itself.
        let granted = grant(&world, None).await;
        let back = world.until_instance(id, Status::Ready).await;
        assert_eq!(back.expires_at, None);
        assert!(held_image(&world, &back).await.is_some());

        // Lost again, and not back in time.
        revoke(&world, &granted).await;
        world.until_instance(id, Status::Suspended).await;
        pass(&world, &clock, 6 * 24 * HOUR).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(world.instance(id).await.unwrap().status, Status::Suspended);
        pass(&world, &clock, 2 * 24 * HOUR).await;
        world.until_instance_gone(id).await;
        check_books(&world.db).await;
        let changes = world.changes_of(id).await;
        for change in ["entitlement_lost", "suspending", "suspended", "resuming", "deprovision"] {
            assert!(changes.iter().any(|other| other == change), "{change}: {changes:?}");
        }
    }

    async fn a_grant_that_ends_by_its_date_is_noticed(engine: Engine) {
        let (world, clock) = lively(engine).await;
        grant(&world, Some(world.db.now() + 10 * HOUR)).await;
        let id = ready(&world).await;
        pass(&world, &clock, 11 * HOUR).await;
        world.until_instance(id, Status::Suspended).await;
    }

    async fn what_an_administrator_put_to_rest_does_not_wake_by_itself(engine: Engine) {
        let (world, clock) = lively(engine).await;
        let id = ready(&world).await;
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        let mut now = instance::take(&mut tx, Scope::All, id).await.unwrap();
        now.detail.rest = Some(Rest::Asked);
        let reason = Reason::SuspensionRequested { by: None };
        instance::transition(&mut tx, &mut now, Status::Suspending, reason).await.unwrap();
        tx.commit().await.unwrap();
        world.until_instance(id, Status::Suspended).await;
        pass(&world, &clock, 24 * HOUR).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(world.instance(id).await.unwrap().status, Status::Suspended);
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        let mut now = instance::take(&mut tx, Scope::All, id).await.unwrap();
        now.detail.rest = None;
        let reason = Reason::ResumeRequested { by: None };
        instance::transition(&mut tx, &mut now, Status::Resuming, reason).await.unwrap();
        tx.commit().await.unwrap();
        world.until_instance(id, Status::Ready).await;
    }

    async fn one_that_finds_no_cluster_fails_after_an_hour_and_holds_nothing(engine: Engine) {
        let (world, clock) = lively(engine).await;
        let mut new = dinosaur("rex");
        new.region = "nowhere".into();
        let id = world.ask_for(&new).await;
        world.until_it_says(id, "DeploymentPending").await;
        pass(&world, &clock, 2 * HOUR).await;
        let failed = world.until_instance(id, Status::Failed).await;
        let Reason::DeadlineExceeded { after_seconds: 3600, last } = failed.reason else {
            panic!("{:?}", failed.reason)
        };
        assert!(matches!(*last, Reason::DeploymentPending { .. }), "{last:?}");
        assert_eq!(failed.deployment_id, None);
        check_books(&world.db).await;
    }

    async fn one_whose_agent_never_answers_fails_and_is_ready_when_it_does(engine: Engine) {
        let (mut world, clock) = lively(engine).await;
        world.kill_agent().await;
        let id = world.ask_for(&dinosaur("rex")).await;
        world.until_instance(id, Status::Provisioning).await;
        pass(&world, &clock, 2 * HOUR).await;
        let failed = world.until_instance(id, Status::Failed).await;
        assert!(matches!(failed.reason, Reason::AgentNotResponding { .. }), "{failed:?}");
        world.start_agent(simulated::Options::default()).await;
        world.until_instance(id, Status::Ready).await;
    }

    async fn the_catalog_may_lose_a_kind_and_nothing_else_suffers(engine: Engine) {
        let (world, clock) = lively(engine).await;
        let id = ready(&world).await;
        let mut odd = dinosaur("odd");
        odd.kind = "unicorn".into();
        let odd = world.ask_for(&odd).await;
        world.until_it_says(odd, "KindNotFound").await;
        let other = world.ask_for(&dinosaur("other")).await;
        world.until_instance(other, Status::Ready).await;
        pass(&world, &clock, HOUR).await;
        world.end(odd).await;
        world.until_instance_gone(odd).await;
        assert_eq!(world.instance(id).await.unwrap().status, Status::Ready);
    }

    async fn what_somebody_deleted_outside_is_mended(engine: Engine) {
        let (world, clock) = lively(engine).await;
        let id = ready(&world).await;
        let host = world.instance(id).await.unwrap().host.unwrap();
        world.fleet.dns.held().clear();
        world.fleet.sso.held().clear();
        clock.advance(HOUR);
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        let key = model::work::Key::new(instance::WORKER, id);
        store::work::wake(&mut tx, model::work::Lane::Priority, key);
        tx.commit().await.unwrap();
        crate::probe::until("mended", async || {
            world.fleet.dns.held().contains_key(&host) && world.fleet.sso.held().len() == 1
        })
        .await;
        world.until_it_says(id, "Repaired").await;
    }

    async fn an_old_secret_is_replaced_and_the_program_gets_the_new_one(engine: Engine) {
        let (world, clock) = lively(engine).await;
        let id = ready(&world).await;
        let of = |held: &Instance| held.deployment_id.unwrap();
        let before = world.instance(id).await.unwrap();
        clock.advance(31 * 24 * HOUR);
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        let key = model::work::Key::new(instance::WORKER, id);
        store::work::wake(&mut tx, model::work::Lane::Priority, key);
        tx.commit().await.unwrap();
        crate::probe::until("another secret", async || {
            world.fleet.sso.held().values().all(|secret| secret.ends_with('\''))
        })
        .await;
        crate::probe::until("the program has it", async || {
            let mut read = world.db.read().await.unwrap();
            let held = deployment::get(&mut read, Scope::All, of(&before)).await.unwrap();
            // The fake seal turns texts around.
            held.spec.sealed_env["OIDC_CLIENT_SECRET"].contains(": '")
        })
        .await;
    }

    async fn another_version_is_run_where_it_is(engine: Engine) {
        let (world, _clock) = lively(engine).await;
        let id = ready(&world).await;
        let before = world.instance(id).await.unwrap();
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        let mut now = instance::take(&mut tx, Scope::All, id).await.unwrap();
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
