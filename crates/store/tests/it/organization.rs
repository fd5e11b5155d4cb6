//! Deletion of organizations.

use base::task;
use model::Resources;
use model::event::Actor;
use model::user::User;
use store::organization::Contents;
use store::quota::NewQuota;
use store::{Db, Error, Page, Scope, cluster, event, invite, organization, quota, token, user};
use testing::{on_both_engines, rows};

use crate::support::{database, texts};

async fn delete(db: &Db, of: &User) -> store::Result<Option<Contents>> {
    let mut tx = db.begin(of.actor()).await?;
    let contents = organization::delete(&mut tx, of.organization_id).await?;
    if contents.is_none() {
        tx.commit().await?;
    }
    Ok(contents)
}

on_both_engines! {
    async fn organization_with_contents_is_not_deleted(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let ann = rows::tenant(db, "acme").await;
        let on = rows::ready_cluster(db, Some(ann.organization_id), Resources::from([("cpu", 1)])).await;
        let new = rows::new_deployment(Some(on.id), None, Resources::default(), 0);
        rows::deployment(db, ann.organization_id, &new).await;
        let left = delete(db, &ann).await.unwrap().unwrap();
        assert_eq!(left, Contents { clusters: 1, deployments: 1, ..Default::default() });
        assert_eq!(left.to_string(), "1 deployment, 1 cluster");
        let mut read = db.read().await.unwrap();
        organization::get(&mut read, Scope::All, ann.organization_id).await.unwrap();
        assert!(user::credentials(&mut read, "acme").await.unwrap().is_some());
    }

    async fn deleted_organization_leaves_nothing_to_a_successor_of_the_same_name(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let ann = rows::tenant(db, "acme").await;
        let old = ann.organization_id;
        let mut tx = db.begin(ann.actor()).await.unwrap();
        let end = tx.now() + std::time::Duration::from_hours(1);
        token::create(&mut tx, ann.id, "login", end).await.unwrap();
        let life = model::invite::DEFAULT_LIFETIME;
        invite::create(&mut tx, old, ann.id, "code", model::user::Role::Member, life).await.unwrap();
        let robot = user::create_service_account(&mut tx, old, "ci", model::user::Role::Member).await;
        let grant = NewQuota {
            holder: format!("organization/{old}"),
            kind: None,
            instance_type: "standard".into(),
            billing_model: "standard".into(),
            limit: Some(5),
            expires_at: None,
        };
        quota::create(&mut tx, &grant).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(delete(db, &ann).await.unwrap(), None);
        assert!(matches!(delete(db, &ann).await, Err(Error::NotFound { .. })));

        let new = rows::tenant(db, "acme").await;
        assert_ne!(new.organization_id, old);
        let mut read = db.read().await.unwrap();
        let all = organization::list(&mut read, Scope::All, &Page::first(10)).await.unwrap();
        assert_eq!(all.iter().map(|o| o.id).collect::<Vec<_>>(), [new.organization_id]);
        assert_eq!(organization::find(&mut read, "ACME").await.unwrap().unwrap().id, new.organization_id);
        assert_eq!(user::credentials(&mut read, "acme").await.unwrap().unwrap().0.id, new.id);
        assert!(token::find(&mut read, "login", db.now()).await.unwrap().is_none());
        let robot = robot.unwrap().id;
        assert!(user::get(&mut read, Scope::All, robot).await.is_err());
        assert!(invite::find(&mut read, "code").await.unwrap().unwrap().is_expired(db.now()));
        assert_eq!(quota::list(&mut read, None).await.unwrap(), []);
        let scope = Scope::Organization(new.organization_id);
        let events = event::list(&mut read, scope, &event::Filter::default(), 0, 100).await.unwrap();
        assert!(events.iter().all(|event| !event.data.to_string().contains(&old.to_string())));
        assert!(texts(db, "SELECT change FROM event").await.contains(&"organization.deleted".into()));
    }

    async fn organization_of_the_administrator_is_not_deleted(engine: Engine) {
        let database = database(engine).await;
        let admin = rows::platform(&database.db).await;
        let refused = delete(&database.db, &admin).await;
        assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
        let mut read = database.db.read().await.unwrap();
        user::get(&mut read, Scope::All, admin.id).await.unwrap();
    }

    async fn deletion_and_concurrent_creation_exclude_each_other(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        for i in 0..20 {
            let ann = rows::tenant(db, &format!("acme{i}")).await;
            let own = ann.organization_id;
            let (creator, deleter) = (db.clone(), db.clone());
            let creating = task::spawn("create", async move {
                let mut tx = creator.begin(Actor::Anonymous).await?;
                let new = rows::new_cluster("main", Resources::from([("cpu", 1)]));
                cluster::create(&mut tx, Some(own), &new).await?;
                tx.commit().await
            });
            let deleting = task::spawn("delete", async move { delete(&deleter, &ann).await });
            let (created, deleted) = (creating.await.unwrap(), deleting.await.unwrap().unwrap());
            let is_refused = matches!(created, Err(Error::NotFound { .. }));
            assert!(created.is_ok() || is_refused, "{created:?}");
            assert_eq!(deleted.is_none(), is_refused, "{deleted:?} {created:?}");
            let left = organization::contents(&mut db.read().await.unwrap(), own).await.unwrap();
            assert_eq!(left.clusters, i64::from(!is_refused));
        }
    }
}
