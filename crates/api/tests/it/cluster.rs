//! Clusters: create, update, delete.

use serde_json::json;
use testing::on_both_engines;

use crate::world::{cluster_path, deployment_path, start};

on_both_engines! {
    async fn cluster_becomes_ready_with_a_status_reason(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let body = json!({
            "name": " main ", "capacity": {"cpu": 1}, "labels": {"team": "shop"}, "region": "here",
        });
        let made = ann.post("/api/v1/clusters", body).await.expect(201);
        assert_eq!((&made["name"], &made["status"]), (&json!("main"), &json!("accepted")));
        let me = ann.get("/user/").await.text("id");
        assert_eq!(made["created_by"], format!("user:{me}"));
        let path = cluster_path(made["id"].as_str().unwrap());
        let ready = paddock.until(&ann, &path, "status", "ready").await;
        assert_eq!((&ready["labels"]["team"], &ready["region"]), (&json!("shop"), &json!("here")));
        assert_eq!((&ready["reason_code"], &ready["status_reason"]), (&json!("AsExpected"), &json!("")));
        // Kargo returns the same cluster with its own field names.
        let kargo = ann.get(&format!("/cluster/{}/", ready["id"].as_str().unwrap())).await.expect(200);
        assert_eq!((&kargo["cluster_name"], &kargo["status"]), (&json!("main"), &json!("ready")));
    }

    async fn members_may_create_and_delete_clusters(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mia = paddock.member(&ann, "mia").await;
        let cluster = paddock.cluster(&mia, json!({"cpu": 1})).await;
        let path = cluster_path(&cluster);
        assert_eq!(ann.patch(&path, json!({"name": "ours"})).await.expect(200)["name"], "ours");
        let labelled = mia.patch(&path, json!({"labels": {"a": "b"}})).await.expect(200);
        assert_eq!((&labelled["name"], &labelled["labels"]), (&json!("ours"), &json!({"a": "b"})));
    }

    async fn cluster_with_deployments_cannot_be_deleted(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 1})).await;
        let (path, kargo) = (cluster_path(&cluster), format!("/cluster/{cluster}/"));
        let mut ids = Vec::new();
        // A running and a pending deployment both prevent the deletion.
        for _ in 0..2 {
            let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}});
            ids.push(ann.post("/api/v1/deployments", body).await.text("id"));
        }
        for id in ids.iter().rev() {
            for path in [&path, &kargo] {
                let refused = ann.delete(path).await.expect(409);
                assert!(refused["detail"].as_str().unwrap().contains("deployments"), "{refused:#}");
            }
            ann.delete(&deployment_path(id)).await.expect(202);
            paddock.until_deleted(&ann, &deployment_path(id)).await;
        }
        assert_eq!(ann.delete(&path).await.expect(202)["status"], "deprovisioning");
        ann.get(&kargo).await.expect(404);
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}});
        let late = ann.post("/api/v1/deployments", body).await.status;
        assert!([404, 409].contains(&late), "{late}");
        paddock.until_deleted(&ann, &path).await;
    }

    async fn kargo_hides_clusters_being_deleted(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        let body = json!({"cluster_name": "x", "resource": {"cpu": 1}});
        let id = ann.put("/cluster/", body).await.text("id");
        ann.delete(&format!("/cluster/{id}/")).await.expect(202);
        assert_eq!(ann.get("/cluster/").await.expect(200)["total"], 0);
        for method in ["GET", "DELETE"] {
            let request = ann.request(method, &format!("/cluster/{id}/"));
            assert_eq!(ann.send(request).await.status, 404, "{method}");
        }
        let body = json!({"resource": {"cpu": 1}});
        ann.post(&format!("/cluster/{id}/resource/"), body).await.expect(404);
        let body = json!({"cluster_id": id, "resource": {"cpu": 1}});
        ann.put("/deployment/", body).await.expect(404);
    }

    async fn cluster_list_is_filtered_by_name_and_status(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        for name in ["one", "two", "two", "O'Brien; DROP TABLE cluster --", "50%"] {
            let body = json!({"name": name, "capacity": {"cpu": 1}});
            let id = ann.post("/api/v1/clusters", body).await.text("id");
            paddock.until(&ann, &cluster_path(&id), "status", "ready").await;
        }
        for (query, count) in [
            ("", 5),
            ("name=one", 1),
            ("name=two", 2),
            ("name=t", 0),
            ("name=%25", 0),
            ("name=50%25", 1),
            ("name=O%27Brien%3B+DROP+TABLE+cluster+--", 1),
            ("status=ready", 5),
            ("status=ready&name=two&limit=1", 1),
            ("status=failed", 0),
        ] {
            let page = ann.get(&format!("/api/v1/clusters?{query}")).await.expect(200);
            assert_eq!(page["items"].as_array().unwrap().len(), count, "{query}");
        }
    }
}
