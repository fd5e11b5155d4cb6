//! Search follows creations, changes and deletions, and gives equal results on both databases.

use base::{Stopper, SystemClock, stop, task};
use engine::search_index::{Error, SearchIndex, follow};
use model::event::{Actor, Kind};
use model::search_index::{Hit, Query};
use model::{OrganizationId, Resources};
use serde_json::json;
use store::Db;
use testing::{Database, Engine, on_both_engines, rows};

use crate::environment::{SHOP, Shop};

/// An index that is kept up to date until the test ends.
struct Search {
    search_index: SearchIndex,
    _stopper: Stopper,
}

impl Search {
    fn start(db: &Db) -> Self {
        let search_index = SearchIndex::new(db.clone());
        let (stopper, stop) = stop::channel();
        task::spawn("search", follow(search_index.clone(), stop));
        Self { search_index, _stopper: stopper }
    }

    async fn hits(&self, text: &str, seen_by: Option<OrganizationId>) -> Vec<Hit> {
        let mut query = Query::new(text, 50).unwrap();
        query.organization = seen_by;
        self.search_index.search(&query).await.unwrap()
    }

    async fn names(&self, text: &str, seen_by: Option<OrganizationId>) -> Vec<String> {
        let found = self.hits(text, seen_by).await.into_iter();
        found.map(|hit| format!("{}/{}", hit.document.kind, hit.document.name)).collect()
    }
}

async fn deployment(db: &Db, owner: OrganizationId, name: &str) -> model::DeploymentId {
    let new = rows::new_deployment(None, Some("nginx:1"), Resources::from([("cpu", 1)]), 0);
    let new = model::deployment::NewDeployment { name: name.into(), ..new };
    rows::deployment(db, owner, &new).await.id
}

on_both_engines! {
    async fn existing_and_new_objects_are_found(engine: Engine) {
        let shop = Shop::still(engine, &[SHOP]).await;
        let (db, owner) = (&shop.world.db, Some(shop.world.owner));
        let before = shop.create("shop@1.0.0", json!({})).await;
        let search = Search::start(db);
        assert_eq!(search.names("shop", owner).await, ["template/shop@1.0.0"]);
        assert_eq!(search.names("mine", owner).await, ["environment/mine"]);
        assert_eq!(
            search.names("part", owner).await,
            ["resource/part-0", "resource/part-1"]
        );
        assert_eq!(search.names("consul", owner).await.len(), 3);
        assert_eq!(search.names("acme", owner).await, ["organization/acme", "user/acme"]);
        assert_eq!(search.names(&before.to_string(), owner).await, ["environment/mine"]);
        let late = shop
            .create_with("shop@1.0.0", json!({"size": 1}), |request| {
                request.name = "late".into();
                request.description = "The warehouse of everything".into();
                request.tags = [("team".to_owned(), "shipping".to_owned())].into();
            })
            .await;
        for text in ["late", "warehouse", "wrehouse", "team=shipping", &late.to_string()] {
            assert_eq!(search.names(text, owner).await, ["environment/late"], "{text}");
        }
        assert_eq!(search.names("part", owner).await.len(), 3);
    }

    async fn changes_and_deletions_are_followed(engine: Engine) {
        let database = Database::new(engine, std::sync::Arc::new(SystemClock)).await;
        let db = &database.db;
        let search = Search::start(db);
        let ann = rows::tenant(db, "ann").await;
        let owner = ann.organization_id;
        let cluster = rows::cluster(db, Some(owner), Resources::from([("cpu", 1)])).await;
        assert_eq!(search.names("main", Some(owner)).await, ["cluster/main"]);
        assert_eq!(search.hits("main", None).await[0].document.status.as_deref(), Some("accepted"));

        let mut tx = db.begin(Actor::Server).await.unwrap();
        let labels = [("team".to_owned(), "blue".to_owned())].into();
        store::cluster::set_metadata(&mut tx, cluster.id, Some("other"), Some(&labels)).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(search.names("main", Some(owner)).await, [""; 0]);
        assert_eq!(search.names("other blue", Some(owner)).await, ["cluster/other"]);

        let mut tx = db.begin(Actor::Server).await.unwrap();
        store::organization::set_name(&mut tx, owner, "Zebra & Co").await.unwrap();
        store::cluster::delete(&mut tx, &cluster).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(search.names("other", Some(owner)).await, [""; 0]);
        assert_eq!(search.names("zebra", Some(owner)).await, ["organization/Zebra & Co"]);

        let web = deployment(db, owner, "web").await;
        assert_eq!(search.names("nginx", Some(owner)).await, ["deployment/web"]);
        let mut tx = db.begin(Actor::Server).await.unwrap();
        store::deployment::request_delete(&mut tx, store::Scope::All, web).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(search.names("nginx", Some(owner)).await, [""; 0]);
    }

    async fn objects_of_other_organizations_are_not_found(engine: Engine) {
        let database = Database::new(engine, std::sync::Arc::new(SystemClock)).await;
        let db = &database.db;
        let (ann, zoe) = (rows::tenant(db, "ann").await, rows::tenant(db, "zoe").await);
        let search = Search::start(db);
        deployment(db, ann.organization_id, "secret-plans").await;
        rows::cluster(db, None, Resources::default()).await;
        let (ann, zoe) = (Some(ann.organization_id), Some(zoe.organization_id));
        assert_eq!(search.names("secret", ann).await.len(), 1);
        assert_eq!(search.names("secret", zoe).await.len(), 0);
        assert_eq!(search.names("secret", None).await.len(), 1);
        assert_eq!(search.names("ann", zoe).await.len(), 0);
        for seen_by in [ann, zoe, None] {
            assert_eq!(search.names("main", seen_by).await, ["cluster/main"]);
        }
    }

    async fn new_object_is_found_immediately(engine: Engine) {
        let database = Database::new(engine, std::sync::Arc::new(SystemClock)).await;
        let db = &database.db;
        let owner = rows::tenant(db, "ann").await.organization_id;
        let search = Search::start(db);
        let makers = (0..4).map(|maker| {
            let search = &search;
            async move {
                for n in 0..15 {
                    let name = format!("thing-{maker}x{n}");
                    deployment(db, owner, &name).await;
                    assert_eq!(search.names(&name, None).await[0], format!("deployment/{name}"));
                }
            }
        });
        futures_util::future::join_all(makers).await;
        assert_eq!(search.names("thing", None).await.len(), 50);
    }

    async fn empty_index_is_an_error(engine: Engine) {
        let database = Database::new(engine, std::sync::Arc::new(SystemClock)).await;
        let search_index = SearchIndex::new(database.db.clone());
        let found = search_index.search(&Query::new("x", 1).unwrap()).await;
        assert!(matches!(found, Err(Error::IndexNotReady)), "{found:?}");
    }

    async fn reservations_and_instance_deployments_are_not_found(engine: Engine) {
        let database = Database::new(engine, std::sync::Arc::new(SystemClock)).await;
        let db = &database.db;
        let owner = rows::tenant(db, "ann").await.organization_id;
        let web = deployment(db, owner, "web").await;
        let mut tx = db.begin(Actor::Server).await.unwrap();
        let sql = format!("UPDATE deployment SET reserved = 'x' WHERE id = '{web}'");
        tx.run(&sql, &[]).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(Search::start(db).names("web", None).await, [""; 0]);
    }
}

/// The same objects, created in another order on each database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn result_order_is_equal_on_both_databases() {
    let names = [
        "web",
        "web-shop",
        "web-shop-2",
        "shop",
        "wbe-shop",
        "shop-web",
        "database",
        "Web",
        "web_1",
    ];
    let mut orders = Vec::new();
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let database = Database::new(engine, std::sync::Arc::new(SystemClock)).await;
        let db = &database.db;
        let owner = rows::tenant(db, "acme").await.organization_id;
        let mut names = names.to_vec();
        if engine == Engine::Postgres {
            names.reverse();
        }
        for name in names {
            deployment(db, owner, name).await;
        }
        let search = Search::start(db);
        let mut found = Vec::new();
        for text in
            ["web", "web shop", "webshop", "shop", "databsae", "w", "nginx", "webshpo", "acme"]
        {
            let hits = search.hits(text, Some(owner)).await.into_iter();
            let told =
                |hit: Hit| (hit.document.kind == Kind::Deployment, hit.document.name, hit.score);
            found.push((text, hits.map(told).collect::<Vec<_>>()));
        }
        assert!(found.iter().all(|(_, hits)| !hits.is_empty()), "{found:?}");
        orders.push(found);
    }
    assert_eq!(orders[0], orders[1]);
}
