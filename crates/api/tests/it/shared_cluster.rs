//! The shared cluster `local`: used by all organizations in isolation, maintained by the
//! administrator.

use model::{Quantity, Resources};
use serde_json::json;
use testing::{Client, Engine, TestPaddock, on_both_engines};

use crate::accounting::assert_consistent;
use crate::placement::until_reason;
use crate::world::{cluster_path, deploy_running, deployment_path, start};

/// Starts a server with the shared cluster, and clients.
async fn shared<const N: usize>(
    engine: Engine,
    machine: [(&str, i64); N],
) -> (TestPaddock, Client) {
    let (paddock, ann) = start(engine).await;
    let mut machine = Resources::from(machine);
    machine.set("ram", Quantity::whole(64 << 30));
    engine::local_cluster::ensure(paddock.db(), &machine).await.unwrap();
    (paddock, ann)
}

on_both_engines! {
    async fn shared_cluster_is_used_by_all_and_changed_by_the_administrator(engine: Engine) {
        let (paddock, ann) = shared(engine, [("cpu", 2)]).await;
        let (zoe, admin) = (paddock.owner("zoe").await, paddock.admin().await);
        let list = ann.get("/api/v1/clusters?name=local").await.expect(200);
        let local = list["items"][0].clone();
        assert_eq!((&local["shared"], &local["organization_id"]), (&json!(true), &json!(null)));
        let id = local["id"].as_str().unwrap();
        let path = cluster_path(id);
        paddock.until(&ann, &path, "status", "ready").await;
        // Kargo lists only the organization's own clusters; the shared one can still be addressed.
        assert_eq!(ann.get("/cluster/").await.expect(200)["total"], 0);
        zoe.get(&format!("/cluster/{id}/")).await.expect(200);

        let mut mine = Vec::new();
        for client in [&ann, &zoe] {
            let body = json!({"cluster_id": id, "resource": {"cpu": 1}, "image": "web:1"});
            let deployment = client.put("/deployment/", body).await.text("id");
            paddock.until(client, &deployment_path(&deployment), "status", "running").await;
            mine.push(deployment);
        }
        ann.get(&deployment_path(&mine[1])).await.expect(404);
        let page = ann.get(&format!("/api/v1/deployments?cluster_id={id}")).await.expect(200);
        assert_eq!(page["items"].as_array().unwrap().len(), 1);
        let gone = ann.delete(&format!("/deployment/?clusterId={id}")).await.expect(202);
        assert_eq!(gone["ids"], json!([mine[0]]));
        paddock.until_deleted(&ann, &deployment_path(&mine[0])).await;
        zoe.get(&deployment_path(&mine[1])).await.expect(200);

        for refused in [
            ann.patch(&path, json!({"name": "mine"})).await,
            ann.patch(&path, json!({"capacity": {"cpu": 100}})).await,
            ann.delete(&path).await,
            ann.delete(&format!("/cluster/{id}/")).await,
            ann.post(&format!("{path}/capacity/take"), json!({"resources": {"cpu": 1}})).await,
            ann.post(&format!("/cluster/{id}/resource/"), json!({"resource": {"cpu": 1}})).await,
        ] {
            assert_eq!(refused.status, 403, "{}: {:#}", refused.call, refused.json);
        }
        admin.patch(&path, json!({"capacity": {"cpu": 3}})).await.expect(200);
        let body = json!({"resources": {"cpu": 1}});
        admin.post(&format!("{path}/capacity/take"), body).await.expect(200);
        assert_consistent(&paddock).await;
    }

    async fn events_of_the_shared_cluster_are_visible_to_the_administrator(engine: Engine) {
        let (paddock, ann) = shared(engine, [("cpu", 2)]).await;
        let admin = paddock.admin().await;
        let of_clusters = "/api/v1/events?kind=cluster";
        assert_eq!(ann.get(of_clusters).await.expect(200)["items"], json!([]));
        let seen = admin.get(of_clusters).await.expect(200);
        assert_eq!(seen["items"][0]["actor"], "server");
    }

    async fn unpinned_deployment_may_use_the_shared_cluster(engine: Engine) {
        let (paddock, ann) = shared(engine, [("cpu", 1)]).await;
        let zoe = paddock.owner("zoe").await;
        let body = json!({"resources": {"cpu": 1}});
        let _first = deploy_running(&paddock, &ann, body.clone()).await;
        // Full now: an organization's own cluster hosts only its owner's workloads.
        let second = zoe.post("/api/v1/deployments", body.clone()).await.text("id");
        until_reason(&zoe, &second, "Waiting for capacity").await;
        let third = ann.post("/api/v1/deployments", body).await.text("id");
        let own = paddock.cluster(&ann, json!({"cpu": 8})).await;
        let placed = paddock.until(&ann, &deployment_path(&third), "status", "running").await;
        assert_eq!(placed["cluster_id"], own);
        assert_eq!(zoe.get(&deployment_path(&second)).await.expect(200)["status"], "queued");
        assert_consistent(&paddock).await;
    }

    async fn preemption_by_another_organization_does_not_name_the_preemptor(engine: Engine) {
        let (paddock, ann) = shared(engine, [("cpu", 1)]).await;
        let zoe = paddock.owner("zoe").await;
        let body = json!({"name": "victim", "resources": {"cpu": 1}});
        let victim = ann.post("/api/v1/deployments", body).await.text("id");
        let path = deployment_path(&victim);
        paddock.until(&ann, &path, "status", "running").await;
        let body = json!({"name": "zoes-secret", "resources": {"cpu": 1}, "priority": 97});
        let urgent = deploy_running(&paddock, &zoe, body).await;
        let preempted = paddock.until(&ann, &path, "status", "preempted").await;
        assert_eq!(preempted["reason_code"], "Preempted");
        let told = preempted["status_reason"].as_str().unwrap();
        assert!(told.contains("a higher-priority workload of another organization"), "{told}");
        let history = ann.get(&format!("{path}/history")).await.expect(200).to_string();
        let events = ann.get("/api/v1/events?limit=1000").await.expect(200).to_string();
        let explained = ann.get(&format!("{path}/explain")).await.expect(200).to_string();
        let shown = preempted.to_string() + &history + &events + &explained;
        for secret in ["zoes-secret", urgent.as_str(), ":97"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}
