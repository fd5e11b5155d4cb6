//! Enterprise clusters, and metrics of instances.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use api::metrics_backend::{Backend, MetricsBackend, Series, SeriesQuery};
use futures_util::future::BoxFuture;
use model::Time;
use model::quota::parse;
use serde_json::json;
use testing::{TestPaddock, TestSettings, on_both_engines};

use crate::fleet_mock::{
    API, error, external_id, kafka_path, registered, registration, request_kafka,
};
use crate::world::start_with;

/// A fake backend with one series that records its requests.
#[derive(Default)]
struct FakeBackend(Mutex<Vec<SeriesQuery>>);

impl Backend for FakeBackend {
    fn series<'a>(&'a self, wanted: &'a SeriesQuery) -> BoxFuture<'a, Result<Vec<Series>, String>> {
        self.0.lock().unwrap().push(wanted.clone());
        let labels = [("__name__", "kafka_topic_bytes"), ("topic", "t\"1"), ("pod_ip", "10.0.0.1")];
        let labels: BTreeMap<String, String> =
            labels.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let values =
            vec![(Time(1_000_000), 1.0), (Time(2_000_000), f64::NAN), (Time(3_000_000), 2.5)];
        let is_down = wanted.names.iter().any(|name| name == "down");
        let answer =
            if is_down { Err("backend down".into()) } else { Ok(vec![Series { labels, values }]) };
        Box::pin(std::future::ready(answer))
    }
}

on_both_engines! {
    async fn enterprise_cluster_is_registered_once_and_removed_when_empty(engine: Engine) {
        let (paddock, ann, mock) = registered(engine).await;
        let (zoe, bob) = (paddock.owner("zoe").await, paddock.member(&ann, "bob").await);
        let (all, one) = (format!("{API}/clusters"), format!("{API}/clusters/{}", mock.cluster));
        error(&ann.post(&all, registration(&mock.cluster)).await, 409, 44);
        error(&zoe.post(&all, registration(&mock.cluster)).await, 409, 44);
        error(&bob.post(&all, registration(&external_id("b"))).await, 403, 11);
        error(&ann.post(&all, json!({})).await, 400, 33);
        let list = ann.get(&all).await.expect(200);
        assert_eq!((&list["kind"], &list["total"]), (&json!("ClusterList"), &json!(1)));
        assert_eq!(zoe.get(&all).await.expect(200)["total"], 0);
        let shown = bob.get(&one).await.expect(200);
        assert_eq!((&shown["id"], &shown["cluster_id"]), (&json!(mock.cluster), &json!(mock.cluster)));
        assert_eq!(shown["access_kafkas_via_private_network"], false);
        assert_eq!(shown["supported_instance_types"]["instance_types"][0]["id"], "standard");
        assert_eq!(shown["capacity_information"]["kafka_machine_pool_node_count"], 9);
        assert!(shown.get("fleetshard_parameters").is_none());
        error(&zoe.get(&one).await, 404, 7);
        error(&zoe.get(&format!("{one}/addon_parameters")).await, 404, 7);
        error(&bob.get(&format!("{one}/addon_parameters")).await, 403, 11);

        mock.reconcile().await;
        let body = json!({"name": "own", "plan": "standard.x1", "cluster_id": mock.cluster});
        let kafka = ann.post(&format!("{API}/kafkas?async=true"), body).await.text("id");
        mock.until(&ann, &kafka_path(&kafka), "ready").await;
        error(&ann.delete(&one).await, 400, 103);
        let leave = format!("{one}?async=true");
        error(&bob.delete(&leave).await, 403, 11);
        error(&zoe.delete(&leave).await, 404, 7);
        error(&ann.delete(&leave).await, 403, 4);
        ann.delete(&format!("{}?async=true", kafka_path(&kafka))).await.expect(202);
        mock.until_gone(&ann, &kafka_path(&kafka)).await;
        ann.delete(&leave).await.expect(202);
        paddock.until_deleted(&ann, &one).await;
        // The ID is free again, and the agent is no longer authenticated.
        error(&mock.client.get(&mock.path("")).await, 401, 15);
        ann.post(&all, registration(&mock.cluster)).await.expect(200);
    }

    async fn enterprise_clusters_require_quota(engine: Engine) {
        let text = "registered_users_per_organisation: []\nregistered_service_accounts:\n  - username: ann\n    granted_quota:\n      - instance_type_id: standard\n        kafka_billing_models:\n          - id: enterprise\n";
        let quota = parse("quota.yaml", text).unwrap();
        let settings = TestSettings { quota: Some(quota), ..TestSettings::default() };
        let paddock = TestPaddock::start_with(engine, settings).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        ann.get(&format!("{API}/clusters")).await.expect(200);
        error(&zoe.get(&format!("{API}/clusters")).await, 403, 11);
        error(&zoe.post(&format!("{API}/clusters"), registration(&external_id("z"))).await, 403, 11);
    }

    async fn metrics_without_a_backend_are_paddocks_own(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let id = request_kafka(&ann, "events").await;
        let path = |rest: &str| format!("{}/metrics/{rest}", kafka_path(&id));
        let now = ann.get(&path("query")).await.expect(200);
        assert_eq!((&now["kind"], &now["id"]), (&json!("MetricsInstantQueryList"), &json!(id)));
        let filtered = ann.get(&path("query?filters=paddock_instance_ready&filters=unheard_of")).await;
        let items = filtered.expect(200)["items"].clone();
        assert_eq!(items.as_array().unwrap().len(), 1);
        assert_eq!((&items[0]["metric"]["__name__"], &items[0]["value"]), (&json!("paddock_instance_ready"), &json!(0.0)));
        let none = ann.get(&path("query?filters=up%7Bx%3D1%7D")).await.expect(200);
        assert_eq!(none["items"], json!([]));
        let range = ann.get(&path("query_range?duration=5&interval=30")).await.expect(200);
        assert_eq!(range["kind"], "MetricsRangeQueryList");
        for bad in ["", "?duration=5", "?interval=5", "?duration=x&interval=5", "?duration=0&interval=5",
            "?duration=5&interval=10801", "?duration=4321&interval=5", "?duration=4320&interval=1"] {
            error(&ann.get(&path(&format!("query_range{bad}"))).await, 400, 21);
        }
        assert_eq!(ann.get(&path("federate")).await.status, 200);
        for call in ["query", "query_range?duration=5&interval=30", "federate"] {
            error(&zoe.get(&path(call)).await, 404, 7);
            error(&paddock.client.get(&path(call)).await, 401, 15);
        }
    }

    async fn metrics_backend_is_queried_by_namespace(engine: Engine) {
        let backend = Arc::new(FakeBackend::default());
        let metrics = MetricsBackend(Some(backend.clone()));
        let settings =
            TestSettings { api: api::Settings { metrics, ..api::Settings::default() }, ..TestSettings::default() };
        let (_paddock, ann) = start_with(engine, settings).await;
        let id = request_kafka(&ann, "events").await;
        let path = |rest: &str| format!("{}/metrics/{rest}", kafka_path(&id));
        let range = ann.get(&path("query_range?duration=5&interval=30&filters=a&filters=b%7D")).await.expect(200);
        let item = &range["items"][0];
        assert_eq!(item["metric"], json!({"__name__": "kafka_topic_bytes", "topic": "t\"1"}));
        assert_eq!(item["values"], json!([{"timestamp": 1000, "value": 1.0}, {"timestamp": 3000, "value": 2.5}]));
        let asked = backend.0.lock().unwrap().pop().unwrap();
        assert_eq!((asked.namespace, asked.names), (format!("kafka-{id}"), vec!["a".to_owned()]));
        let asked = asked.range.unwrap();
        assert_eq!((asked.end.since(asked.start).as_secs(), asked.step.as_secs()), (300, 30));
        error(&ann.get(&path("query?filters=down")).await, 500, 9);
    }
}
