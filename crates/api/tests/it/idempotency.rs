//! `Idempotency-Key`: a creating call that is repeated acts once.

use serde_json::{Value, json};
use store::deployment::Limits;
use testing::{Answer, Client, on_both_engines};

use crate::accounting::adds_up;
use crate::concurrency::{at_once, limited, statuses};
use crate::world::{refused, start, start_with};

const CREATES: [(&str, &str); 2] = [
    ("/api/v1/clusters", r#"{"name": "x", "capacity": {"cpu": 1}}"#),
    ("/api/v1/deployments", r#"{"name": "x", "resources": {"cpu": 1}}"#),
];

on_both_engines! {
    async fn a_repeated_call_gets_the_same_answer_and_makes_nothing(engine: Engine) {
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

    async fn a_key_stands_for_one_request_of_one_user(engine: Engine) {
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
        // Nor can it be the same request on another path.
        let (clusters, body) = CREATES[0];
        let body = serde_json::from_str(body).unwrap();
        assert_eq!(keyed(&ann, clusters, &body, "for /api/v1/deployments").await.status, 422);
    }

    async fn an_invite_made_twice_is_one_and_its_code_is_shown_once(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        let first = keyed(&ann, "/api/v1/invites", &json!({}), "k").await.expect(201);
        let again = keyed(&ann, "/api/v1/invites", &json!({}), "k").await.expect(201);
        assert_eq!(first["id"], again["id"]);
        assert!(first["code"].is_string() && again["code"].is_null());
        assert_eq!(count(&ann, "/api/v1/invites").await, 1);
    }

    async fn a_refused_call_does_not_use_its_key_up(engine: Engine) {
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

    async fn the_same_call_fifty_times_at_once_makes_one(engine: Engine) {
        // With room for just one, the late ones must still see that it is theirs.
        let limits = Limits { per_organization: 1, per_cluster: 1 };
        let (paddock, ann) = start_with(engine, limited(limits)).await;
        let body = json!({"resources": {"cpu": 1}});
        let answers = at_once(50, |_| keyed(&ann, "/api/v1/deployments", &body, "once")).await;
        assert_eq!(statuses(&answers), [(201, 50)].into());
        assert!(answers.iter().all(|answer| answer.json == answers[0].json));
        assert_eq!(count(&ann, "/api/v1/deployments").await, 1);
        let created = ann.get("/api/v1/events?type=deployment.created").await.expect(200);
        assert_eq!(created["items"].as_array().unwrap().len(), 1);
        adds_up(&paddock).await;
    }
}

async fn keyed(client: &Client, path: &str, body: &Value, key: &str) -> Answer {
    client.send(client.request("POST", path).header("idempotency-key", key).json(body)).await
}

async fn count(client: &Client, path: &str) -> usize {
    client.get(path).await.expect(200)["items"].as_array().unwrap().len()
}
