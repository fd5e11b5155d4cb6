//! Placement: order, reasons of pending deployments, and preemption.

use serde_json::{Value, json};
use testing::{Client, TestPaddock, on_both_engines};

use crate::accounting::assert_consistent;
use crate::world::{deploy, deploy_running, deployment_path, start, until_shown};

on_both_engines! {
    async fn queue_is_ordered_by_priority_then_age(engine: Engine) {
        let (paddock, ann, cluster) = one_cpu(engine).await;
        let first = deploy_running(&paddock, &ann, request(&cluster, 100, None)).await;
        let mut line = Vec::new();
        for priority in [0, 5, -3, 5] {
            line.push(deploy(&ann, request(&cluster, priority, None)).await);
        }
        let mut running = first;
        for next in [1, 3, 0, 2] {
            ann.delete(&deployment_path(&running)).await.expect(202);
            paddock.until(&ann, &deployment_path(&line[next]), "status", "running").await;
            running.clone_from(&line[next]);
        }
        assert_consistent(&paddock).await;
    }

    async fn pending_deployment_names_the_shortage(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 2, "gpu": 1})).await;
        deploy(&ann, json!({"cluster_id": cluster, "resources": {"cpu": 1, "gpu": 1}})).await;
        for (request, reason) in [
            (json!({"cpu": 2}),
             "Waiting for capacity on main: needs 2 cpu; short of 1 cpu."),
            (json!({"cpu": 1.5, "gpu": 1}),
             "Waiting for capacity on main: needs 1.5 cpu, 1 gpu; short of 0.5 cpu, 1 gpu."),
            (json!({"gpu": 3}),
             "Cannot be placed on main: needs 3 gpu; exceeds the cluster by 2 gpu."),
            (json!({"tpu": 1}),
             "Cannot be placed on main: needs 1 tpu; exceeds the cluster by 1 tpu."),
        ] {
            let id = deploy(&ann, json!({"cluster_id": cluster, "resources": request})).await;
            assert_eq!(until_reason(&ann, &id, reason).await["status"], "queued");
        }
        // A request that fits overtakes those that do not.
        let _id = deploy_running(&paddock, &ann, json!({"cluster_id": cluster, "resources": {"cpu": 1}})).await;
        assert_consistent(&paddock).await;
    }

    async fn lower_priority_is_preempted_and_restarted(engine: Engine) {
        let (paddock, ann, cluster) = one_cpu(engine).await;
        for image in [None, Some("web:1")] {
            let low = deploy_running(&paddock, &ann, request(&cluster, 1, image)).await;
            let high = deploy_running(&paddock, &ann, request(&cluster, 2, image)).await;
            let preempted = paddock.until(&ann, &deployment_path(&low), "status", "preempted").await;
            assert_eq!(preempted["reason_code"], "Preempted");
            let reason = preempted["status_reason"].as_str().unwrap();
            assert!(reason.contains("(priority 2)"), "{reason}");
            let history = ann.get(&format!("{}/history", deployment_path(&low))).await.expect(200);
            let of = |e: &&Value| e["type"] == "deployment.preempted";
            let event = history["items"].as_array().unwrap().iter().find(of).unwrap();
            assert_eq!(event["data"]["reason_code"], "Preempted", "{event:#}");
            assert_eq!(event["data"]["status_reason"], reason);
            assert_consistent(&paddock).await;

            ann.delete(&deployment_path(&high)).await.expect(202);
            let back = paddock.until(&ann, &deployment_path(&low), "status", "running").await;
            assert!(back["started_at"].is_string());
            assert_consistent(&paddock).await;
            ann.delete(&deployment_path(&low)).await.expect(202);
            paddock.until_deleted(&ann, &deployment_path(&low)).await;
        }
    }

    async fn equal_priority_is_never_preempted(engine: Engine) {
        let (paddock, ann, cluster) = one_cpu(engine).await;
        let first = deploy(&ann, request(&cluster, 7, Some("web:1"))).await;
        let runs = paddock.until(&ann, &deployment_path(&first), "status", "running").await;
        for priority in [7, 6] {
            let id = deploy(&ann, request(&cluster, priority, Some("web:1"))).await;
            until_reason(&ann, &id, "Waiting for capacity on main: needs 1 cpu, 64Mi ram; short of 1 cpu.").await;
        }
        assert_eq!(ann.get(&deployment_path(&first)).await.expect(200), runs);
        assert_consistent(&paddock).await;
    }

    async fn no_preemption_without_sufficient_gain(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 3})).await;
        let keeper = deploy(&ann, request(&cluster, 9, None)).await;
        let low = deploy(&ann, request(&cluster, 0, None)).await;
        for id in [&keeper, &low] {
            paddock.until(&ann, &deployment_path(id), "status", "running").await;
        }
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 3}, "priority": 5});
        let big = deploy(&ann, body).await;
        until_reason(&ann, &big, "Waiting for capacity on main: needs 3 cpu; short of 2 cpu.").await;
        assert_eq!(ann.get(&deployment_path(&low)).await.expect(200)["status"], "running");
        assert_consistent(&paddock).await;
    }

    async fn default_is_requested_if_a_cluster_counts_its_type(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let body = json!({"name": "cpus", "capacity": {"cpu": 4}});
        let cpus = ann.post("/api/v1/clusters", body).await.text("id");
        let pinned = json!({"cluster_id": cpus, "image": "web:1", "resources": {"cpu": 1}});
        for body in [pinned.clone(), json!({"image": "web:1"})] {
            let id = deploy(&ann, body).await;
            let runs = paddock.until(&ann, &deployment_path(&id), "status", "running").await;
            assert_eq!(runs["resources"]["ram"], Value::Null, "{runs:#}");
        }
        let both = paddock.cluster(&ann, json!({"cpu": 4, "ram": "1Gi"})).await;
        let id = deploy(&ann, json!({"image": "web:1"})).await;
        let runs = paddock.until(&ann, &deployment_path(&id), "status", "running").await;
        assert_eq!((&runs["resources"]["ram"], &runs["cluster_id"]), (&json!(64 << 20), &json!(both)));
        let id = deploy(&ann, pinned).await;
        let runs = paddock.until(&ann, &deployment_path(&id), "status", "running").await;
        assert_eq!(runs["resources"]["ram"], Value::Null, "{runs:#}");
        assert_consistent(&paddock).await;
    }

    async fn unpinned_deployment_goes_to_a_cluster_with_free_capacity(engine: Engine) {
        let (paddock, ann, small) = one_cpu(engine).await;
        let big = paddock.cluster(&ann, json!({"cpu": 4})).await;
        let body = json!({"resources": {"cpu": 2}, "image": "web:1"});
        for _ in 0..2 {
            let id = deploy(&ann, body.clone()).await;
            let runs = paddock.until(&ann, &deployment_path(&id), "status", "running").await;
            assert_eq!(runs["cluster_id"], big);
        }
        let waits = deploy(&ann, body).await;
        let shown = until_reason(&ann, &waits, "Waiting for capacity: needs 2 cpu, 64Mi ram.").await;
        assert_eq!(shown["cluster_id"], Value::Null);
        let new = paddock.cluster(&ann, json!({"cpu": 2})).await;
        let runs = paddock.until(&ann, &deployment_path(&waits), "status", "running").await;
        assert_eq!(runs["cluster_id"], new);
        let id = deploy(&ann, json!({"resources": {"cpu": 1}})).await;
        let runs = paddock.until(&ann, &deployment_path(&id), "status", "running").await;
        assert_eq!(runs["cluster_id"], small);
        assert_consistent(&paddock).await;
    }

    async fn priority_change_moves_a_deployment_in_the_queue(engine: Engine) {
        let (paddock, ann, cluster) = one_cpu(engine).await;
        let running = deploy_running(&paddock, &ann, request(&cluster, 10, None)).await;
        let older = deploy(&ann, request(&cluster, 0, None)).await;
        let younger = deploy(&ann, request(&cluster, 0, None)).await;
        ann.patch(&deployment_path(&younger), json!({"priority": 5})).await.expect(200);
        ann.delete(&deployment_path(&running)).await.expect(202);
        paddock.until(&ann, &deployment_path(&younger), "status", "running").await;
        // With a sufficient priority it starts immediately.
        ann.patch(&deployment_path(&older), json!({"priority": 6})).await.expect(200);
        paddock.until(&ann, &deployment_path(&older), "status", "running").await;
        paddock.until(&ann, &deployment_path(&younger), "status", "preempted").await;
        // A running deployment may sink below a pending one.
        ann.patch(&deployment_path(&older), json!({"priority": 4})).await.expect(200);
        paddock.until(&ann, &deployment_path(&younger), "status", "running").await;
        assert_consistent(&paddock).await;
    }

    async fn only_the_needed_victims_are_preempted(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 4})).await;
        let mut running = Vec::new();
        for priority in [3, 1, 2, 1] {
            let id = deploy_running(&paddock, &ann, request(&cluster, priority, Some("web:1"))).await;
            running.push(id);
        }
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 2}, "priority": 9});
        let _high = deploy_running(&paddock, &ann, body).await;
        for (id, status) in running.iter().zip(["running", "preempted", "running", "preempted"]) {
            paddock.until(&ann, &deployment_path(id), "status", status).await;
        }
        assert_consistent(&paddock).await;
    }
}

/// Polls until the reason starts with `start`. Returns the deployment.
pub(crate) async fn until_reason(client: &Client, id: &str, start: &str) -> Value {
    let begins = |now: &Value| now["status_reason"].as_str().unwrap().starts_with(start);
    until_shown(client, &deployment_path(id), begins).await
}

/// Starts a server with ann and her cluster of one cpu.
async fn one_cpu(engine: testing::Engine) -> (TestPaddock, Client, String) {
    let (paddock, ann) = start(engine).await;
    let cluster = paddock.cluster(&ann, json!({"cpu": 1})).await;
    (paddock, ann, cluster)
}

fn request(cluster: &str, priority: i64, image: Option<&str>) -> Value {
    let resources = json!({"cpu": 1});
    json!({"cluster_id": cluster, "resources": resources, "priority": priority, "image": image})
}
