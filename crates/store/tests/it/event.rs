//! The event log: one entry per change, none for rolled-back ones.

use model::event::{Actor, Event};
use model::{Resources, Time};
use store::{Db, Scope, cluster, event};
use testing::{on_both_engines, rows};

use crate::support::{commit_note, database};

async fn all(db: &Db) -> Vec<Event> {
    db.number_events().await.unwrap();
    let mut read = db.read().await.unwrap();
    event::list(&mut read, Scope::All, &event::Filter::default(), 0, 10_000).await.unwrap()
}

on_both_engines! {
    async fn every_change_is_logged_with_the_subject_state(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let owner = rows::tenant(db, "acme").await;
        let made = rows::cluster(db, Some(owner.organization_id), Resources::from([("cpu", 4)])).await;
        let mut tx = db.begin(Actor::User(owner.id)).await.unwrap();
        cluster::set_metadata(&mut tx, made.id, Some("other"), None).await.unwrap();
        cluster::reserve(&mut tx, made.id, &Resources::from([("cpu", 1)])).await.unwrap();
        cluster::release(&mut tx, made.id, &Resources::from([("cpu", 1)])).await.unwrap();
        cluster::set_total(&mut tx, made.id, &Resources::from([("cpu", 8)])).await.unwrap();
        let at = tx.now();
        tx.commit().await.unwrap();
        let log = all(db).await;
        let changes: Vec<_> = log.iter().map(|event| event.change.as_str()).collect();
        assert_eq!(changes, [
            "organization.created",
            "user.created",
            "cluster.created",
            "cluster.updated",
            "cluster.capacity_taken",
            "cluster.capacity_given_back",
            "cluster.updated",
        ]);
        let last = log.last().unwrap();
        assert_eq!((last.at, last.actor.as_str()), (at, format!("user:{}", owner.id).as_str()));
        assert_eq!((last.kind.as_str(), &last.subject), ("cluster", &made.id.to_string()));
        assert_eq!(last.organization_id, Some(owner.organization_id));
        assert_eq!((&last.data["name"], &last.data["generation"]), (&"other".into(), &3.into()));
    }

    async fn follower_skips_excluded_events_once(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        for name in ["a", "b", "c"] {
            rows::tenant(db, name).await;
        }
        let newest = all(db).await.last().unwrap().seq;
        let of = |kind: &str| event::Filter { kind: Some(kind.into()), ..event::Filter::default() };
        let mut read = db.read().await.unwrap();
        let (found, place) =
            event::next(&mut read, Scope::All, &of("cluster"), 0, 10).await.unwrap();
        assert_eq!((found.len(), place), (0, newest), "no match, and everything was read");
        let (found, place) = event::next(&mut read, Scope::All, &of("user"), 0, 2).await.unwrap();
        assert_eq!((found.len(), place), (2, found[1].seq), "more may follow");
        let (found, place) =
            event::next(&mut read, Scope::All, &of("user"), place, 2).await.unwrap();
        assert_eq!((found.len(), place), (1, newest));
    }

    async fn rolled_back_changes_are_not_logged(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        for name in ["a", "b", "c"] {
            let mut tx = db.begin(Actor::Anonymous).await.unwrap();
            store::organization::create(&mut tx, name).await.unwrap();
            if name == "b" {
                drop(tx);
            } else {
                tx.commit().await.unwrap();
            }
        }
        let names: Vec<_> = all(db).await.iter().map(|e| e.data["name"].to_string()).collect();
        assert_eq!(names, ["\"a\"", "\"c\""]);
    }

    async fn positions_start_at_one_without_gaps(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        assert_eq!(event::last(&mut db.read().await.unwrap()).await.unwrap(), 0);
        for name in ["a", "b", "c", "d"] {
            rows::tenant(db, name).await;
            drop(db.begin(Actor::Anonymous).await.unwrap());
            commit_note(db, name).await.unwrap();
        }
        let log = all(db).await;
        assert!(log.iter().map(|event| event.seq).eq(1..=8), "{log:?}");
        assert_eq!(event::last(&mut db.read().await.unwrap()).await.unwrap(), 8);
        let mut read = db.read().await.unwrap();
        let part = event::list(&mut read, Scope::All, &event::Filter::default(), 3, 2).await.unwrap();
        assert_eq!(part, log[3..5]);
        let later = event::Filter { since: Some(Time(i64::MAX)), ..Default::default() };
        assert_eq!(event::list(&mut read, Scope::All, &later, 0, 9).await.unwrap(), []);
    }

    async fn secrets_are_not_logged(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let owner = rows::tenant(db, "acme").await;
        let mut new = rows::new_deployment(None, Some("image"), Resources::default(), 0);
        new.spec.env.insert("PASSWORD".into(), "hunter2".into());
        let made = rows::deployment(db, owner.organization_id, &new).await;
        assert_eq!(made.spec.env["PASSWORD"], "hunter2");
        let log = all(db).await;
        let text = log.iter().map(|event| event.data.to_string()).collect::<String>();
        assert!(text.contains("PASSWORD") && !text.contains("hunter2") && !text.contains("hash"));
    }
}
