//! The work queue: wake-ups, lanes, claims, timers, failures.

use std::time::Duration;

use model::Time;
use model::event::Actor;
use model::work::{Key, Lane};
use store::work::Claim;
use store::{Db, work};
use testing::on_both_engines;

use crate::support::{database, database_with_clock};

pub(crate) const LEASE: Duration = Duration::from_secs(30);

pub(crate) fn key(name: &str) -> Key {
    Key::new("probe", name)
}

pub(crate) async fn wake(db: &Db, lane: Lane, name: &str) {
    wake_at(db, lane, name, db.now()).await;
}

async fn wake_at(db: &Db, lane: Lane, name: &str, at: Time) {
    let mut tx = db.begin(Actor::Server).await.unwrap();
    work::wake_at(&mut tx, lane, key(name), at);
    tx.commit().await.unwrap();
}

pub(crate) async fn claim(db: &Db, lane: Lane, limit: i64) -> Vec<Claim> {
    let mut tx = db.begin(Actor::Server).await.unwrap();
    let claims = work::claim(&mut tx, lane, limit, LEASE).await.unwrap();
    tx.commit().await.unwrap();
    claims
}

pub(crate) async fn claim_one(db: &Db) -> Claim {
    let claims = claim(db, Lane::Background, 9).await;
    assert_eq!(claims.len(), 1, "{claims:?}");
    claims.into_iter().next().unwrap()
}

pub(crate) async fn finish(db: &Db, claim: &Claim) {
    let mut tx = db.begin(Actor::Server).await.unwrap();
    work::finish(&mut tx, claim).await.unwrap();
    tx.commit().await.unwrap();
}

pub(crate) async fn postpone(db: &Db, claim: &Claim, at: Time) {
    let mut tx = db.begin(Actor::Server).await.unwrap();
    work::postpone(&mut tx, claim, at).await.unwrap();
    tx.commit().await.unwrap();
}

pub(crate) async fn fail(db: &Db, claim: &Claim, at: Time) {
    let mut tx = db.begin(Actor::Server).await.unwrap();
    work::fail(&mut tx, claim, at, "it does not work").await.unwrap();
    tx.commit().await.unwrap();
}

pub(crate) async fn renew(db: &Db, claim: &Claim) -> bool {
    let mut tx = db.begin(Actor::Server).await.unwrap();
    let renewed = work::renew(&mut tx, claim, LEASE).await.unwrap();
    tx.commit().await.unwrap();
    renewed
}

pub(crate) async fn depth(db: &Db) -> (i64, i64) {
    work::depth(&mut db.read().await.unwrap()).await.unwrap()
}

pub(crate) async fn next_due(db: &Db) -> Option<Time> {
    work::next_due(&mut db.read().await.unwrap()).await.unwrap()
}

fn names(claims: &[Claim]) -> Vec<&str> {
    let mut names: Vec<_> = claims.iter().map(|claim| claim.key.key.as_str()).collect();
    names.sort_unstable();
    names
}

on_both_engines! {
    async fn waking_a_key_twice_causes_one_run(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        wake(db, Lane::Background, "a").await;
        wake(db, Lane::Background, "a").await;
        assert_eq!(depth(db).await, (1, 0));
        finish(db, &claim_one(db).await).await;
        assert_eq!((depth(db).await, next_due(db).await), ((0, 0), None));
    }

    async fn earlier_time_wins_in_any_order(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        let now = db.now();
        let (early, late) = (now + LEASE, now + 2 * LEASE);
        wake_at(db, Lane::Background, "a", late).await;
        wake_at(db, Lane::Background, "a", early).await;
        wake_at(db, Lane::Background, "b", early).await;
        wake_at(db, Lane::Background, "b", late).await;
        assert_eq!(next_due(db).await, Some(early));
        assert_eq!(claim(db, Lane::Background, 9).await, [], "nothing is due yet");
        clock.advance(LEASE);
        let claims = claim(db, Lane::Background, 9).await;
        assert_eq!(names(&claims), ["a", "b"]);
        assert!(claims.iter().all(|claim| claim.due_at == early), "{claims:?}");
    }

    async fn higher_lane_wins_in_any_order(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        wake(db, Lane::Background, "a").await;
        wake(db, Lane::Priority, "a").await;
        wake(db, Lane::Priority, "b").await;
        wake(db, Lane::Background, "b").await;
        wake(db, Lane::Background, "c").await;
        assert_eq!(names(&claim(db, Lane::Priority, 9).await), ["a", "b"]);
        assert_eq!(names(&claim(db, Lane::Background, 9).await), ["c"]);
    }

    async fn claims_are_ordered_by_lane_and_due_time(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        for name in ["old", "middle", "new"] {
            wake(db, Lane::Background, name).await;
            clock.advance(Duration::from_secs(1));
        }
        wake(db, Lane::Priority, "urgent").await;
        for expected in ["urgent", "old", "middle", "new"] {
            assert_eq!(names(&claim(db, Lane::Background, 1).await), [expected]);
        }
        assert_eq!(claim(db, Lane::Background, 1).await, []);
    }

    async fn wake_up_during_a_run_causes_another_run(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        wake(db, Lane::Background, "a").await;
        let first = claim_one(db).await;
        wake(db, Lane::Priority, "a").await;
        assert_eq!(claim(db, Lane::Background, 9).await, [], "it is still claimed");
        finish(db, &first).await;
        let second = claim(db, Lane::Priority, 9).await;
        assert_eq!(names(&second), ["a"], "the wake-up was lost, or its lane");
        finish(db, &second[0]).await;
        assert_eq!(depth(db).await, (0, 0));
    }

    async fn wake_up_during_a_run_overrides_postponement_and_failure(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let later = db.now() + LEASE;
        for failed in [false, true] {
            wake(db, Lane::Background, "a").await;
            let first = claim_one(db).await;
            wake(db, Lane::Background, "a").await;
            if failed {
                fail(db, &first, later).await;
            } else {
                postpone(db, &first, later).await;
            }
            let second = claim_one(db).await;
            assert_eq!(second.attempts, i64::from(failed));
            finish(db, &second).await;
        }
    }

    async fn postponed_key_is_idle_until_its_time(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        wake(db, Lane::Priority, "a").await;
        let at = db.now() + LEASE;
        postpone(db, &claim_one(db).await, at).await;
        assert_eq!((next_due(db).await, depth(db).await), (Some(at), (1, 0)));
        assert_eq!(claim(db, Lane::Background, 9).await, []);
        clock.advance(LEASE);
        assert_eq!(claim(db, Lane::Priority, 9).await, [], "timers are in the background lane");
        finish(db, &claim_one(db).await).await;
    }

    async fn wake_up_overrides_a_postponement(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        wake(db, Lane::Background, "a").await;
        postpone(db, &claim_one(db).await, db.now() + LEASE).await;
        wake(db, Lane::Priority, "a").await;
        assert_eq!(names(&claim(db, Lane::Priority, 9).await), ["a"]);
    }

    async fn consecutive_failures_are_counted(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        wake(db, Lane::Background, "a").await;
        for attempts in 0..3 {
            let claim = claim_one(db).await;
            assert_eq!(claim.attempts, attempts);
            fail(db, &claim, db.now()).await;
            assert_eq!(depth(db).await, (1, 1));
        }
        postpone(db, &claim_one(db).await, db.now()).await;
        assert_eq!((claim_one(db).await.attempts, depth(db).await), (0, (1, 0)));
    }

    async fn next_due_is_the_earliest_key_or_lease(engine: Engine) {
        let (database, _clock) = database_with_clock(engine).await;
        let db = &database.db;
        assert_eq!(next_due(db).await, None);
        let now = db.now();
        wake_at(db, Lane::Background, "late", now + 3 * LEASE).await;
        assert_eq!(next_due(db).await, Some(now + 3 * LEASE));
        wake_at(db, Lane::Background, "now", now).await;
        assert_eq!(next_due(db).await, Some(now));
        let claimed_at = db.now();
        claim_one(db).await;
        let due = next_due(db).await.unwrap();
        assert!(due >= claimed_at + LEASE && due < now + 2 * LEASE, "the expiry of the lease");
        wake(db, Lane::Background, "now").await;
        assert_eq!(next_due(db).await, Some(due), "a wake-up does not end a lease");
    }
}
