//! Dependency graph across environments, resources, deployments and clusters.

use model::event::{Actor, Kind};
use model::graph::{Direction, Graph};
use model::resource::Link;
use model::{EnvironmentId, Resources, Xid};
use serde_json::json;
use store::Scope;
use store::graph::{Subject, around, find};
use testing::{Engine, on_both_engines, rows};

use crate::environment::{SHOP, Shop};

/// An environment with a resource that created a deployment pinned to a shared cluster.
struct Setting {
    shop: Shop,
    environment: EnvironmentId,
    scope: Scope,
}

impl Setting {
    async fn new(engine: Engine) -> Self {
        let shop = Shop::still(engine, &[SHOP]).await;
        let environment = shop.create("shop@1.0.0", json!({})).await;
        let (db, owner) = (&shop.world.db, shop.world.owner);
        let cluster = rows::cluster(db, None, Resources::from([("cpu", 9)])).await;
        let new = rows::new_deployment(Some(cluster.id), None, Resources::default(), 0);
        let made = rows::deployment(db, owner, &new).await;
        let beside = shop.resource(environment, "beside").await;
        let mut tx = shop.begin().await;
        let link = Link { kind: "deployment".into(), id: made.id.to_string() };
        store::resource::set_link(&mut tx, beside.id, beside.fence, Some(&link)).await.unwrap();
        tx.commit().await.unwrap();
        Self { shop, environment, scope: Scope::Organization(owner) }
    }

    async fn graph(
        &self,
        scope: Scope,
        subject: Subject,
        direction: Direction,
        depth: usize,
    ) -> Graph {
        let mut read = self.shop.world.db.read().await.unwrap();
        let begin = find(&mut read, scope, &subject).await.unwrap();
        around(&mut read, scope, begin, direction, depth).await.unwrap()
    }
}

fn named(kind: Kind, name: &str) -> Subject {
    Subject::Named(kind, name.into())
}

/// The nodes as kind/name, nearest first.
fn names(graph: &Graph) -> Vec<String> {
    graph.nodes.iter().map(|node| format!("{}/{}", node.kind, node.name)).collect()
}

/// The edges as text, sorted.
fn edges(graph: &Graph) -> Vec<String> {
    let name = |id: Xid| graph.nodes.iter().find(|node| node.id == id).unwrap().name.as_str();
    let told = |edge: &model::graph::Edge| {
        format!("{} {} {}", name(edge.from), edge.relation, name(edge.to))
    };
    let mut all: Vec<String> = graph.edges.iter().map(told).collect();
    all.sort();
    all
}

on_both_engines! {
    async fn environment_depends_on_all_its_parts(engine: Engine) {
        let setting = Setting::new(engine).await;
        let subject = Subject::Id(setting.environment.0);
        let graph = setting.graph(setting.scope, subject, Direction::Dependencies, 99).await;
        assert_eq!(names(&graph), [
            "environment/mine", "template/shop@1.0.0", "resource/base", "resource/beside",
            "resource/part-0", "resource/part-1", "resource/settings", "deployment/web", "cluster/main",
        ]);
        assert_eq!(edges(&graph), [
            "beside made web",
            "mine has base",
            "mine has beside",
            "mine has part-0",
            "mine has part-1",
            "mine has settings",
            "mine is made from shop@1.0.0",
            "part-0 is made after settings",
            "part-1 is made after settings",
            "settings is made after base",
            "web is pinned to main",
        ]);
        assert!(!graph.is_truncated);
        let near = setting.graph(setting.scope, named(Kind::Environment, "mine"), Direction::Dependencies, 1).await;
        assert_eq!(near.nodes.len(), 7);
        assert_eq!(near.edges.len(), 6);
    }

    async fn dependents_of_a_subject_are_found(engine: Engine) {
        let setting = Setting::new(engine).await;
        let own = setting.scope;
        for (subject, want) in [
            (named(Kind::Cluster, "main"), vec!["cluster/main", "deployment/web", "resource/beside", "environment/mine"]),
            (named(Kind::Resource, "base"), vec![
                "resource/base", "environment/mine", "resource/settings", "resource/part-0", "resource/part-1",
            ]),
            (named(Kind::Template, "shop@1.0.0"), vec!["template/shop@1.0.0", "environment/mine"]),
            (named(Kind::Environment, "mine"), vec!["environment/mine"]),
        ] {
            let graph = setting.graph(own, subject, Direction::Dependents, 99).await;
            assert_eq!(names(&graph), want);
        }
    }

    async fn deployment_runs_on_the_clusters_of_its_replicas(engine: Engine) {
        let setting = Setting::new(engine).await;
        let (db, owner) = (&setting.shop.world.db, setting.shop.world.owner);
        let cluster = rows::ready_cluster(db, Some(owner), Resources::from([("cpu", 9)])).await;
        let new = rows::new_deployment(None, None, Resources::from([("cpu", 1)]), 0);
        let placed = rows::deployment(db, owner, &new).await;
        let mut tx = db.begin(Actor::Server).await.unwrap();
        let place = rows::only_node(&cluster);
        store::cluster::lock(&mut tx, cluster.id).await.unwrap();
        store::deployment::placement::place(&mut tx, placed.id, &[(0, place)], &["main".into()]).await.unwrap();
        tx.commit().await.unwrap();
        let graph = setting.graph(setting.scope, Subject::Id(placed.id.0), Direction::Dependencies, 9).await;
        assert_eq!(edges(&graph), ["web runs on main"]);
        assert_eq!(graph.nodes[1].id, cluster.id.0);
    }

    async fn graph_excludes_other_organizations(engine: Engine) {
        let setting = Setting::new(engine).await;
        let db = &setting.shop.world.db;
        let zoe = rows::tenant(db, "zoe").await.organization_id;
        let main = setting.graph(setting.scope, named(Kind::Cluster, "main"), Direction::Dependents, 9).await;
        let shared = model::ClusterId(main.nodes[0].id);
        let new = rows::new_deployment(Some(shared), None, Resources::default(), 0);
        let theirs = rows::deployment(db, zoe, &new).await;
        let subject = || named(Kind::Cluster, "main");
        let ours = setting.graph(setting.scope, subject(), Direction::Dependents, 9).await;
        assert_eq!(names(&ours), names(&main));
        let hers = setting.graph(Scope::Organization(zoe), subject(), Direction::Dependents, 9).await;
        assert_eq!(hers.nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [shared.0, theirs.id.0]);
        let all = setting.graph(Scope::All, subject(), Direction::Dependents, 9).await;
        assert_eq!(all.nodes.len(), 5);
        let mut read = db.read().await.unwrap();
        for subject in [
            Subject::Id(setting.environment.0),
            named(Kind::Environment, "mine"),
            named(Kind::Template, "shop@1.0.0"),
            Subject::Id(zoe.0),
        ] {
            let found = find(&mut read, Scope::Organization(zoe), &subject).await;
            assert!(matches!(found, Err(store::Error::NotFound { .. })), "{subject:?}");
        }
    }

    async fn ambiguous_name_lists_the_ids(engine: Engine) {
        let setting = Setting::new(engine).await;
        let other = setting.shop.create_with("shop@1.0.0", json!({}), |request| request.name = "other".into()).await;
        let mut read = setting.shop.world.db.read().await.unwrap();
        let several = find(&mut read, setting.scope, &named(Kind::Resource, "base")).await.unwrap_err();
        let ids = [setting.environment, other];
        for id in ids {
            let base = setting.shop.resource(id, "base").await;
            assert!(several.to_string().contains(&base.id.to_string()), "{several}");
        }
    }
}
