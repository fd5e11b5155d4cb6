//! Deployments: create, run, complete, delete.

use std::time::Duration;

use agent::simulated;
use serde_json::{Value, json};
use testing::{Client, TestPaddock, TestSettings, on_both_engines};

use crate::accounting::assert_consistent;
use crate::world::{
    cluster_path, deploy, deploy_running, deployment_path, names_field, start, start_with,
};

on_both_engines! {
    async fn image_runs_on_the_requested_cluster(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 4, "ram": "8Gi"})).await;
        let body = json!({
            "cluster_id": cluster, "image": "registry.local:5000/shop/web:3", "priority": 3,
            "resources": {"cpu": "500m", "ram": "512Mi"}, "replicas": 3, "env": {"A": "1"},
            "command": ["serve", "--all"], "ports": [8080, 9090], "labels": {"team": "shop"},
        });
        let made = ann.post("/api/v1/deployments", body.clone()).await.expect(201);
        assert_eq!((&made["name"], &made["status"]), (&json!("web"), &json!("queued")));
        let path = deployment_path(made["id"].as_str().unwrap());
        paddock.until(&ann, &path, "status", "running").await;
        // Until then only some replicas run, and the reason says how many.
        let runs = paddock.until(&ann, &path, "status_reason", "").await;
        assert_eq!(runs["status"], "running");
        for field in ["cluster_id", "image", "priority", "replicas", "env", "command", "ports", "labels"] {
            assert_eq!(runs[field], body[field], "{field}");
        }
        let each = ["127.0.0.1:8080", "127.0.0.1:9090"];
        assert_eq!(runs["endpoints"], json!([each, each, each].concat()));
        let replicas = runs["replica_statuses"].as_array().unwrap();
        assert!(replicas.iter().all(|r| r["endpoints"] == json!(each) && r["node"] == "main"));
        assert!(runs["started_at"].is_string());
        // Replicas multiply the resources.
        let shown = ann.get(&cluster_path(&cluster)).await.expect(200);
        assert_eq!((&shown["capacity"]["cpu"]["used"], &shown["deployments"]), (&json!(1.5), &json!(1)));
        assert_consistent(&paddock).await;
    }

    async fn kargo_image_and_docker_path_are_aliases(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 4})).await;
        for (words, image) in [
            (json!({"image": "a:1"}), json!("a:1")),
            (json!({"docker_path": "b:1"}), json!("b:1")),
            (json!({"docker_path": "c:1", "image": "c:1"}), json!("c:1")),
            (json!({}), Value::Null),
        ] {
            let mut body = json!({"cluster_id": cluster, "resource": {"cpu": 1}});
            body.as_object_mut().unwrap().extend(words.as_object().unwrap().clone());
            let made = ann.put("/deployment/", body).await.expect(201);
            assert_eq!((&made["image"], &made["docker_path"]), (&image, &image));
        }
        let body = json!({"cluster_id": cluster, "resource": {}, "image": "a", "docker_path": "b"});
        names_field(&ann.put("/deployment/", body).await, "docker_path", "two images");
        let body = json!({"cluster_id": 17, "resource": {"cpu": 1}});
        ann.put("/deployment/", body).await.expect(404);
        assert_consistent(&paddock).await;
    }

    async fn deployment_without_image_only_reserves_capacity(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"gpu": 2})).await;
        let id = deploy(&ann, json!({"cluster_id": cluster, "resources": {"gpu": 2}})).await;
        let runs = paddock.until(&ann, &deployment_path(&id), "status", "running").await;
        assert_eq!((&runs["name"], &runs["endpoints"]), (&json!("reservation"), &json!([])));
        assert_eq!(runs["reason_code"], "ReservesCapacity");
        assert_eq!(runs["status_reason"], "Reserves capacity on main; runs no container.");
        assert_consistent(&paddock).await;
        let leaving = ann.delete(&deployment_path(&id)).await.expect(202);
        assert_eq!(leaving["status"], "deleting");
        ann.get(&deployment_path(&id)).await.expect(404);
        assert_consistent(&paddock).await;
    }

    async fn failing_image_sets_a_reason_and_frees_capacity(engine: Engine) {
        let runtime = simulated::Options { fail: Some("broken".into()), ..Default::default() };
        let (paddock, ann) = simulated_by(engine, runtime).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 1})).await;
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}, "image": "broken:1"});
        let id = deploy(&ann, body).await;
        let failed = paddock.until(&ann, &deployment_path(&id), "status", "failed").await;
        assert!(failed["status_reason"].as_str().unwrap().contains("broken:1"), "{failed:#}");
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}, "image": "good:1"});
        let _next = deploy_running(&paddock, &ann, body).await;
        assert_consistent(&paddock).await;
        assert_eq!(ann.get(&deployment_path(&id)).await.expect(200)["status"], "failed");
        ann.delete(&deployment_path(&id)).await.expect(202);
        paddock.until_deleted(&ann, &deployment_path(&id)).await;
        assert_consistent(&paddock).await;
    }

    async fn finished_deployment_is_completed_and_frees_capacity(engine: Engine) {
        let complete = Some("batch".into());
        let run_for = Duration::from_millis(100);
        let (paddock, ann) = simulated_by(engine, simulated::Options { complete, run_for, ..Default::default() }).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 1})).await;
        let mut ids = Vec::new();
        // One after the other: each frees capacity for the next.
        for _ in 0..3 {
            let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}, "image": "batch:1"});
            ids.push(deploy(&ann, body).await);
        }
        for id in &ids {
            let done = paddock.until(&ann, &deployment_path(id), "status", "completed").await;
            assert_eq!((&done["reason_code"], &done["status_reason"]), (&json!("AsExpected"), &json!("")));
        }
        // A completed replica is cleaned up first.
        while used(&ann, &cluster).await != 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_consistent(&paddock).await;
    }

    async fn capacity_is_held_until_the_container_has_stopped(engine: Engine) {
        let stop_delay = Duration::from_millis(400);
        let (paddock, ann) = simulated_by(engine, simulated::Options { stop_delay, ..Default::default() }).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 1})).await;
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}, "image": "web:1"});
        let id = deploy_running(&paddock, &ann, body).await;
        ann.delete(&deployment_path(&id)).await.expect(202);
        // A second deletion has no effect.
        ann.delete(&deployment_path(&id)).await.expect(202);
        assert_eq!(ann.get(&deployment_path(&id)).await.expect(200)["status"], "deleting");
        assert_eq!(used(&ann, &cluster).await, 1);
        paddock.until_deleted(&ann, &deployment_path(&id)).await;
        assert_eq!(used(&ann, &cluster).await, 0);
        assert_consistent(&paddock).await;
    }

    async fn pending_deployment_can_be_deleted_and_keeps_its_history(engine: Engine) {
        let start_delay = Duration::from_millis(500);
        let (paddock, ann) = simulated_by(engine, simulated::Options { start_delay, ..Default::default() }).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 1})).await;
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}, "image": "web:1"});
        let starting = deploy(&ann, body.clone()).await;
        paddock.until(&ann, &deployment_path(&starting), "status", "starting").await;
        let queued = deploy(&ann, body).await;
        for (id, last) in [(&queued, "deployment.deleted"), (&starting, "deployment.deleted")] {
            ann.delete(&deployment_path(id)).await.expect(202);
            paddock.until_deleted(&ann, &deployment_path(id)).await;
            let history = ann.get(&format!("{}/history", deployment_path(id))).await.expect(200);
            let types = history["items"].as_array().unwrap();
            assert_eq!(types[0]["type"], "deployment.created");
            assert_eq!(types.last().unwrap()["type"], last);
        }
        assert_eq!(used(&ann, &cluster).await, 0);
        assert_consistent(&paddock).await;
    }

    async fn bulk_deletion_is_limited_to_one_cluster(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mut clusters = Vec::new();
        for image in [json!("web:1"), Value::Null] {
            let cluster = paddock.cluster(&ann, json!({"cpu": 2})).await;
            for _ in 0..3 {
                deploy(&ann, json!({"cluster_id": cluster, "resources": {"cpu": 1}, "image": image})).await;
            }
            clusters.push(cluster);
        }
        let gone = ann.delete(&format!("/deployment/?clusterId={}", clusters[0])).await.expect(202);
        assert_eq!((&gone["deleted"], gone["ids"].as_array().unwrap().len()), (&json!(3), 3));
        for id in gone["ids"].as_array().unwrap() {
            paddock.until_deleted(&ann, &deployment_path(id.as_str().unwrap())).await;
        }
        let left = ann.get(&format!("/deployment/?cluster_id={}", clusters[1])).await.expect(200);
        assert_eq!((&left["total"], &used(&ann, &clusters[1]).await), (&json!(3), &json!(2)));
        names_field(&ann.delete("/deployment/").await, "clusterId", "without a cluster");
        assert_consistent(&paddock).await;
    }
}

async fn used(client: &Client, cluster: &str) -> Value {
    client.get(&cluster_path(cluster)).await.expect(200)["capacity"]["cpu"]["used"].clone()
}

async fn simulated_by(
    engine: testing::Engine,
    runtime: simulated::Options,
) -> (TestPaddock, Client) {
    start_with(engine, TestSettings { runtime, ..TestSettings::default() }).await
}
