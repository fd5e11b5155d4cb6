//! Capacity: exact amounts of any type, and manual reservations.

use serde_json::{Value, json};
use testing::{Client, TestPaddock, on_both_engines};

use crate::accounting::assert_consistent;
use crate::placement::until_reason;
use crate::world::{cluster_path, deploy_running, deployment_path, names_field, start};

on_both_engines! {
    async fn amounts_are_exact_in_every_notation(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        let amounts = json!({
            "cpu": " 1", "gpu": "500m", "ram": "4Gi", "disk": "1.5k", "nvidia.com/gpu": 0.3,
            "tokens": 4_000_000_000_000_000_i64, "tiny": 0.001, "none": 0, "spelled": "007.500 ",
        });
        let shown = json!({
            "cpu": 1, "gpu": 0.5, "ram": 4_294_967_296_i64, "disk": 1500, "nvidia.com/gpu": 0.3,
            "tokens": 4_000_000_000_000_000_i64, "tiny": 0.001, "none": 0, "spelled": 7.5,
        });
        let kargo = ann.put("/cluster/", json!({"cluster_name": "k", "resource": amounts})).await;
        let platform = ann.post("/api/v1/clusters", json!({"name": "p", "capacity": amounts})).await;
        for (given, field) in [(kargo.expect(201), "resource"), (platform.expect(201), "capacity")] {
            for (kind, total) in shown.as_object().unwrap() {
                let expected = json!({"total": total, "used": 0, "free": total});
                assert_eq!(given[field][kind], expected, "{kind}");
            }
        }
    }

    async fn decimal_amounts_add_up_exactly(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 0.3})).await;
        let path = format!("/cluster/{cluster}/resource/");
        for amount in [json!(0.1), json!("200m")] {
            ann.post(&path, json!({"resource": {"cpu": amount}})).await.expect(200);
        }
        assert_eq!(cpu(&ann, &cluster).await, json!({"total": 0.3, "used": 0.3, "free": 0}));
        ann.post(&path, json!({"resource": {"cpu": 0.001}})).await.expect(409);
        for _ in 0..3 {
            ann.call("DELETE", &path, &json!({"resource": {"cpu": 0.1}})).await.expect(200);
        }
        assert_eq!(cpu(&ann, &cluster).await, json!({"total": 0.3, "used": 0, "free": 0.3}));
        assert_consistent(&paddock).await;
    }

    async fn reservation_is_all_or_nothing(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 4, "gpu": 1})).await;
        let path = format!("{}/capacity", cluster_path(&cluster));
        let before = ann.get(&cluster_path(&cluster)).await.expect(200);
        for request in [json!({"cpu": 1, "gpu": 2}), json!({"cpu": 1, "quantum": 1}), json!({"cpu": 5})] {
            let body = json!({"resources": request});
            let check = ann.post(&format!("{path}/check"), body.clone()).await.expect(200);
            assert_eq!(check["available"], false);
            let refused = ann.post(&format!("{path}/take"), body).await.expect(409);
            let missing = check["missing"].as_object().unwrap();
            assert_eq!(missing.len(), 1);
            let kind = missing.keys().next().unwrap();
            assert!(refused["detail"].as_str().unwrap().contains(kind), "{refused:#}");
        }
        assert_eq!(ann.get(&cluster_path(&cluster)).await.expect(200), before);
        let check = ann.post(&format!("{path}/check"), json!({"resources": {"cpu": 4, "gpu": 1}})).await;
        assert_eq!(check.expect(200), json!({"available": true, "missing": {}}));
    }

    async fn release_never_frees_capacity_of_deployments(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 4})).await;
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 2}, "image": "web:1"});
        let deployment = deploy_running(&paddock, &ann, body).await;
        let path = format!("/cluster/{cluster}/resource/");
        let by = |amount: f64| json!({"resource": {"cpu": amount}});
        ann.call("DELETE", &path, &by(0.001)).await.expect(409);
        ann.post(&path, by(1.5)).await.expect(200);
        ann.call("DELETE", &path, &by(1.501)).await.expect(409);
        assert_eq!(cpu(&ann, &cluster).await, json!({"total": 4, "used": 3.5, "free": 0.5}));
        ann.call("DELETE", &path, &by(1.5)).await.expect(200);
        assert_eq!(cpu(&ann, &cluster).await["used"], 2);
        assert_consistent(&paddock).await;
        ann.delete(&format!("/deployment/{deployment}/")).await.expect(202);
        paddock.until_deleted(&ann, &deployment_path(&deployment)).await;
        assert_eq!(cpu(&ann, &cluster).await["used"], 0);
        assert_consistent(&paddock).await;
    }

    async fn only_the_administrator_changes_totals_and_not_below_usage(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, admin) = (paddock.owner("ann").await, paddock.admin().await);
        let cluster = paddock.cluster(&ann, json!({"cpu": 4})).await;
        let path = cluster_path(&cluster);
        let body = json!({"resource": {"cpu": 3}});
        ann.post(&format!("/cluster/{cluster}/resource/"), body).await.expect(200);
        ann.patch(&path, json!({"capacity": {"cpu": 8}})).await.expect(403);
        ann.patch(&path, json!({"name": "x", "capacity": {"cpu": 8}})).await.expect(403);
        assert_eq!(ann.get(&path).await.expect(200)["name"], "main");
        let refused = admin.patch(&path, json!({"capacity": {"cpu": 2.999}})).await.expect(409);
        assert!(refused["detail"].as_str().unwrap().contains("in use"), "{refused:#}");
        admin.patch(&path, json!({"capacity": {"gpu": 1, "cpu": 1}})).await.expect(409);
        let shown = admin.patch(&path, json!({"capacity": {"cpu": 3, "gpu": "500m"}})).await.expect(200);
        assert_eq!(shown["capacity"]["cpu"], json!({"total": 3, "used": 3, "free": 0}));
        assert_eq!(shown["capacity"]["gpu"], json!({"total": 0.5, "used": 0, "free": 0.5}));
        names_field(&admin.patch(&path, json!({"capacity": {}})).await, "capacity", "nothing");
        assert_consistent(&paddock).await;
    }

    async fn added_capacity_starts_pending_deployments(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, admin) = (paddock.owner("ann").await, paddock.admin().await);
        let cluster = paddock.cluster(&ann, json!({"cpu": 1})).await;
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 2}});
        let id = ann.post("/api/v1/deployments", body).await.text("id");
        let path = deployment_path(&id);
        until_reason(&ann, &id, "Cannot be placed on main: needs 2 cpu; exceeds the cluster by 1 cpu").await;
        admin.patch(&cluster_path(&cluster), json!({"capacity": {"cpu": 2}})).await.expect(200);
        paddock.until(&ann, &path, "status", "running").await;
        assert_consistent(&paddock).await;
    }
}

async fn cpu(client: &Client, cluster: &str) -> Value {
    client.get(&cluster_path(cluster)).await.expect(200)["capacity"]["cpu"].clone()
}
