//! A minimal fleetshard-compatible agent, and a kafka on its cluster.

use std::time::Duration;

use serde_json::{Map, Value, json};
use testing::{Answer, Client, Engine, TestPaddock};

use crate::world::{start, until};

pub(crate) const API: &str = "/api/kafkas_mgmt/v1";
/// DNS name of the mock's cluster.
pub(crate) const DNS: &str = "apps.site.example";
const PATIENCE: usize = 600;

/// An agent that applies the desired state immediately.
pub(crate) struct Mock {
    pub(crate) client: Client,
    /// Cluster ID at its origin.
    pub(crate) cluster: String,
}

/// Generates a cluster ID.
pub(crate) fn external_id(seed: &str) -> String {
    format!("{seed}{}", "0".repeat(32 - seed.len()))
}

/// Body of a registration.
pub(crate) fn registration(id: &str) -> Value {
    json!({
        "cluster_id": id,
        "cluster_ingress_dns_name": DNS,
        "kafka_machine_pool_node_count": 9,
        "access_kafkas_via_private_network": false,
        "cloud_provider": "aws",
        "region": "us-east-1",
    })
}

/// Value of an agent parameter.
pub(crate) fn parameter(answer: &Value, id: &str) -> String {
    let all = answer["fleetshard_parameters"].as_array().unwrap();
    let found = all.iter().find(|one| one["id"] == id).unwrap();
    found["value"].as_str().unwrap().to_owned()
}

/// Registers a cluster of the owner's organization, with its agent.
pub(crate) async fn register(paddock: &TestPaddock, owner: &Client, seed: &str) -> Mock {
    let cluster = external_id(seed);
    let answer = owner.post(&format!("{API}/clusters"), registration(&cluster)).await.expect(200);
    let client = paddock.client.with_token(&parameter(&answer, "sso-secret"));
    Mock { client, cluster }
}

/// Starts a server with ann and the agent of her cluster.
pub(crate) async fn registered(engine: Engine) -> (TestPaddock, Client, Mock) {
    let (paddock, ann) = start(engine).await;
    let mock = register(&paddock, &ann, "a").await;
    (paddock, ann, mock)
}

/// Same as [`registered`], with an instance of hers in `provisioning`.
pub(crate) async fn provisioning(engine: Engine) -> (TestPaddock, Client, Mock, String) {
    let (paddock, ann, mock) = registered(engine).await;
    mock.reconcile().await;
    let id = request_kafka(&ann, "events").await;
    paddock.until(&ann, &kafka_path(&id), "status", "provisioning").await;
    (paddock, ann, mock, id)
}

/// Status of a cluster, as an agent reports it.
pub(crate) fn state(status: &str, units: i64) -> Value {
    json!({
        "conditions": [{"type": "Ready", "status": status}],
        "capacity": {"standard": {"maxUnits": units, "remainingUnits": units}, "unheard-of": {"maxUnits": 5}},
        "strimzi": [{
            "ready": true,
            "version": "strimzi-cluster-operator.v0.26.0-4",
            "kafkaVersions": ["3.9.0", "3.8.1"],
            "kafkaIbpVersions": ["3.9", "3.8"],
        }],
    })
}

/// A condition of an instance.
pub(crate) fn condition(status: &str, reason: &str, message: &str) -> Value {
    json!({"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message}]})
}

/// Status of a working instance.
pub(crate) fn ready_status() -> Value {
    let mut status_body = condition("True", "", "");
    status_body["routes"] = json!([{"name": "bootstrap", "prefix": "", "router": DNS}]);
    status_body["versions"] = json!({"kafka": "3.9.0", "strimzi": "strimzi-cluster-operator.v0.26.0-4", "kafkaIbp": "3.9"});
    status_body["adminServerURI"] = json!("https://admin.site.example");
    status_body
}

impl Mock {
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("{API}/agent-clusters/{}{rest}", self.cluster)
    }

    pub(crate) async fn state(&self, body: Value) -> Answer {
        self.client.put(&self.path("/status"), body).await
    }

    pub(crate) async fn items(&self) -> Vec<Value> {
        let list = self.client.get(&self.path("/kafkas")).await.expect(200);
        assert_eq!(list["kind"], "ManagedKafkaList");
        list["items"].as_array().unwrap().clone()
    }

    pub(crate) async fn item(&self, id: &str) -> Option<Value> {
        self.items().await.into_iter().find(|one| one["id"] == id)
    }

    pub(crate) async fn report(&self, id: &str, status_body: Value) {
        self.client.put(&self.path("/kafkas/status"), json!({id: status_body})).await.expect(200);
    }

    /// One reconciliation of the agent.
    pub(crate) async fn reconcile(&self) {
        self.state(state("True", 3)).await.expect(204);
        let status_body = self.items().await.into_iter().map(|one| {
            let suspended = &one["metadata"]["labels"]["bf2.org/suspended"];
            let status = match (&one["spec"]["deleted"], suspended) {
                (Value::Bool(true), _) => condition("False", "Deleted", ""),
                (_, Value::String(text)) if text == "true" => condition("False", "Suspended", ""),
                _ => ready_status(),
            };
            (one["id"].as_str().unwrap().to_owned(), status)
        });
        let status_body: Map<String, Value> = status_body.collect();
        self.client.put(&self.path("/kafkas/status"), Value::Object(status_body)).await.expect(200);
    }

    /// Reconciles until the object at the path has this status.
    pub(crate) async fn until(&self, client: &Client, path: &str, status: &str) -> Value {
        let mut last = Value::Null;
        for _ in 0..PATIENCE {
            self.reconcile().await;
            last = client.get(path).await.json;
            if last["status"] == status {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{path} does not become {status}: {last:#}");
    }

    /// Reconciles until the object at the path is deleted.
    pub(crate) async fn until_gone(&self, client: &Client, path: &str) {
        until(&format!("{path} is gone"), async || {
            self.reconcile().await;
            client.get(path).await.status == 404
        })
        .await;
    }
}

/// Path of a kafka.
pub(crate) fn kafka_path(id: &str) -> String {
    format!("{API}/kafkas/{id}")
}

/// Requests a kafka in the mock's region. Returns its ID.
pub(crate) async fn request_kafka(owner: &Client, name: &str) -> String {
    let body = json!({
        "name": name, "plan": "standard.x1", "cloud_provider": "aws", "region": "us-east-1"
    });
    owner.post(&format!("{API}/kafkas?async=true"), body).await.expect(202)["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Fails unless the response is this error of the catalogue.
#[track_caller]
pub(crate) fn error(answer: &Answer, status: u16, code: u16) {
    assert_eq!(answer.status, status, "{}: {:#}", answer.call, answer.json);
    assert_eq!(answer.json["id"], code.to_string(), "{}: {:#}", answer.call, answer.json);
    assert_eq!(answer.json["code"], format!("KAFKAS-MGMT-{code}"), "{}", answer.call);
    assert!(answer.json["reason"].as_str().unwrap().len() > 5, "{:#}", answer.json);
}
