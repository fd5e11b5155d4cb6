//! The placement worker with a simulated agent: placement, preemption, rescheduling.

use std::time::Duration;

use agent::simulated;
use model::Resources;
use model::deployment::{Reason, Status};
use model::event::Actor;
use store::deployment::Change;
use testing::{check_ledgers, on_both_engines, rows};

use crate::probe::until;
use crate::world::World;

const IMAGE: Option<&str> = Some("registry/web:1");

fn instant() -> simulated::Options {
    simulated::Options::default()
}

on_both_engines! {
    async fn deployment_runs_on_its_cluster(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let id = world.deploy(Some(&on), IMAGE, 3, 0).await;
        let running = world.until(id, Status::Running).await;
        assert_eq!((running.placed_on, running.endpoints), (Some(on.id), vec!["127.0.0.1:80".into()]));
        assert_eq!(world.free_cpu(on.id).await, 1);
        let mut changes = world.changes_of(id).await;
        // `starting` is only reported if starting takes longer than reporting.
        changes.retain(|change| change != "starting");
        assert_eq!(changes, ["created", "scheduled", "running"]);
        check_ledgers(&world.db).await;
    }

    async fn deployment_without_image_holds_its_capacity(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let id = world.deploy(Some(&on), None, 3, 0).await;
        world.until(id, Status::Running).await;
        assert_eq!(world.free_cpu(on.id).await, 1);
        world.delete(id).await;
        world.until_deleted(id).await;
        assert_eq!(world.free_cpu(on.id).await, 4);
    }

    async fn deleted_deployment_is_stopped_and_releases_its_capacity(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let id = world.deploy(Some(&on), IMAGE, 4, 0).await;
        let waiting = world.deploy(Some(&on), IMAGE, 2, 0).await;
        world.until(id, Status::Running).await;
        world.delete(id).await;
        world.until_deleted(id).await;
        world.until(waiting, Status::Running).await;
        assert_eq!(world.free_cpu(on.id).await, 2);
        assert!(world.changes_of(id).await.ends_with(&["deleting".into(), "stopped".into(), "deleted".into()]));
        check_ledgers(&world.db).await;
    }

    async fn deployment_that_does_not_fit_is_pending_with_a_reason(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let first = world.deploy(Some(&on), IMAGE, 3, 0).await;
        world.until(first, Status::Running).await;
        let (second, never) =
            (world.deploy(Some(&on), IMAGE, 2, 0).await, world.deploy(Some(&on), IMAGE, 5, 0).await);
        until("a reason", async || {
            let reason = async |id| world.get(id).await.unwrap().reason;
            matches!(reason(second).await, Reason::InsufficientCapacity { .. })
                && matches!(reason(never).await, Reason::ExceedsCapacity { .. })
        })
        .await;
        world.delete(first).await;
        world.until(second, Status::Running).await;
        assert_eq!(world.get(never).await.unwrap().status, Status::Queued);
    }

    async fn higher_priority_preempts_and_the_victim_is_rescheduled(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let (low, middle) =
            (world.deploy(Some(&on), IMAGE, 2, 0).await, world.deploy(Some(&on), IMAGE, 2, 5).await);
        world.until(low, Status::Running).await;
        world.until(middle, Status::Running).await;
        let high = world.deploy(Some(&on), IMAGE, 2, 10).await;
        world.until(high, Status::Running).await;
        let preempted = world.get(low).await.unwrap();
        assert_eq!((preempted.status, preempted.placed_on), (Status::Preempted, None));
        assert_eq!(world.get(middle).await.unwrap().status, Status::Running);
        world.delete(high).await;
        world.until(low, Status::Running).await;
        let changes = world.changes_of(low).await.join(" ");
        assert!(changes.contains("running preempted"), "{changes}");
        // The agent may be running before it reports `starting`.
        let back = changes.replace(" starting", "");
        assert!(back.ends_with("preempted stopped scheduled running"), "{changes}");
        check_ledgers(&world.db).await;
    }

    async fn equal_priority_is_not_preempted(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let first = world.deploy(Some(&on), IMAGE, 4, 5).await;
        world.until(first, Status::Running).await;
        let second = world.deploy(Some(&on), IMAGE, 1, 5).await;
        world.until_idle().await;
        assert_eq!(world.get(first).await.unwrap().status, Status::Running);
        assert_eq!(world.get(second).await.unwrap().status, Status::Queued);
    }

    async fn raised_priority_takes_effect_immediately(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let first = world.deploy(Some(&on), IMAGE, 4, 5).await;
        world.until(first, Status::Running).await;
        let second = world.deploy(Some(&on), IMAGE, 4, 0).await;
        let mut tx = world.db.begin(Actor::Anonymous).await.unwrap();
        let change = Change { priority: Some(6), ..Change::default() };
        store::deployment::set(&mut tx, second, &change).await.unwrap();
        tx.commit().await.unwrap();
        world.until(second, Status::Running).await;
        assert_eq!(world.get(first).await.unwrap().status, Status::Preempted);
    }

    async fn unpinned_deployment_is_placed_where_capacity_is_free(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let (small, large) = (world.cluster([("cpu", 1)]).await, world.cluster([("cpu", 8)]).await);
        let id = world.deploy(None, IMAGE, 4, 0).await;
        assert_eq!(world.until(id, Status::Running).await.placed_on, Some(large.id));
        let next = world.deploy(None, IMAGE, 4, 0).await;
        assert_eq!(world.until(next, Status::Running).await.placed_on, Some(large.id));
        let last = world.deploy(None, IMAGE, 1, 0).await;
        assert_eq!(world.until(last, Status::Running).await.placed_on, Some(small.id));
        assert_eq!(world.free_cpu(small.id).await + world.free_cpu(large.id).await, 0);
        check_ledgers(&world.db).await;
    }

    async fn deployment_that_fits_elsewhere_preempts_nothing(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let (one, other) = (world.cluster([("cpu", 4)]).await, world.cluster([("cpu", 4)]).await);
        let low = world.deploy(Some(&one), IMAGE, 4, 0).await;
        world.until(low, Status::Running).await;
        let high = world.deploy(None, IMAGE, 4, 10).await;
        assert_eq!(world.until(high, Status::Running).await.placed_on, Some(other.id));
        world.until_idle().await;
        assert!(!world.changes_of(low).await.contains(&"preempted".to_owned()));
    }

    async fn preempted_unpinned_deployment_moves_to_another_cluster(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let one = world.cluster([("cpu", 4)]).await;
        let roaming = world.deploy(None, IMAGE, 4, 0).await;
        world.until(roaming, Status::Running).await;
        let other = world.cluster([("cpu", 4)]).await;
        let high = world.deploy(Some(&one), IMAGE, 4, 10).await;
        world.until(high, Status::Running).await;
        let moved = world.until(roaming, Status::Running).await;
        assert_eq!(moved.placed_on, Some(other.id));
        check_ledgers(&world.db).await;
    }

    async fn pending_deployment_is_placed_on_a_grown_cluster(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 1)]).await;
        let waiting = world.deploy(Some(&on), IMAGE, 4, 0).await;
        world.until_idle().await;
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        store::cluster::set_total(&mut tx, on.id, &Resources::from([("cpu", 4)])).await.unwrap();
        tx.commit().await.unwrap();
        world.until(waiting, Status::Running).await;
    }

    async fn released_capacity_goes_to_a_pending_deployment(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let (on, all) = (world.cluster([("cpu", 4)]).await, Resources::from([("cpu", 4)]));
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        store::cluster::reserve(&mut tx, on.id, &all).await.unwrap();
        tx.commit().await.unwrap();
        let waiting = world.deploy(None, IMAGE, 4, 0).await;
        world.until_idle().await;
        assert_eq!(world.get(waiting).await.unwrap().status, Status::Queued);
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        store::cluster::release(&mut tx, on.id, &all).await.unwrap();
        tx.commit().await.unwrap();
        world.until(waiting, Status::Running).await;
    }

    async fn shared_cluster_serves_all_organizations(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let shared = rows::ready_cluster(&world.db, None, Resources::from([("cpu", 4)])).await;
        let other = rows::tenant(&world.db, "globex").await.organization_id;
        let mine = world.deploy(None, IMAGE, 2, 0).await;
        let new = rows::new_deployment(None, IMAGE, Resources::from([("cpu", 2)]), 0);
        let theirs = rows::deployment(&world.db, other, &new).await.id;
        assert_eq!(world.until(mine, Status::Running).await.placed_on, Some(shared.id));
        assert_eq!(world.until(theirs, Status::Running).await.placed_on, Some(shared.id));
    }

    async fn dedicated_cluster_serves_only_its_organization(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let other = rows::tenant(&world.db, "globex").await.organization_id;
        rows::ready_cluster(&world.db, Some(other), Resources::from([("cpu", 4)])).await;
        let mine = world.deploy(None, IMAGE, 1, 10).await;
        world.until_idle().await;
        assert_eq!(world.get(mine).await.unwrap().placed_on, None);
    }

    async fn deployment_waits_for_its_cluster_to_be_ready(engine: Engine) {
        let mut world = World::still(engine).await;
        let on = rows::cluster(&world.db, Some(world.owner), Resources::from([("cpu", 4)])).await;
        let id = world.deploy(Some(&on), IMAGE, 1, 0).await;
        world.start_driver();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(world.get(id).await.unwrap().placed_on, None);
        world.start_agent(instant()).await;
        world.until(id, Status::Running).await;
    }
}
