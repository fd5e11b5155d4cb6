//! `GET /api/v1/fleet/scaling`, and placeholders of third-party agents.

use std::collections::BTreeMap;

use model::Resources;
use model::cluster::Provider;
use model::scaling::{Host, Pool};
use serde_json::json;
use testing::{Client, Engine, TestPaddock, TestSettings, on_both_engines, pools};

use crate::fleet_mock::{Mock, kafka_path, request_kafka, state};
use crate::service::raw;
use crate::world::{deploy_running, until_shown};

async fn start(engine: Engine, pools: Vec<Pool>) -> TestPaddock {
    TestPaddock::start_with(engine, TestSettings { pools, ..TestSettings::default() }).await
}

/// Pool of clusters with fleetshard-compatible agents, two units each, one of them reserved.
fn third_party_pool() -> Pool {
    let mut pool = pools::pool("west", [("kafka.standard", 2)], 2);
    pool.template.provider = Provider::Agent;
    (pool.template.cloud_provider, pool.template.region) = ("aws".into(), "us-east-1".into());
    pool.template.is_foreign = true;
    let room = Resources::from([("kafka.standard", 1)]);
    let (kind, instance_type) = ("kafka".into(), "standard".into());
    pool.hosts = vec![Host { kind, instance_type, reserved: 2, room }];
    pool
}

/// Waits for the cluster of a pool.
async fn pool_cluster(admin: &Client) -> String {
    let list = "/api/v1/clusters?name=west-1";
    let found = until_shown(admin, list, |page| page["items"][0].is_object()).await;
    found["items"][0]["id"].as_str().unwrap().to_owned()
}

on_both_engines! {
    async fn third_party_agent_gets_placeholders_and_instance_is_placed(engine: Engine) {
        let paddock = start(engine, vec![third_party_pool()]).await;
        let (admin, ann) = (paddock.admin().await, paddock.owner("ann").await);
        // A pending request for units that no cluster has makes the pool grow.
        let id = request_kafka(&ann, "events").await;
        let cluster = pool_cluster(&admin).await;
        let about = format!("/api/v1/clusters/{cluster}");
        paddock.until(&admin, &about, "status", "waiting_for_agent").await;
        let token = admin.post(&format!("{about}/token"), json!({})).await.text("token");
        let mock = Mock { client: paddock.client.with_token(&token), cluster };
        assert_eq!(mock.items().await, Vec::<serde_json::Value>::new(), "the cluster is not ready");
        let mut ready_status = state("True", 2);
        let mut older = ready_status["strimzi"][0].clone();
        older["version"] = json!("strimzi-cluster-operator.v0.25.0-9");
        let mut broken = older.clone();
        (broken["version"], broken["ready"]) =
            (json!("strimzi-cluster-operator.v0.27.0-1"), json!(false));
        ready_status["strimzi"].as_array_mut().unwrap().extend([older, broken]);
        mock.state(ready_status.clone()).await.expect(204);
        paddock.until(&admin, &about, "status", "ready").await;
        let reserved = |items: Vec<serde_json::Value>| -> BTreeMap<String, serde_json::Value> {
            let named = items.into_iter().map(|one| (one["id"].as_str().unwrap().to_owned(), one));
            named.filter(|(id, _)| id.starts_with("reserved-")).collect()
        };
        let items = reserved(mock.items().await);
        let names: Vec<&str> = items.keys().map(String::as_str).collect();
        assert_eq!(names, ["reserved-kafka-standard-1", "reserved-kafka-standard-2"]);
        let one = &items[names[0]];
        for path in ["/id", "/metadata/name", "/metadata/namespace"] {
            assert_eq!(one.pointer(path).unwrap(), names[0], "{path}");
        }
        assert_eq!(one["kind"], "ManagedKafka");
        assert_eq!(one["metadata"]["annotations"]["bf2.org/placementId"], names[0]);
        assert_eq!(one["metadata"]["labels"]["bf2.org/deployment"], "reserved");
        assert_eq!(one["metadata"]["labels"]["bf2.org/kafkaInstanceProfileType"], "standard");
        let host = &one["spec"]["endpoint"]["bootstrapServerHost"];
        assert_eq!(*host, format!("{}-dummyhost", names[0]));
        let versions = json!({
            "kafka": "3.9.0", "strimzi": "strimzi-cluster-operator.v0.26.0-4", "kafkaIbp": "3.9",
        });
        assert_eq!(one["spec"]["versions"], versions);
        // Reports about placeholders are accepted and have no effect.
        mock.report(names[0], json!({"conditions": [{"type": "Ready", "status": "False"}]})).await;
        paddock.until(&ann, &kafka_path(&id), "status", "provisioning").await;
        // A cluster without versions has no placeholders, which is no error.
        let mut nothing = state("True", 2);
        nothing["strimzi"] = json!([]);
        mock.state(nothing).await.expect(204);
        assert!(reserved(mock.items().await).is_empty());
        mock.state(ready_status.clone()).await.expect(204);
        assert_eq!(reserved(mock.items().await).len(), 2);
        // Neither has one that is no longer ready.
        ready_status["conditions"][0]["status"] = json!("False");
        for _ in 0..3 {
            mock.state(ready_status.clone()).await.expect(204);
        }
        paddock.until(&admin, &about, "status", "waiting_for_agent").await;
        assert!(reserved(mock.items().await).is_empty());
        testing::check_ledgers(paddock.db()).await;
    }

    async fn administrator_sees_scaling_decisions_and_reasons(engine: Engine) {
        let paddock = start(engine, vec![pools::pool("east", [("cpu", 4)], 1)]).await;
        let (admin, ann) = (paddock.admin().await, paddock.owner("ann").await);
        ann.get("/api/v1/fleet/scaling").await.expect(403);
        paddock.client.get("/api/v1/fleet/scaling").await.expect(401);
        let new = |name: &str| json!({"name": name, "resources": {"cpu": 3}});
        let _first = deploy_running(&paddock, &ann, new("a")).await;
        ann.post("/api/v1/deployments", new("b")).await.expect(201);
        let waits = |all: &serde_json::Value| all["items"][0]["wish"] == "waiting";
        let pool = until_shown(&admin, "/api/v1/fleet/scaling", waits).await["items"][0].clone();
        assert_eq!(pool["name"], "east");
        assert_eq!(pool["decision"], "stay");
        let reason = "Scale-up blocked by `at_most`: 1 of 1 clusters exist; \
                      1 pending workload needs 3 cpu.";
        assert_eq!(pool["reason"], reason);
        assert_eq!(pool["clusters"], json!({"ready": 1}));
        assert_eq!((&pool["used"], &pool["free"]), (&json!({"cpu": 3}), &json!({"cpu": 1})));
        assert_eq!(pool["waiting"][0]["count"], 1);
        assert_eq!(pool["settings"]["at_most"], 1);
        assert!(pool["last_grown_at"].is_string() && pool["last_shrunk_at"].is_null());
        let (_, _, metrics) = raw(&admin, "GET", "/metrics").await;
        let series = "paddock_pool_clusters{pool=\"east\",status=\"ready\"} 1";
        assert!(metrics.contains(series), "{metrics}");
        // The pool's cluster is shared, and its event has the reason.
        let events = admin.get("/api/v1/events?type=pool.grown").await.json;
        let told = &events["items"][0]["data"];
        assert_eq!(told["reason"], "Scaling up: 1 pending workload needs 3 cpu.");
        let events = ann.get("/api/v1/events?type=pool.grown").await.json;
        assert_eq!(events["items"], json!([]));
    }

    async fn scaling_list_is_empty_without_pools(engine: Engine) {
        let paddock = start(engine, Vec::new()).await;
        let admin = paddock.admin().await;
        assert_eq!(admin.get("/api/v1/fleet/scaling").await.json, json!({"items": []}));
    }
}
