//! Documents of the search index: by page, by id and by name, also next to unreadable rows.

use model::event::{Actor, Kind};
use model::search_index::KINDS;
use model::{Resources, Xid};
use store::{Db, search_index};
use testing::{on_both_engines, rows};

use crate::support::database;

async fn organizations(db: &Db, names: &[&str]) {
    for name in names {
        rows::tenant(db, name).await;
    }
}

/// The names of all subjects of a kind, read in pages of two.
async fn names(db: &Db, kind: Kind) -> Vec<String> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let mut read = db.read().await.unwrap();
        let part = search_index::page(&mut read, kind, after, 2).await.unwrap();
        assert!(part.documents.len() <= 2);
        names.extend(part.documents.into_iter().map(|one| String::from(one.name)));
        after = part.next;
        if after.is_none() {
            return names;
        }
    }
}

on_both_engines! {
    async fn all_documents_are_read_page_by_page(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        for kind in KINDS {
            assert_eq!(names(db, kind).await, [""; 0], "{kind}");
        }
        organizations(db, &["a", "b", "c", "d"]).await;
        assert_eq!(names(db, Kind::Organization).await, ["a", "b", "c", "d"]);
        assert_eq!(names(db, Kind::User).await, ["a", "b", "c", "d"]);
        assert_eq!(names(db, Kind::Cluster).await, [""; 0]);
    }

    async fn unreadable_row_is_skipped(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let mut ids: Vec<Xid> = Vec::new();
        for _ in 0..5 {
            ids.push(rows::cluster(db, None, Resources::default()).await.id.0);
        }
        let mut tx = db.begin(Actor::Server).await.unwrap();
        for (id, name) in ids.iter().zip(["a", "b", "c", "d", "e"]) {
            let labels = if ["c", "d"].contains(&name) { "broken" } else { "{}" };
            let sql = format!("UPDATE cluster SET name = '{name}', labels = '{labels}' WHERE id = '{id}'");
            tx.run(&sql, &[]).await.unwrap();
        }
        tx.commit().await.unwrap();
        // A whole page is unreadable, and the next one is read.
        assert_eq!(names(db, Kind::Cluster).await, ["a", "b", "e"]);
        let some = search_index::by_ids(&mut db.read().await.unwrap(), Kind::Cluster, &ids[1..3]).await;
        assert_eq!(some.unwrap().iter().map(|one| one.id).collect::<Vec<_>>(), [ids[1]]);
    }

    async fn name_lookup_finds_only_visible_subjects(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let (ann, zoe) = (rows::tenant(db, "ann").await, rows::tenant(db, "zoe").await);
        for owner in [Some(ann.organization_id), Some(zoe.organization_id), None] {
            rows::cluster(db, owner, Resources::default()).await;
        }
        let mut read = db.read().await.unwrap();
        for (seen_by, name, want) in [
            (None, "main", 3),
            (Some(ann.organization_id), "main", 2),
            (Some(zoe.organization_id), "main", 2),
            (None, "mai", 0),
        ] {
            let found = search_index::by_name(&mut read, Kind::Cluster, seen_by, name, 10).await.unwrap();
            assert_eq!(found.len(), want, "{seen_by:?} {name}");
        }
        let found = search_index::by_name(&mut read, Kind::Cluster, None, "main", 2).await.unwrap();
        assert_eq!(found.len(), 2);
        let own = Some(ann.organization_id);
        for (kind, want) in [(Kind::User, "ann"), (Kind::Organization, "ann")] {
            let found = search_index::by_name(&mut read, kind, own, want, 10).await.unwrap();
            assert_eq!(found.len(), 1, "{kind}");
            let others = search_index::by_name(&mut read, kind, own, "zoe", 10).await.unwrap();
            assert_eq!(others.len(), 0, "{kind}");
        }
        for kind in [Kind::Deployment, Kind::Instance, Kind::Template, Kind::Environment, Kind::Resource] {
            assert_eq!(search_index::by_name(&mut read, kind, own, "x@1", 10).await.unwrap(), [], "{kind}");
        }
        assert!(search_index::by_name(&mut read, Kind::Invite, own, "x", 10).await.is_err());
    }
}
