//! ETags and `If-Match`: an update fails after a concurrent change.

use serde_json::json;
use testing::{Answer, Client, on_both_engines};

use crate::world::{World, deployment_path, refused, start};

on_both_engines! {
    async fn update_with_an_outdated_etag_is_rejected(engine: Engine) {
        let world = World::new(engine).await;
        for (path, change) in subjects(&world) {
            let seen = etag(&world.ann.get(&path).await);
            let changed = if_match(&world.ann, &path, &change, &seen).await;
            assert_eq!(changed.status, 200, "{path}: {:#}", changed.json);
            let now = etag(&changed);
            assert_ne!(now, seen, "{path}");
            assert_eq!(etag(&world.ann.get(&path).await), now, "{path}");
            let late = if_match(&world.ann, &path, &change, &seen).await;
            refused(&late, &path);
            assert_eq!(late.status, 412, "{path}");
            assert_eq!(etag(&world.ann.get(&path).await), now, "{path}");
        }
    }

    async fn if_match_star_or_absent_matches_and_garbage_is_rejected(engine: Engine) {
        let world = World::new(engine).await;
        for (path, change) in subjects(&world) {
            assert_eq!(world.ann.patch(&path, change.clone()).await.status, 200, "{path}");
            assert_eq!(if_match(&world.ann, &path, &change, "*").await.status, 200, "{path}");
            let now = etag(&world.ann.get(&path).await);
            for nonsense in ["", "\"\"", "x", "\"x\"", "\"1\", \"2\"", "9999999999999999999999"] {
                let answer = if_match(&world.ann, &path, &change, nonsense).await;
                refused(&answer, &path);
                assert_eq!(answer.status, 400, "{path} {nonsense:?}");
                assert!(answer.json["detail"].as_str().unwrap().contains("If-Match"));
            }
            assert_eq!(etag(&world.ann.get(&path).await), now, "{path}");
        }
    }

    async fn status_changes_keep_the_etag(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 1})).await;
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}, "image": "web:1"});
        let made = ann.post("/api/v1/deployments", body).await;
        let path = deployment_path(&made.text("id"));
        paddock.until(&ann, &path, "status", "running").await;
        let answer = if_match(&ann, &path, &json!({"priority": 1}), &etag(&made)).await;
        assert_eq!(answer.status, 200, "{:#}", answer.json);
    }
}

fn subjects(world: &World) -> Vec<(String, serde_json::Value)> {
    let on = &world.ours;
    vec![
        (format!("/api/v1/organizations/{}", on.organization), json!({"name": "Acme"})),
        (format!("/api/v1/users/{}", on.user), json!({"display_name": "Ann"})),
        (format!("/api/v1/clusters/{}", on.cluster), json!({"labels": {"a": "b"}})),
        (format!("/api/v1/deployments/{}", on.deployment), json!({"priority": 2})),
    ]
}

async fn if_match(client: &Client, path: &str, change: &serde_json::Value, seen: &str) -> Answer {
    client.send(client.request("PATCH", path).header("if-match", seen).json(change)).await
}

fn etag(answer: &Answer) -> String {
    answer.headers["etag"].to_str().unwrap().to_owned()
}
