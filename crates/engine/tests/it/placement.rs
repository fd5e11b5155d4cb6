//! The placement worker with a simulated agent: who runs where, who yields, who comes back.

use std::time::Duration;

use agent::simulated;
use model::Resources;
use model::deployment::{Reason, Status};
use model::event::Actor;
use store::deployment::Change;
use testing::{check_books, on_both_engines, rows};

use crate::probe::until;
use crate::world::World;

const IMAGE: Option<&str> = Some("registry/web:1");

fn instant() -> simulated::Options {
    simulated::Options::default()
}

on_both_engines! {
    async fn a_deployment_runs_on_its_cluster(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let id = world.deploy(Some(&on), IMAGE, 3, 0).await;
        let running = world.until(id, Status::Running).await;
        assert_eq!((running.placed_on, running.endpoints), (Some(on.id), vec!["127.0.0.1:80".into()]));
        assert_eq!(world.free_cpu(on.id).await, 1);
        let mut changes = world.changes_of(id).await;
        // That it starts is told only if it takes longer than telling it.
        changes.retain(|change| change != "starting");
        assert_eq!(changes, ["created", "scheduled", "running"]);
        check_books(&world.db).await;
    }

    async fn one_without_an_image_holds_its_capacity(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let id = world.deploy(Some(&on), None, 3, 0).await;
        world.until(id, Status::Running).await;
        assert_eq!(world.free_cpu(on.id).await, 1);
        world.delete(id).await;
        world.until_gone(id).await;
        assert_eq!(world.free_cpu(on.id).await, 4);
    }

    async fn a_deleted_deployment_is_stopped_and_its_capacity_is_free(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let id = world.deploy(Some(&on), IMAGE, 4, 0).await;
        let waiting = world.deploy(Some(&on), IMAGE, 2, 0).await;
        world.until(id, Status::Running).await;
        world.delete(id).await;
        world.until_gone(id).await;
        world.until(waiting, Status::Running).await;
        assert_eq!(world.free_cpu(on.id).await, 2);
        assert!(world.changes_of(id).await.ends_with(&["deleting".into(), "stopped".into(), "deleted".into()]));
        check_books(&world.db).await;
    }

    async fn one_that_does_not_fit_waits_and_says_why(engine: Engine) {
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

    async fn a_higher_priority_makes_a_lower_one_yield_and_it_comes_back(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let (low, middle) =
            (world.deploy(Some(&on), IMAGE, 2, 0).await, world.deploy(Some(&on), IMAGE, 2, 5).await);
        world.until(low, Status::Running).await;
        world.until(middle, Status::Running).await;
        let high = world.deploy(Some(&on), IMAGE, 2, 10).await;
        world.until(high, Status::Running).await;
        let yielded = world.get(low).await.unwrap();
        assert_eq!((yielded.status, yielded.placed_on), (Status::Preempted, None));
        assert_eq!(world.get(middle).await.unwrap().status, Status::Running);
        world.delete(high).await;
        world.until(low, Status::Running).await;
        let changes = world.changes_of(low).await.join(" ");
        assert!(changes.contains("running preempted"), "{changes}");
        // Its agent may be faster than it says that it starts.
        let back = changes.replace(" starting", "");
        assert!(back.ends_with("preempted stopped scheduled running"), "{changes}");
        check_books(&world.db).await;
    }

    async fn equal_priority_does_not_yield(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 4)]).await;
        let first = world.deploy(Some(&on), IMAGE, 4, 5).await;
        world.until(first, Status::Running).await;
        let second = world.deploy(Some(&on), IMAGE, 1, 5).await;
        world.until_at_rest().await;
        assert_eq!(world.get(first).await.unwrap().status, Status::Running);
        assert_eq!(world.get(second).await.unwrap().status, Status::Queued);
    }

    async fn a_raised_priority_counts_at_once(engine: Engine) {
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

    async fn an_unpinned_deployment_goes_where_there_is_room(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let (small, large) = (world.cluster([("cpu", 1)]).await, world.cluster([("cpu", 8)]).await);
        let id = world.deploy(None, IMAGE, 4, 0).await;
        assert_eq!(world.until(id, Status::Running).await.placed_on, Some(large.id));
        let next = world.deploy(None, IMAGE, 4, 0).await;
        assert_eq!(world.until(next, Status::Running).await.placed_on, Some(large.id));
        let last = world.deploy(None, IMAGE, 1, 0).await;
        assert_eq!(world.until(last, Status::Running).await.placed_on, Some(small.id));
        assert_eq!(world.free_cpu(small.id).await + world.free_cpu(large.id).await, 0);
        check_books(&world.db).await;
    }

    async fn nobody_yields_to_one_that_fits_elsewhere(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let (one, other) = (world.cluster([("cpu", 4)]).await, world.cluster([("cpu", 4)]).await);
        let low = world.deploy(Some(&one), IMAGE, 4, 0).await;
        world.until(low, Status::Running).await;
        let high = world.deploy(None, IMAGE, 4, 10).await;
        assert_eq!(world.until(high, Status::Running).await.placed_on, Some(other.id));
        world.until_at_rest().await;
        assert!(!world.changes_of(low).await.contains(&"preempted".to_owned()));
    }

    async fn a_preempted_unpinned_deployment_finds_another_cluster(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let one = world.cluster([("cpu", 4)]).await;
        let roaming = world.deploy(None, IMAGE, 4, 0).await;
        world.until(roaming, Status::Running).await;
        let other = world.cluster([("cpu", 4)]).await;
        let high = world.deploy(Some(&one), IMAGE, 4, 10).await;
        world.until(high, Status::Running).await;
        let moved = world.until(roaming, Status::Running).await;
        assert_eq!(moved.placed_on, Some(other.id));
        check_books(&world.db).await;
    }

    async fn a_cluster_that_grows_takes_who_waits(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let on = world.cluster([("cpu", 1)]).await;
        let waiting = world.deploy(Some(&on), IMAGE, 4, 0).await;
        world.until_at_rest().await;
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        store::cluster::set_total(&mut tx, on.id, &Resources::from([("cpu", 4)])).await.unwrap();
        tx.commit().await.unwrap();
        world.until(waiting, Status::Running).await;
    }

    async fn capacity_that_is_given_back_goes_to_who_waits(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let (on, all) = (world.cluster([("cpu", 4)]).await, Resources::from([("cpu", 4)]));
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        store::cluster::take(&mut tx, on.id, &all).await.unwrap();
        tx.commit().await.unwrap();
        let waiting = world.deploy(None, IMAGE, 4, 0).await;
        world.until_at_rest().await;
        assert_eq!(world.get(waiting).await.unwrap().status, Status::Queued);
        let mut tx = world.db.begin(Actor::Server).await.unwrap();
        store::cluster::give_back(&mut tx, on.id, &all).await.unwrap();
        tx.commit().await.unwrap();
        world.until(waiting, Status::Running).await;
    }

    async fn a_shared_cluster_serves_everybody(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let shared = rows::ready_cluster(&world.db, None, Resources::from([("cpu", 4)])).await;
        let other = rows::tenant(&world.db, "globex").await.organization_id;
        let mine = world.deploy(None, IMAGE, 2, 0).await;
        let new = rows::new_deployment(None, IMAGE, Resources::from([("cpu", 2)]), 0);
        let theirs = rows::deployment(&world.db, other, &new).await.id;
        assert_eq!(world.until(mine, Status::Running).await.placed_on, Some(shared.id));
        assert_eq!(world.until(theirs, Status::Running).await.placed_on, Some(shared.id));
    }

    async fn nobody_runs_on_anothers_cluster(engine: Engine) {
        let world = World::start(engine, instant()).await;
        let other = rows::tenant(&world.db, "globex").await.organization_id;
        rows::ready_cluster(&world.db, Some(other), Resources::from([("cpu", 4)])).await;
        let mine = world.deploy(None, IMAGE, 1, 10).await;
        world.until_at_rest().await;
        assert_eq!(world.get(mine).await.unwrap().placed_on, None);
    }

    async fn a_deployment_waits_for_its_cluster_to_be_ready(engine: Engine) {
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
