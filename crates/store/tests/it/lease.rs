//! Leases: one holder at a time, and a proof of whose turn it is that never comes again.

use std::time::Duration;

use base::task;
use model::event::Actor;
use store::{Db, lease};
use testing::on_both_engines;

use crate::support::{database, database_with_clock};

const LIFE: Duration = Duration::from_secs(15);

async fn take(db: &Db, holder: &str) -> Option<i64> {
    let mut tx = db.begin(Actor::Agent).await.unwrap();
    let fence = lease::take(&mut tx, "agent", holder, LIFE).await.unwrap();
    tx.commit().await.unwrap();
    fence
}

async fn give_back(db: &Db, holder: &str) {
    let mut tx = db.begin(Actor::Agent).await.unwrap();
    lease::give_back(&mut tx, "agent", holder).await.unwrap();
    tx.commit().await.unwrap();
}

async fn is_held(db: &Db) -> bool {
    lease::is_held(&mut db.read().await.unwrap(), "agent", db.now()).await.unwrap()
}

on_both_engines! {
    async fn the_first_holder_keeps_it_and_others_wait(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        assert!(!is_held(db).await);
        let fence = take(db, "a").await.expect("nobody has it");
        assert!(is_held(db).await);
        for _ in 0..5 {
            assert_eq!(take(db, "b").await, None);
            clock.advance(LIFE / 2);
            assert_eq!(take(db, "a").await, Some(fence), "keeping it is not taking it anew");
        }
    }

    async fn after_its_end_it_is_anybodys_with_a_higher_fence(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        let first = take(db, "a").await.unwrap();
        clock.advance(LIFE);
        assert!(!is_held(db).await);
        let second = take(db, "b").await.expect("it has ended");
        assert!(second > first);
        assert_eq!(take(db, "a").await, None, "the old holder is too late");
        clock.advance(LIFE);
        assert!(take(db, "a").await.unwrap() > second);
    }

    async fn given_back_it_is_free_at_once_with_a_higher_fence(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let first = take(db, "a").await.unwrap();
        give_back(db, "b").await;
        assert!(is_held(db).await, "only its holder can give it back");
        give_back(db, "a").await;
        assert!(!is_held(db).await);
        assert!(take(db, "b").await.expect("it is free") > first, "a fence came again");
    }

    async fn of_many_who_try_at_once_one_gets_it(engine: Engine) {
        let database = database(engine).await;
        let tries: Vec<_> = (0..30)
            .map(|n| {
                let db = database.db.clone();
                task::spawn("holder", async move { take(&db, &format!("holder {n}")).await })
            })
            .collect();
        let mut holders = 0;
        for one in tries {
            holders += usize::from(one.await.unwrap().is_some());
        }
        assert_eq!(holders, 1);
    }
}
