//! Leases of claimed keys: they expire, and a stale holder changes nothing.

use std::time::Duration;

use model::work::Lane;
use testing::on_both_engines;

use crate::support::{database, database_with_clock};
use crate::work::{LEASE, claim, claim_one, depth, fail, finish, next_due, postpone, renew, wake};

on_both_engines! {
    async fn expired_lease_can_be_claimed(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        wake(db, Lane::Background, "a").await;
        let first = claim_one(db).await;
        assert_eq!(claim(db, Lane::Background, 9).await, []);
        clock.advance(LEASE);
        let second = claim_one(db).await;
        assert_eq!(second.key, first.key);
        finish(db, &second).await;
        assert_eq!(depth(db).await, (0, 0));
    }

    async fn renewed_lease_stays(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        wake(db, Lane::Background, "a").await;
        let mine = claim_one(db).await;
        for _ in 0..5 {
            clock.advance(LEASE / 2);
            assert!(renew(db, &mine).await);
            assert_eq!(claim(db, Lane::Background, 9).await, []);
        }
    }

    async fn released_lease_can_not_be_renewed(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        for woken in [false, true] {
            wake(db, Lane::Background, "a").await;
            let mine = claim_one(db).await;
            if woken {
                wake(db, Lane::Background, "a").await;
                finish(db, &mine).await;
            } else {
                fail(db, &mine, db.now()).await;
            }
            // A driver renews the claims that it considers running.
            assert!(!renew(db, &mine).await);
            finish(db, &claim_one(db).await).await;
        }
    }

    async fn stale_fence_changes_nothing(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        wake(db, Lane::Background, "a").await;
        let old = claim_one(db).await;
        clock.advance(LEASE);
        let new = claim_one(db).await;
        let due = next_due(db).await;
        finish(db, &old).await;
        postpone(db, &old, db.now()).await;
        fail(db, &old, db.now()).await;
        assert!(!renew(db, &old).await);
        assert_eq!((depth(db).await, next_due(db).await), ((1, 0), due));
        assert_eq!(claim(db, Lane::Background, 9).await, [], "the new lease was released");
        fail(db, &new, db.now()).await;
        assert_eq!(claim_one(db).await.attempts, 1);
    }

    async fn claim_of_a_deleted_row_changes_nothing(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        wake(db, Lane::Background, "a").await;
        let old = claim_one(db).await;
        clock.advance(LEASE);
        finish(db, &claim_one(db).await).await;
        assert_eq!(depth(db).await, (0, 0));
        // Woken again, it is a new row, which must not match the old claim.
        wake(db, Lane::Background, "a").await;
        let new = claim_one(db).await;
        finish(db, &old).await;
        assert!(!renew(db, &old).await);
        fail(db, &new, db.now()).await;
        assert_eq!(depth(db).await, (1, 1), "the retry was lost");
    }

    async fn stale_fence_does_not_lose_a_wake_up(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        wake(db, Lane::Background, "a").await;
        let old = claim_one(db).await;
        clock.advance(LEASE);
        wake(db, Lane::Background, "a").await;
        finish(db, &old).await;
        finish(db, &claim_one(db).await).await;
        assert_eq!(depth(db).await, (0, 0));
    }

    async fn uncommitted_claim_has_no_effect(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        wake(db, Lane::Background, "a").await;
        let mut tx = db.begin(model::event::Actor::Server).await.unwrap();
        assert_eq!(store::work::claim(&mut tx, Lane::Background, 9, LEASE).await.unwrap().len(), 1);
        drop(tx);
        // PostgreSQL rolls back in the background, and a claim skips locked rows until then.
        let claimed = async { while claim(db, Lane::Background, 9).await.is_empty() {} };
        tokio::time::timeout(Duration::from_secs(30), claimed).await.expect("claimed");
    }
}
