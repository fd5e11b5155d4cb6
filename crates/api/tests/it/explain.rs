//! Explanations, dry runs, the queue and logs.

use agent::simulated;
use serde_json::{Value, json};
use testing::{Client, TestPaddock, TestSettings, on_both_engines};

use crate::world::{cluster_path, deploy, deploy_running, deployment_path, start, start_with};

fn request(cluster: &str, cpu: i64, priority: i64) -> Value {
    json!({"cluster_id": cluster, "resources": {"cpu": cpu}, "image": "web:1", "priority": priority})
}

async fn explain(client: &Client, id: &str) -> Value {
    client.get(&format!("{}/explain", deployment_path(id))).await.expect(200)
}

on_both_engines! {
    async fn explanation_names_shortages_and_blockers(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 4})).await;
        let mut body = request(&cluster, 3, 0);
        body["run_for"] = json!(3600);
        let first = deploy(&ann, body).await;
        let runs = paddock.until(&ann, &deployment_path(&first), "status", "running").await;
        let second = deploy(&ann, request(&cluster, 2, 0)).await;
        let third = deploy(&ann, request(&cluster, 2, 0)).await;
        let never = deploy(&ann, request(&cluster, 5, 0)).await;
        let why = explain(&ann, &second).await["replicas"][0].clone();
        assert_eq!((&why["verdict"], &why["position"]), (&json!("not_now"), &json!(1)));
        assert_eq!(why["shortages"][0]["missing"], json!({"cpu": 1}));
        assert_eq!(why["shortages"][0]["cluster_id"], json!(cluster));
        assert_eq!(why["blockers"], json!([{"deployment_id": first, "replica": 0}]));
        let earliest: model::Time = why["earliest"].as_str().unwrap().parse().unwrap();
        let started: model::Time = runs["started_at"].as_str().unwrap().parse().unwrap();
        assert!(earliest.since(started).as_secs() >= 3590, "{why:#}");
        assert_eq!(explain(&ann, &third).await["replicas"][0]["position"], 2);
        let why = explain(&ann, &never).await["replicas"][0].clone();
        assert_eq!((&why["verdict"], &why["shortages"][0]["too_small"]), (&json!("never"), &json!(true)));
        assert_eq!(explain(&ann, &first).await["replicas"][0]["verdict"], "placed");
        let bob = paddock.owner("bob").await;
        bob.get(&format!("{}/explain", deployment_path(&first))).await.expect(404);
        let queue = ann.get("/api/v1/queue").await.expect(200);
        let ids: Vec<_> = queue["items"].as_array().unwrap().iter().map(|d| d["id"].clone()).collect();
        assert_eq!(ids, [json!(second), json!(third), json!(never)]);
        assert_eq!(bob.get("/api/v1/queue").await.expect(200)["items"], json!([]));
    }

    async fn explanation_counts_other_organizations_without_naming_them(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, bob) = (paddock.owner("ann").await, paddock.owner("bob").await);
        let shared = testing::rows::ready_cluster(paddock.db(), None, [("cpu", 2), ("ram", 1 << 30)].into()).await.id;
        let theirs = deploy_running(&paddock, &bob, request(&shared.to_string(), 2, 0)).await;
        let mine = deploy(&ann, request(&shared.to_string(), 1, 0)).await;
        let why = explain(&ann, &mine).await;
        assert_eq!(why["replicas"][0]["blockers"], json!([]));
        assert_eq!(why["replicas"][0]["other_blockers"], 1);
        assert!(!why.to_string().contains(&theirs), "{why:#}");
        let body = request(&shared.to_string(), 2, 5);
        let would = ann.post("/api/v1/deployments?dry_run=true", body).await.expect(200);
        assert_eq!(would["replicas"][0]["outcome"], "displace");
        assert_eq!((&would["replicas"][0]["victims"], &would["replicas"][0]["other_victims"]), (&json!([]), &json!(1)));
        assert!(!would.to_string().contains(&theirs), "{would:#}");
    }

    async fn dry_run_reports_placement_without_effect(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 4})).await;
        let low = deploy_running(&paddock, &ann, request(&cluster, 3, 0)).await;
        let before = ann.get("/api/v1/events?limit=1000").await.expect(200);
        let would = async |body| {
            let answer = ann.post("/api/v1/deployments?dry_run=true", body).await.expect(200);
            assert_eq!(answer["dry_run"], true);
            answer["replicas"].clone()
        };
        let starts = would(request(&cluster, 1, 0)).await;
        assert_eq!((&starts[0]["outcome"], &starts[0]["cluster_id"]), (&json!("start"), &json!(cluster)));
        let displaces = would(request(&cluster, 2, 5)).await;
        assert_eq!(displaces[0]["outcome"], "displace");
        assert_eq!(displaces[0]["victims"], json!([{"deployment_id": low, "replica": 0}]));
        let waits = would(request(&cluster, 2, 0)).await;
        assert_eq!((&waits[0]["outcome"], &waits[0]["waits"][0]["verdict"]), (&json!("wait"), &json!("not_now")));
        let mut two = request(&cluster, 1, 0);
        two["replicas"] = json!(2);
        let two = would(two).await;
        assert_eq!((&two[0]["outcome"], &two[1]["outcome"]), (&json!("start"), &json!("wait")));
        ann.post("/api/v1/deployments?dry_run=true", request(&cluster, -1, 0)).await.expect(400);
        let after = ann.get("/api/v1/events?limit=1000").await.expect(200);
        assert_eq!(before["items"], after["items"], "the dry run changed something");
        let all = ann.get("/api/v1/deployments").await.expect(200);
        assert_eq!(all["items"].as_array().unwrap().len(), 1);
    }

    async fn logs_can_be_read_and_their_tail_is_retained(engine: Engine) {
        let runtime = simulated::Options { complete: Some("job".into()), ..Default::default() };
        let (paddock, ann) = start_with(engine, TestSettings { runtime, ..TestSettings::default() }).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 4})).await;
        let mut body = request(&cluster, 1, 0);
        body["ports"] = json!([80]);
        let web = deploy_running(&paddock, &ann, body).await;
        let said = lines(&ann, &web, "").await;
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(lines(&ann, &web, "?tail=1").await, said[1..]);
        let after = format!("?replica=0&after={}", said[0]["next"].as_str().unwrap());
        assert_eq!(lines(&ann, &web, &after).await, said[1..]);
        let logs = format!("{}/logs", deployment_path(&web));
        ann.get(&format!("{logs}?replica=7")).await.expect(404);
        ann.get(&format!("{logs}?after=1-1")).await.expect(400);
        ann.get(&format!("{logs}?replica=0&after=1-1&tail=1")).await.expect(400);
        paddock.owner("bob").await.get(&logs).await.expect(404);
        let mut job = request(&cluster, 1, 0);
        job["image"] = json!("job:1");
        let job = deploy(&ann, job).await;
        paddock.until(&ann, &deployment_path(&job), "status", "completed").await;
        let kept = lines(&ann, &job, "").await;
        assert!(kept.last().unwrap()["text"].as_str().unwrap().contains("exited with code 0"), "{kept:?}");
        let hold = deploy(&ann, json!({"cluster_id": cluster, "resources": {"cpu": 1}})).await;
        ann.get(&format!("{}/logs", deployment_path(&hold))).await.expect(409);
    }

    async fn only_the_administrator_changes_cluster_nodes(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, admin) = (paddock.owner("ann").await, paddock.admin().await);
        let nodes = json!([
            {"name": "a", "capacity": {"cpu": 2, "ram": "1Gi"}, "labels": {"disk": "ssd"}},
            {"name": "b", "capacity": {"cpu": 3, "ram": "1Gi"}},
        ]);
        let made = ann.post("/api/v1/clusters", json!({"name": "two", "nodes": nodes})).await.expect(201);
        let path = cluster_path(made["id"].as_str().unwrap());
        assert_eq!(made["capacity"]["cpu"]["total"], 5);
        assert_eq!(made["nodes"][0]["labels"], json!({"disk": "ssd"}));
        paddock.until(&ann, &path, "status", "ready").await;
        let id = deploy(&ann, request(made["id"].as_str().unwrap(), 3, 0)).await;
        let runs = paddock.until(&ann, &deployment_path(&id), "status", "running").await;
        assert_eq!(runs["node"], "b");
        ann.patch(&path, json!({"nodes": [{"name": "b", "capacity": {"cpu": 9}}]})).await.expect(403);
        admin.patch(&path, json!({"capacity": {"cpu": 9}})).await.expect(409);
        admin.patch(&path, json!({"nodes": [{"name": "a", "capacity": {"cpu": 9}}]})).await.expect(409);
        let kept = ann.get(&path).await.expect(200);
        assert_eq!(kept["capacity"]["cpu"], json!({"total": 5, "used": 3, "free": 2}));
        let one = json!({"nodes": [{"name": "b", "capacity": {"cpu": 4, "ram": "1Gi"}}]});
        let changed = admin.patch(&path, one).await.expect(200);
        assert_eq!(changed["capacity"]["cpu"], json!({"total": 4, "used": 3, "free": 1}));
        let both = json!({"name": "x", "capacity": {"cpu": 9}, "nodes": [{"name": "a", "capacity": {"cpu": 1}}]});
        ann.post("/api/v1/clusters", both).await.expect(400);
    }
}

/// Lines of a log.
async fn lines(client: &Client, id: &str, query: &str) -> Vec<Value> {
    let request = client.request("GET", &format!("{}/logs{query}", deployment_path(id)));
    let answer = request.header("accept", "application/x-ndjson").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let text = answer.text().await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
