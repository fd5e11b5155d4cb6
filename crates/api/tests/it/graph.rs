//! Dependency graphs over the API: formats, isolation, and invalid requests.

use model::event::Actor;
use model::resource::Link;
use model::{ClusterId, Resources};
use serde_json::{Value, json};
use store::Scope;
use testing::{Client, on_both_engines, rows};

use crate::shop::Shop;
use crate::world::{World, names_field, refused};

async fn graph(client: &Client, query: &str) -> Value {
    client.get(&format!("/api/v1/graph?{query}")).await.expect(200)
}

fn ids(graph: &Value) -> Vec<&str> {
    graph["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect()
}

/// Content type of the response.
async fn kind_of(client: &Client, query: &str, accept: Option<&str>) -> String {
    let mut request = client.request("GET", &format!("/api/v1/graph?{query}"));
    if let Some(accept) = accept {
        request = request.header("accept", accept);
    }
    let answer = client.send(request).await;
    assert_eq!(answer.status, 200, "{query}: {:#}", answer.json);
    answer.headers["content-type"].to_str().unwrap().to_owned()
}

/// Every resource of one half depends on every resource of the other: 20,022 edges.
const DENSE: &str = "
name: dense
version: 1
resources:
  - {name: low, executor: vault-secret, count: 141, with: {path: 'low/{{ index }}'}}
  - {name: high, executor: vault-secret, count: 142, with: {path: 'high/{{ index }}'}, depends_on: [low]}
";

/// Creates an environment with a deployment on a shared cluster: the given one, or a new one.
async fn dense(shop: &Shop, name: &str, on: Option<ClusterId>) -> ClusterId {
    let body = json!({"name": name, "templates": ["dense@1"]});
    let made = shop.ann.post("/api/v1/environments", body).await.expect(202);
    let high = made["resources"].as_array().unwrap().iter().find(|one| one["name"] == "high-0");
    let high = high.unwrap()["id"].as_str().unwrap().parse().unwrap();
    let db = shop.paddock.db();
    let on = match on {
        Some(on) => on,
        None => rows::cluster(db, None, Resources::from([("cpu", 9)])).await.id,
    };
    let mut read = db.read().await.unwrap();
    let one = store::resource::get(&mut read, Scope::All, high).await.unwrap();
    drop(read);
    let new = rows::new_deployment(Some(on), None, Resources::default(), 0);
    let deployment = rows::deployment(db, one.organization_id, &new).await;
    let mut tx = db.begin(Actor::Server).await.unwrap();
    let link = Link { kind: "deployment".into(), id: deployment.id.to_string() };
    store::resource::set_link(&mut tx, one.id, one.fence, Some(&link)).await.unwrap();
    tx.commit().await.unwrap();
    on
}

on_both_engines! {
    async fn deployment_depends_on_its_cluster(engine: Engine) {
        let world = World::new(engine).await;
        let (cluster, deployment) = (&world.ours.cluster, &world.ours.deployment);
        let needs = graph(&world.ann, &format!("subject={deployment}")).await;
        assert_eq!(ids(&needs), [deployment, cluster]);
        assert_eq!(needs["edges"], json!([{"from": deployment, "to": cluster, "why": "runs on"}]));
        assert_eq!(needs["truncated"], false);
        assert_eq!(needs["nodes"][0]["status"], "running");
        assert_eq!(needs["nodes"][1]["href"], format!("/api/v1/clusters/{cluster}"));
        let breaks = graph(&world.ann, "subject=cluster/main&direction=dependents&depth=1").await;
        assert!(ids(&breaks).contains(&deployment.as_str()), "{breaks:#}");
        let instance = graph(&world.ann, "subject=instance/mine&direction=dependencies").await;
        assert_eq!(instance["nodes"][0]["id"], world.ours.instance.as_str());
        assert_eq!(instance["nodes"][1]["kind"], "cluster");
    }

    async fn graph_has_the_requested_format(engine: Engine) {
        let world = World::new(engine).await;
        let (ann, subject) = (&world.ann, format!("subject={}", world.ours.deployment));
        for (format, accept, want) in [
            ("", None, "application/json"),
            ("&format=json", Some("image/svg+xml"), "application/json"),
            ("&format=dot", None, "text/vnd.graphviz"),
            ("&format=svg", None, "image/svg+xml"),
            ("", Some("text/vnd.graphviz"), "text/vnd.graphviz"),
            ("", Some("image/svg+xml;q=0.9, application/json"), "image/svg+xml"),
            ("", Some("text/html, */*"), "application/json"),
        ] {
            let kind = kind_of(ann, &format!("{subject}{format}"), accept).await;
            assert_eq!(kind, want, "{format} {accept:?}");
        }
    }

    async fn oversized_graph_is_truncated(engine: Engine) {
        let shop = Shop::still(engine).await;
        shop.publish(DENSE).await.expect(201);
        let subject = "subject=cluster/main&direction=dependents";
        let mut cluster = None;
        for name in ["one", "two"] {
            cluster = Some(dense(&shop, name, cluster).await);
            let seen = graph(&shop.ann, subject).await;
            // The first environment exceeds the limit of edges; the edges of the second are not
            // read.
            assert_eq!(seen["truncated"], name == "two", "{seen:#}");
        }
    }

    async fn graph_excludes_other_organizations(engine: Engine) {
        let world = World::new(engine).await;
        let theirs = &world.theirs;
        for id in [&theirs.cluster, &theirs.deployment, &theirs.instance] {
            let answer = world.ann.get(&format!("/api/v1/graph?subject={id}")).await;
            refused(&answer, id);
            assert_eq!(answer.status, 404);
            world.zoe.get(&format!("/api/v1/graph?subject={id}")).await.expect(200);
            world.admin.get(&format!("/api/v1/graph?subject={id}")).await.expect(200);
        }
        let query = format!("subject={}&direction=dependents", world.ours.cluster);
        let seen = graph(&world.ann, &query).await;
        for id in [&theirs.cluster, &theirs.deployment, &theirs.instance] {
            assert!(!ids(&seen).contains(&id.as_str()), "{seen:#}");
        }
        // Two clusters share the name: each owner gets their own, the administrator must specify
        // which.
        assert_eq!(graph(&world.zoe, "subject=cluster/main").await["nodes"][0]["id"], theirs.cluster.as_str());
        let several = world.admin.get("/api/v1/graph?subject=cluster/main").await;
        names_field(&several, "subject", "several");
        assert!(several.json.to_string().contains(theirs.cluster.as_str()), "{:#}", several.json);
    }

    async fn invalid_graph_request_names_the_allowed_values(engine: Engine) {
        let world = World::new(engine).await;
        let good = format!("subject={}", world.ours.cluster);
        for (query, field) in [
            (String::new(), "subject"),
            ("subject=".into(), "subject"),
            ("subject=x".into(), "subject"),
            ("subject=cluster/".into(), "subject"),
            ("subject=rhino/x".into(), "subject"),
            ("subject=user/ann".into(), "subject"),
            (format!("{good}&direction=sideways"), "direction"),
            (format!("{good}&direction="), "direction"),
            (format!("{good}&depth=0"), "depth"),
            (format!("{good}&depth=2001"), "depth"),
            (format!("{good}&depth=deep"), "depth"),
            (format!("{good}&format=png"), "format"),
        ] {
            let answer = world.ann.get(&format!("/api/v1/graph?{query}")).await;
            names_field(&answer, field, &query);
        }
        for query in [
            "subject=9m4e2mr0ui3e8a215n4g".to_owned(),
            "subject=cluster/nothing".into(),
            "subject=shop@1.0.0".into(),
            "subject=template/shop@1.0.0".into(),
            format!("subject={}", world.ours.organization),
            format!("subject={}", world.ours.invite),
        ] {
            let answer = world.ann.get(&format!("/api/v1/graph?{query}")).await;
            refused(&answer, &query);
            assert_eq!(answer.status, 404, "{query}");
        }
        world.paddock.client.get(&format!("/api/v1/graph?{good}")).await.expect(401);
    }
}
