//! Leases: one holder at a time, with increasing fencing tokens.

use std::time::Duration;

use base::task;
use model::event::Actor;
use store::{Db, lease};
use testing::on_both_engines;

use crate::support::{database, database_with_clock};

const LIFE: Duration = Duration::from_secs(15);

async fn acquire(db: &Db, holder: &str) -> Option<i64> {
    let mut tx = db.begin(Actor::Agent).await.unwrap();
    let fence = lease::acquire(&mut tx, "agent", holder, LIFE).await.unwrap();
    tx.commit().await.unwrap();
    fence
}

async fn release(db: &Db, holder: &str) {
    let mut tx = db.begin(Actor::Agent).await.unwrap();
    lease::release(&mut tx, "agent", holder).await.unwrap();
    tx.commit().await.unwrap();
}

async fn is_held(db: &Db) -> bool {
    lease::is_held(&mut db.read().await.unwrap(), "agent", db.now()).await.unwrap()
}

on_both_engines! {
    async fn first_holder_keeps_the_lease(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        assert!(!is_held(db).await);
        let fence = acquire(db, "a").await.expect("the lease is free");
        assert!(is_held(db).await);
        for _ in 0..5 {
            assert_eq!(acquire(db, "b").await, None);
            clock.advance(LIFE / 2);
            assert_eq!(acquire(db, "a").await, Some(fence), "renewal keeps the fencing token");
        }
    }

    async fn expired_lease_can_be_acquired_with_a_higher_fence(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        let first = acquire(db, "a").await.unwrap();
        clock.advance(LIFE);
        assert!(!is_held(db).await);
        let second = acquire(db, "b").await.expect("the lease has expired");
        assert!(second > first);
        assert_eq!(acquire(db, "a").await, None, "the old holder is too late");
        clock.advance(LIFE);
        assert!(acquire(db, "a").await.unwrap() > second);
    }

    async fn released_lease_is_free_immediately_with_a_higher_fence(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let first = acquire(db, "a").await.unwrap();
        release(db, "b").await;
        assert!(is_held(db).await, "only the holder can release it");
        release(db, "a").await;
        assert!(!is_held(db).await);
        assert!(acquire(db, "b").await.expect("the lease is free") > first, "fencing token reused");
    }

    async fn one_of_many_concurrent_callers_gets_the_lease(engine: Engine) {
        let database = database(engine).await;
        let tries: Vec<_> = (0..30)
            .map(|n| {
                let db = database.db.clone();
                task::spawn("holder", async move { acquire(&db, &format!("holder {n}")).await })
            })
            .collect();
        let mut holders = 0;
        for one in tries {
            holders += usize::from(one.await.unwrap().is_some());
        }
        assert_eq!(holders, 1);
    }
}
