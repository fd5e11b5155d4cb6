//! Agents that are slow, fail, disconnect or restart: capacity stays correct, work continues.

use std::sync::atomic::Ordering;
use std::time::Duration;

use agent::simulated;
use model::deployment::Status;
use testing::{check_ledgers, on_both_engines};

use crate::world::World;

const IMAGE: Option<&str> = Some("registry/web:1");

fn instant() -> simulated::Options {
    simulated::Options::default()
}

fn slow() -> simulated::Options {
    let (start_delay, stop_delay) = (Duration::from_millis(300), Duration::from_millis(300));
    simulated::Options { start_delay, stop_delay, ..instant() }
}

on_both_engines! {
    async fn capacity_is_held_until_a_slow_agent_has_stopped_the_replica(engine: Engine) {
        let world = World::start(engine, slow()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let low = world.deploy(Some(&on), IMAGE, 4, 0).await;
        world.until(low, Status::Running).await;
        let high = world.deploy(Some(&on), IMAGE, 4, 10).await;
        let stopping = world.until(low, Status::Preempted).await;
        assert_eq!(stopping.placed_on, Some(on.id), "the replica has not stopped yet");
        assert_eq!(world.get(high).await.unwrap().placed_on, None);
        world.until(high, Status::Running).await;
        check_ledgers(&world.db).await;
    }

    async fn deployment_deleted_while_starting_is_removed(engine: Engine) {
        let world = World::start(engine, slow()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let id = world.deploy(Some(&on), IMAGE, 4, 0).await;
        world.until(id, Status::Starting).await;
        world.delete(id).await;
        world.until_deleted(id).await;
        assert_eq!(world.free_cpu(on.id).await, 4);
    }

    async fn deployment_preempted_while_starting_is_rescheduled(engine: Engine) {
        let world = World::start(engine, slow()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let low = world.deploy(Some(&on), IMAGE, 4, 0).await;
        world.until(low, Status::Starting).await;
        let high = world.deploy(Some(&on), IMAGE, 4, 10).await;
        world.until(high, Status::Running).await;
        world.delete(high).await;
        world.until(low, Status::Running).await;
        check_ledgers(&world.db).await;
    }

    async fn failed_deployment_has_a_reason_and_releases_its_capacity(engine: Engine) {
        let world = World::start(engine, simulated::Options { fail: Some("bad".into()), ..instant() }).await;
        let on = world.cluster([("cpu", 4)]).await;
        let bad = world.deploy(Some(&on), Some("registry/bad:1"), 4, 10).await;
        let good = world.deploy(Some(&on), IMAGE, 4, 0).await;
        let failed = world.until(bad, Status::Failed).await;
        assert!(failed.reason.to_string().contains("registry/bad:1"), "{}", failed.reason);
        world.until(good, Status::Running).await;
        world.until_idle().await;
        let failed = world.get(bad).await.unwrap();
        assert_eq!((failed.status, failed.placed_on), (Status::Failed, None));
        world.delete(bad).await;
        world.until_deleted(bad).await;
        check_ledgers(&world.db).await;
    }

    async fn completed_deployment_releases_its_capacity(engine: Engine) {
        let run_for = Duration::from_millis(50);
        let options = simulated::Options { complete: Some("job".into()), run_for, ..instant() };
        let world = World::start(engine, options).await;
        let on = world.cluster([("cpu", 4)]).await;
        let job = world.deploy(Some(&on), Some("registry/job:1"), 4, 0).await;
        let next = world.deploy(Some(&on), IMAGE, 4, 0).await;
        world.until(job, Status::Completed).await;
        world.until(next, Status::Running).await;
        check_ledgers(&world.db).await;
    }

    async fn rejected_reports_are_sent_again(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        world.link.refusals.store(3, Ordering::SeqCst);
        let id = world.deploy(Some(&on), IMAGE, 1, 0).await;
        world.until(id, Status::Running).await;
        let mut changes = world.changes_of(id).await;
        // `starting` is only reported if starting takes longer than reporting.
        changes.retain(|change| change != "starting");
        assert_eq!(changes, ["created", "scheduled", "running"]);
    }

    async fn disconnected_agent_catches_up(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let (goes, stays) =
            (world.deploy(Some(&on), IMAGE, 2, 0).await, world.deploy(Some(&on), IMAGE, 2, 0).await);
        world.until(goes, Status::Running).await;
        world.until(stays, Status::Running).await;
        world.link.is_cut.store(true, Ordering::SeqCst);
        world.delete(goes).await;
        let comes = world.deploy(Some(&on), IMAGE, 2, 0).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(world.get(goes).await.unwrap().status, Status::Deleting);
        assert_eq!(world.get(comes).await.unwrap().placed_on, None, "no capacity is free yet");
        world.link.is_cut.store(false, Ordering::SeqCst);
        world.until_deleted(goes).await;
        world.until(comes, Status::Running).await;
        assert_eq!(world.get(stays).await.unwrap().status, Status::Running);
    }

    async fn restarted_agent_adopts_replicas_and_finishes_pending_work(engine: Engine) {
        let mut world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 8)]).await;
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(world.deploy(Some(&on), IMAGE, 2, 0).await);
        }
        for id in &ids {
            world.until(*id, Status::Running).await;
        }
        world.kill_agent().await;
        world.delete(ids[0]).await;
        let high = world.deploy(Some(&on), IMAGE, 2, 10).await;
        let higher = world.deploy(Some(&on), IMAGE, 2, 20).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        check_ledgers(&world.db).await;
        world.start_agent(instant()).await;
        world.until_deleted(ids[0]).await;
        world.until(high, Status::Running).await;
        world.until(higher, Status::Running).await;
        world.until_idle().await;
        let all = world.all().await;
        let running = all.iter().filter(|one| one.status == Status::Running).count();
        assert_eq!((running, world.free_cpu(on.id).await), (4, 0));
        check_ledgers(&world.db).await;
    }

    async fn agent_that_dies_while_starting_replicas_is_replaced(engine: Engine) {
        let mut world = World::start(engine, slow()).await;
        let on = world.cluster([("cpu", 8)]).await;
        let id = world.deploy(Some(&on), IMAGE, 2, 0).await;
        world.until(id, Status::Starting).await;
        world.start_agent(slow()).await;
        world.until(id, Status::Running).await;
        world.delete(id).await;
        world.until(id, Status::Deleting).await;
        world.start_agent(slow()).await;
        world.until_deleted(id).await;
        assert_eq!(world.free_cpu(on.id).await, 8);
    }
}
