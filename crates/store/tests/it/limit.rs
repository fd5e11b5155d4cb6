//! Limits hold under concurrency.

use base::task;
use model::Resources;
use model::event::Actor;
use store::deployment::Limits;
use store::{Error, Scope, cluster, deployment, organization};
use testing::{on_both_engines, rows};

use crate::support::database;

on_both_engines! {
    async fn concurrent_creates_never_exceed_the_limit(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        let on = rows::ready_cluster(db, Some(own), Resources::from([("cpu", 1)])).await;
        for (limits, expected) in [
            (Limits { per_organization: 40, per_cluster: 20, max_priority: 100 }, 20),
            (Limits { per_organization: 40, per_cluster: 1000, max_priority: 100 }, 20),
        ] {
            let creating: Vec<_> = (0..150)
                .map(|_| {
                    let db = db.clone();
                    task::spawn("create", async move {
                        let new = rows::new_deployment(Some(on.id), None, Resources::default(), 0);
                        let mut tx = db.begin(Actor::Anonymous).await?;
                        deployment::create(&mut tx, own, &new, limits).await?;
                        tx.commit().await
                    })
                })
                .collect();
            let mut made = 0;
            for one in creating {
                match one.await.unwrap() {
                    Ok(()) => made += 1,
                    Err(error) => assert!(matches!(error, Error::Limit { .. } | Error::QuotaExceeded(_)), "{error}"),
                }
            }
            assert_eq!(made, expected);
        }
        let mut read = db.read().await.unwrap();
        let all = deployment::count(&mut read, Scope::All, &deployment::Filter::default()).await;
        assert_eq!(all.unwrap(), 40);
        assert_eq!(cluster::get(&mut read, Scope::All, on.id).await.unwrap().deployments, 40);
        assert_eq!(organization::get(&mut read, Scope::All, own).await.unwrap().deployments, 40);
    }

    async fn cluster_deletion_and_concurrent_deployment_exclude_each_other(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        for _ in 0..20 {
            let on = rows::ready_cluster(db, Some(own), Resources::from([("cpu", 1)])).await;
            let (creator, deleter) = (db.clone(), db.clone());
            let creating = task::spawn("create", async move {
                let new = rows::new_deployment(Some(on.id), None, Resources::default(), 0);
                let mut tx = creator.begin(Actor::Anonymous).await?;
                deployment::create(&mut tx, own, &new, rows::LIMITS).await?;
                tx.commit().await
            });
            let leaving = on.clone();
            let deleting = task::spawn("delete", async move {
                let mut tx = deleter.begin(Actor::Anonymous).await?;
                cluster::request_delete(&mut tx, &leaving, false).await?;
                tx.commit().await
            });
            let (created, deleted) = (creating.await.unwrap(), deleting.await.unwrap());
            assert!(created.is_ok() != deleted.is_ok(), "{created:?} {deleted:?}");
        }
    }
}
