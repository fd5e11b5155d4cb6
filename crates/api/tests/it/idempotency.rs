//! `Idempotency-Key`: a repeated create request is executed once.

use serde_json::{Value, json};
use store::deployment::Limits;
use testing::{Answer, Client, on_both_engines};

use crate::accounting::assert_consistent;
use crate::concurrency::{at_once, limited, statuses};
use crate::world::{refused, start, start_with};

const CREATES: [(&str, &str); 2] = [
    ("/api/v1/clusters", r#"{"name": "x", "capacity": {"cpu": 1}}"#),
    ("/api/v1/deployments", r#"{"name": "x", "resources": {"cpu": 1}}"#),
];

on_both_engines! {
    async fn repeated_request_replays_the_response(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        for (path, body) in CREATES {
            let body: Value = serde_json::from_str(body).unwrap();
            let first = keyed(&ann, path, &body, path).await;
            let again = keyed(&ann, path, &body, path).await;
            assert_eq!((first.status, again.status), (201, 201));
            assert_eq!(first.json, again.json);
            assert_eq!(again.headers["idempotency-replayed"], "true");
            assert!(!first.headers.contains_key("idempotency-replayed"));
            let other = keyed(&ann, path, &body, &format!("{path} 2")).await;
            assert_ne!(first.json["id"], other.json["id"]);
            assert_eq!(count(&ann, path).await, 2);
        }
    }

    async fn replayed_deployment_has_its_environment_variables(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let body = json!({"resources": {"cpu": 1}, "env": {"KEY": "env-word-4b2", "EMPTY": ""}});
        let first = keyed(&ann, "/api/v1/deployments", &body, "k").await;
        let again = keyed(&ann, "/api/v1/deployments", &body, "k").await;
        assert_eq!(first.json["env"], body["env"]);
        assert_eq!(first.json, again.json);
        let owner = ann.get("/user/").await.text("id");
        let mut read = paddock.db().read().await.unwrap();
        let stored = store::idempotency::get(&mut read, &owner, "k").await.unwrap().unwrap();
        assert!(!stored.body.contains("env-word-4b2"), "{}", stored.body);
    }

    async fn idempotency_key_is_bound_to_one_request_of_one_user(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mia = paddock.member(&ann, "mia").await;
        for (path, body) in CREATES {
            let body: Value = serde_json::from_str(body).unwrap();
            let key = format!("for {path}");
            let first = keyed(&ann, path, &body, &key).await.expect(201);
            let mut other = body.clone();
            other["name"] = json!("y");
            let answer = keyed(&ann, path, &other, &key).await;
            refused(&answer, path);
            assert_eq!(answer.status, 422);
            let hers = keyed(&mia, path, &body, &key).await.expect(201);
            assert_ne!(first["id"], hers["id"]);
            assert_eq!(count(&ann, path).await, 2);
        }
        // Nor can the key be used on another path.
        let (clusters, body) = CREATES[0];
        let body = serde_json::from_str(body).unwrap();
        assert_eq!(keyed(&ann, clusters, &body, "for /api/v1/deployments").await.status, 422);
    }

    async fn repeated_invite_creation_returns_the_code_once(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        let first = keyed(&ann, "/api/v1/invites", &json!({}), "k").await.expect(201);
        let again = keyed(&ann, "/api/v1/invites", &json!({}), "k").await.expect(201);
        assert_eq!(first["id"], again["id"]);
        assert!(first["code"].is_string() && again["code"].is_null());
        assert_eq!(count(&ann, "/api/v1/invites").await, 1);
    }

    async fn rejected_request_does_not_consume_its_key(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        let body = json!({"resources": {"cpu": -1}});
        assert_eq!(keyed(&ann, "/api/v1/deployments", &body, "k").await.status, 400);
        let body = json!({"resources": {"cpu": 1}});
        assert_eq!(keyed(&ann, "/api/v1/deployments", &body, "k").await.status, 201);
        for key in ["", " ", &"x".repeat(256)] {
            let answer = keyed(&ann, "/api/v1/deployments", &body, key).await;
            refused(&answer, key);
            assert!(answer.json["detail"].as_str().unwrap().contains("Idempotency-Key"));
        }
        assert_eq!(count(&ann, "/api/v1/deployments").await, 1);
    }

    async fn concurrent_requests_with_one_key_execute_once(engine: Engine) {
        // With capacity for one only, late requests must still get the response.
        let limits = Limits { per_organization: 1, per_cluster: 1, max_priority: 100 };
        let (paddock, ann) = start_with(engine, limited(limits)).await;
        let body = json!({"resources": {"cpu": 1}});
        let answers = at_once(50, |_| keyed(&ann, "/api/v1/deployments", &body, "once")).await;
        assert_eq!(statuses(&answers), [(201, 50)].into());
        assert!(answers.iter().all(|answer| answer.json == answers[0].json));
        assert_eq!(count(&ann, "/api/v1/deployments").await, 1);
        let created = ann.get("/api/v1/events?type=deployment.created").await.expect(200);
        assert_eq!(created["items"].as_array().unwrap().len(), 1);
        assert_consistent(&paddock).await;
    }
}

async fn keyed(client: &Client, path: &str, body: &Value, key: &str) -> Answer {
    client.send(client.request("POST", path).header("idempotency-key", key).json(body)).await
}

async fn count(client: &Client, path: &str) -> usize {
    client.get(path).await.expect(200)["items"].as_array().unwrap().len()
}
