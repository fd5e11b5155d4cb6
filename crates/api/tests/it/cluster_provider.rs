//! Clusters created by a provider: created, retried, drained and deleted over HTTP.

use std::sync::Arc;

use model::operation::Subject;
use port::Fault;
use serde_json::{Value, json};
use testing::{FakeOperation, TestPaddock, TestSettings, on_both_engines};

use crate::shop::text;
use crate::world::{cluster_path, deployment_path, names_field, refused, start_with, until};

const CLUSTERS: &str = "/api/v1/clusters";

/// Starts a server with a fake provider, and ann.
async fn start_with_provider(
    engine: testing::Engine,
) -> (TestPaddock, testing::Client, Arc<FakeOperation>) {
    let provider = Arc::<FakeOperation>::default();
    let settings = TestSettings { provider: Some(provider.clone()), ..TestSettings::default() };
    let (paddock, ann) = start_with(engine, settings).await;
    (paddock, ann, provider)
}

fn kubernetes() -> Value {
    json!({
        "name": "far", "provider": "kubernetes",
        "kubernetes": {
            "kubeconfig": "hidden kubeconfig", "namespace": "shop",
            "pull_secret": "hidden credentials", "quota": {"cpu": 4},
        },
    })
}

/// Client with the token of the installed agent.
fn agent(paddock: &TestPaddock, provider: &FakeOperation, id: &str) -> testing::Client {
    let sites = provider.state();
    let told = sites.agents[&Subject::Cluster(id.parse().unwrap())].clone();
    paddock.client.with_token(told.token.reveal())
}

async fn beat(agent: &testing::Client) {
    let body =
        json!({"version": "1", "runtime": "kubernetes", "capacity": {"cpu": 4, "ram": "1Gi"}});
    agent.post("/api/v1/agent/heartbeat", body).await.expect(200);
}

on_both_engines! {
    async fn kubernetes_cluster_is_registered_prepared_and_becomes_ready(engine: Engine) {
        let (paddock, ann, provider) = start_with_provider(engine).await;
        let zoe = paddock.owner("zoe").await;
        let made = ann.post(CLUSTERS, kubernetes()).await.expect(201);
        let id = made["id"].as_str().unwrap();
        let path = cluster_path(id);
        assert_eq!(made["kubernetes"], json!({"context": null, "namespace": "shop", "quota": {"cpu": 4}}));
        let waiting = paddock.until(&ann, &path, "status", "waiting_for_agent").await;
        assert!(!waiting.to_string().contains("hidden "), "{waiting:#}");
        zoe.get(&path).await.expect(404);
        {
            let sites = provider.state();
            let task = &sites.tasks[&Subject::Cluster(id.parse().unwrap())];
            assert_eq!(task.persisted["kubeconfig"].reveal(), "hidden kubeconfig");
            assert_eq!(task.persisted["pull_secret"].reveal(), "hidden credentials");
        }
        let first = agent(&paddock, &provider, id);
        beat(&first).await;
        paddock.until(&ann, &path, "status", "ready").await;

        // A new token is delivered to the agent automatically.
        let token = ann.post(&format!("{path}/token"), json!({"overlap_secs": 0})).await.text("token");
        let is_new = async || agent(&paddock, &provider, id).token() == Some(&token);
        until("the agent has the new token", is_new).await;
        let second = agent(&paddock, &provider, id);
        beat(&second).await;
        first.get("/api/v1/agent/desired").await.expect(401);

        // Changed settings are delivered as well.
        let body = json!({"kubernetes": {"quota": {"cpu": 2}, "kubeconfig": "another hidden kubeconfig"}});
        let changed = ann.patch(&path, body).await.expect(200);
        assert_eq!(changed["kubernetes"]["quota"], json!({"cpu": 2}));
        let log = ann.get("/api/v1/events?limit=1000").await.expect(200).to_string();
        assert!(!log.contains("hidden ") && !log.contains(&token), "{log}");
        ann.delete(&path).await.expect(202);
        paddock.until_deleted(&ann, &path).await;
        assert!(provider.state().resources.is_empty());
    }

    async fn failed_cluster_has_a_reason_and_can_be_retried_or_deleted(engine: Engine) {
        let (paddock, ann, provider) = start_with_provider(engine).await;
        provider.set_fault(Some(Fault::Refused("the token may not create namespaces".into())));
        let path = cluster_path(&ann.post(CLUSTERS, kubernetes()).await.text("id"));
        let failed = paddock.until(&ann, &path, "status", "failed").await;
        let reason = failed["status_reason"].as_str().unwrap();
        assert!(reason.contains("may not create namespaces") && reason.contains("retry"), "{reason}");
        let retry = format!("{path}/retry");
        provider.set_fault(None);
        assert_eq!(ann.post(&retry, json!({})).await.expect(202)["status"], "accepted");
        paddock.until(&ann, &path, "status", "waiting_for_agent").await;
        let answer = ann.post(&retry, json!({})).await;
        refused(&answer, "not failed");
        answer.expect(409);
        // A failing destruction keeps the cluster until the deletion is forced.
        provider.set_fault(Some(Fault::Refused("module not found".into())));
        ann.delete(&path).await.expect(202);
        paddock.until(&ann, &path, "reason_code", "DestroyFailed").await;
        ann.delete(&format!("{path}?force=true")).await.expect(202);
        paddock.until_deleted(&ann, &path).await;
    }

    async fn provider_settings_are_validated(engine: Engine) {
        let (paddock, ann, _) = start_with_provider(engine).await;
        for (field, body) in [
            ("provider", json!({"name": "a", "provider": "cloud"})),
            ("kubernetes", json!({"name": "a", "provider": "agent", "kubernetes": {}})),
            ("terraform", json!({"name": "a", "provider": "kubernetes", "terraform": {"module": "m"}})),
            ("kubernetes.kubeconfig", json!({"name": "a", "provider": "kubernetes", "kubernetes": {"kubeconfig": ""}})),
            ("kubernetes.namespace", json!({"name": "a", "provider": "kubernetes",
                "kubernetes": {"kubeconfig": "x", "namespace": "Not a name"}})),
            ("kubernetes.quota", json!({"name": "a", "provider": "kubernetes",
                "kubernetes": {"kubeconfig": "x", "quota": {"cpu": -1}}})),
        ] {
            names_field(&ann.post(CLUSTERS, body.clone()).await, field, &body.to_string());
        }
        // The server's own cluster and Terraform modules are reserved for the administrator.
        for body in [
            json!({"name": "a", "provider": "kubernetes"}),
            json!({"name": "a", "provider": "terraform", "terraform": {"module": "m"}}),
        ] {
            ann.post(CLUSTERS, body).await.expect(403);
        }
        let admin = paddock.admin().await;
        let body = json!({"name": "a", "provider": "terraform", "terraform":
            {"module": "m", "variables": {"size": 3}, "secret_variables": {"key": "nobody sees"}}});
        let made = admin.post(CLUSTERS, body).await.expect(201);
        assert_eq!(made["terraform"], json!({"module": "m", "variables": {"size": 3}}));
        let none = TestPaddock::start(engine).await;
        let answer = none.owner("ann").await.post(CLUSTERS, kubernetes()).await;
        names_field(&answer, "provider", "a server without the provider");
        assert!(answer.json.to_string().contains("--public-url"), "{:#}", answer.json);
    }

    async fn drain_is_allowed_for_owners_and_can_be_ended(engine: Engine) {
        let (paddock, ann, _) = start_with_provider(engine).await;
        let zoe = paddock.owner("zoe").await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 2})).await;
        let body = json!({"image": "web:1", "resources": {"cpu": 1}});
        let web = ann.post("/api/v1/deployments", body).await.text("id");
        paddock.until(&ann, &deployment_path(&web), "cluster_id", &cluster).await;
        let (path, other) = (cluster_path(&cluster), paddock.cluster(&ann, json!({"cpu": 2})).await);
        let drain = format!("{path}/drain");
        zoe.post(&drain, json!({})).await.expect(404);
        let draining = ann.post(&drain, json!({})).await.expect(202);
        assert_ne!(draining["draining_at"], Value::Null);
        paddock.until(&ann, &deployment_path(&web), "cluster_id", &other).await;
        let again = ann.post(&drain, json!({})).await.expect(202);
        assert_eq!(again["draining_at"], draining["draining_at"]);
        zoe.delete(&drain).await.expect(404);
        assert_eq!(ann.delete(&drain).await.expect(200)["draining_at"], Value::Null);
    }

    async fn provisioning_is_logged_and_can_be_cancelled_by_the_owner_only(engine: Engine) {
        let (paddock, ann, provider) = start_with_provider(engine).await;
        let zoe = paddock.owner("zoe").await;
        provider.state().running_polls = 1_000_000;
        let path = cluster_path(&ann.post(CLUSTERS, kubernetes()).await.text("id"));
        paddock.until(&ann, &path, "status", "provisioning").await;
        let (cancel, logs) = (format!("{path}/cancel"), format!("{path}/logs"));
        zoe.post(&cancel, json!({})).await.expect(404);
        zoe.get(&logs).await.expect(404);
        ann.post(&cancel, json!({})).await.expect(202);
        let failed = paddock.until(&ann, &path, "status", "failed").await;
        assert_eq!(failed["reason_code"], "Cancelled");
        let answer = ann.post(&cancel, json!({})).await;
        refused(&answer, "cancelled again");
        answer.expect(409);
        let (_, log) = text(&ann, &format!("{logs}?tail=1"), "text/plain").await;
        assert_eq!(log, "Provisioning was cancelled. Retry, or delete the cluster.\n");
        ann.get(&format!("{logs}?tail=no")).await.expect(400);
    }
}
