//! Tokens: creation, list, expiry, revocation; service accounts.

use std::time::Duration;

use serde_json::{Value, json};
use testing::{Client, TestPaddock, on_both_engines};

use crate::sse::Stream;
use crate::world::{ids, names_field, start, until};

const TOKENS: &str = "/api/v1/tokens";

/// Creates a token. Returns its id and its client.
pub(crate) async fn create(owner: &Client, body: Value) -> (String, Client) {
    let made = owner.post(TOKENS, body).await;
    (made.text("id"), owner.with_token(&made.text("token")))
}

async fn listed(client: &Client) -> Vec<(String, String)> {
    let page = client.get(TOKENS).await.expect(200);
    let text = |item: &Value, field: &str| item[field].as_str().unwrap().to_owned();
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| (text(item, "kind"), text(item, "name"))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned())).collect()
}

async fn user_id(client: &Client) -> String {
    client.get("/api/v1/users/me").await.text("id")
}

on_both_engines! {
    async fn token_is_created_listed_used_and_revoked(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let made = ann.post(TOKENS, json!({"name": " laptop ", "expires_in": 3600})).await.expect(201);
        let secret = made["token"].as_str().unwrap();
        assert!(secret.starts_with("paddock_") && secret.len() > 50, "{made:#}");
        assert_eq!((&made["kind"], &made["name"]), (&json!("personal"), &json!("laptop")));
        assert_eq!(made["scope"], json!({"read_only": false, "kinds": []}));
        let id = made["id"].as_str().unwrap();
        let laptop = paddock.client.with_token(secret);
        assert_eq!(user_id(&laptop).await, user_id(&ann).await);

        let page = laptop.get(TOKENS).await.expect(200);
        assert!(!page.to_string().contains("paddock_"), "{page:#}");
        assert_eq!(listed(&ann).await, pairs(&[("session", ""), ("personal", "laptop")]));
        assert_eq!((&page["items"][0]["is_current"], &page["items"][1]["is_current"]), (&json!(false), &json!(true)));
        let path = format!("{TOKENS}/{id}");
        assert_eq!(ann.get(&path).await.expect(200)["name"], "laptop");
        let events = ann.get("/api/v1/events?kind=user&limit=1000").await.expect(200).to_string();
        assert!(events.contains("user.token_created") && !events.contains(secret), "{events}");

        laptop.delete(&path).await.expect(204);
        laptop.get("/user/").await.expect(401);
        ann.get(&path).await.expect(404);
        ann.delete(&path).await.expect(404);
        assert_eq!(listed(&ann).await, pairs(&[("session", "")]));
    }

    async fn token_expires_and_its_lifetime_is_limited(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let body = |life: i64| json!({"name": "ci", "expires_in": life});
        names_field(&ann.post(TOKENS, body(365 * 86_400 + 1)).await, "expires_in", "too long");
        let (_, short) = create(&ann, body(3600)).await;
        let (_, long) = create(&ann, json!({"name": "default"})).await;
        short.get("/user/").await.expect(200);
        paddock.clock.advance(Duration::from_hours(1));
        short.get("/user/").await.expect(401);
        paddock.clock.advance(Duration::from_hours(89 * 24));
        long.get("/user/").await.expect(200);
        assert_eq!(listed(&long).await, pairs(&[("personal", "default")]));
        paddock.clock.advance(Duration::from_hours(24));
        long.get("/user/").await.expect(401);
    }

    async fn session_is_listed_and_revoked_like_a_token(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let elsewhere = paddock.sign_in("ann", "secret").await;
        let page = ann.get(TOKENS).await.expect(200);
        let other = page["items"].as_array().unwrap().iter().find(|t| t["is_current"] == false);
        let id = other.unwrap()["id"].as_str().unwrap();
        let mut stream = Stream::open(&elsewhere, "", None).await;
        ann.delete(&format!("{TOKENS}/{id}")).await.expect(204);
        elsewhere.get("/user/").await.expect(401);
        assert!(stream.closes().await);
        ann.get("/user/").await.expect(200);
    }

    async fn revoked_token_is_rejected_at_once_under_concurrency(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        for _ in 0..10 {
            let (id, ci) = create(&ann, json!({"name": "ci"})).await;
            let using = futures_util::future::join_all((0..20).map(|_| ci.get("/user/")));
            let path = format!("{TOKENS}/{id}");
            let (_, revoked) = tokio::join!(using, ann.delete(&path));
            revoked.expect(204);
            ci.get("/user/").await.expect(401);
        }
    }

    async fn revoked_token_is_rejected_by_other_replicas(engine: Engine) {
        if engine == testing::Engine::Sqlite {
            return;
        }
        let (paddock, replica) = TestPaddock::start_two(engine).await;
        let ann = paddock.owner("ann").await;
        let (id, ci) = create(&ann, json!({"name": "ci"})).await;
        let there = replica.client.with_token(ci.token().unwrap());
        there.get("/user/").await.expect(200);
        ann.delete(&format!("{TOKENS}/{id}")).await.expect(204);
        until("the replica rejects the token", async || there.get("/user/").await.status == 401).await;
    }

    async fn last_use_is_recorded_once_a_minute(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (id, ci) = create(&ann, json!({"name": "ci"})).await;
        let path = format!("{TOKENS}/{id}");
        let used = async || ann.get(&path).await.expect(200)["last_used_at"].clone();
        assert_eq!(used().await, Value::Null);
        ci.get("/user/").await.expect(200);
        until("the first use is recorded", async || used().await != Value::Null).await;
        let first = used().await;
        paddock.clock.advance(Duration::from_mins(2));
        ci.get("/user/").await.expect(200);
        until("a later use is recorded", async || used().await != first).await;
    }

    async fn tokens_of_others_are_not_found(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (zoe, mia) = (paddock.owner("zoe").await, paddock.member(&ann, "mia").await);
        let (id, _) = create(&mia, json!({"name": "mine"})).await;
        let path = format!("{TOKENS}/{id}");
        for client in [&zoe, &ann] {
            client.get(&path).await.expect(404);
            client.delete(&path).await.expect(404);
            assert_eq!(listed(client).await, pairs(&[("session", "")]));
        }
        mia.get(&path).await.expect(200);
    }

    async fn tokens_of_a_removed_member_are_rejected_and_its_streams_end(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mia = paddock.member(&ann, "mia").await;
        let (_, ci) = create(&mia, json!({"name": "ci"})).await;
        ci.get("/user/").await.expect(200);
        let mut stream = Stream::open(&ci, "", None).await;
        ann.delete(&format!("/api/v1/users/{}", user_id(&mia).await)).await.expect(204);
        ci.get("/user/").await.expect(401);
        assert!(stream.closes().await);
        // A later member of the same name does not revive them.
        paddock.member(&ann, "mia").await;
        ci.get("/user/").await.expect(401);
    }

    async fn password_change_revokes_all_tokens(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        let (_, ci) = create(&ann, json!({"name": "ci"})).await;
        let change = json!({"password": "new", "current_password": "secret"});
        ann.patch("/api/v1/users/me", change).await.expect(200);
        ci.get("/user/").await.expect(401);
    }

    async fn service_account_has_its_own_identity_and_outlives_its_creator(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let bob = paddock.member(&ann, "bob").await;
        let bob_id = user_id(&bob).await;
        let account = json!({"name": "pipeline", "service_account": "ci"});
        bob.post(TOKENS, account.clone()).await.expect(403);
        ann.patch(&format!("/api/v1/users/{bob_id}"), json!({"role": "owner"})).await.expect(200);
        let (id, ci) = create(&bob, account).await;
        let cluster = ci.post("/api/v1/clusters", json!({"name": "main", "capacity": {"cpu": 1}})).await;
        let robot = user_id(&ci).await;
        assert_eq!(cluster.expect(201)["created_by"], format!("service-account:{robot}"));
        assert_ne!(robot, bob_id);
        // It manages neither users nor accounts.
        ci.patch("/api/v1/users/me", json!({"role": "owner"})).await.expect(403);
        ci.post(TOKENS, json!({"name": "x", "service_account": "other"})).await.expect(403);
        ci.delete(&format!("/api/v1/users/{bob_id}")).await.expect(403);
        assert_eq!(ids(&ann.get("/api/v1/users").await.expect(200)["items"]).len(), 2);

        ann.delete(&format!("/api/v1/users/{bob_id}")).await.expect(204);
        ci.get("/api/v1/clusters").await.expect(200);
        let page = ann.get(&format!("{TOKENS}/{id}")).await.expect(200);
        assert_eq!((&page["kind"], &page["service_account"]), (&json!("service_account"), &json!("ci")));
        // A second token of the same account, and another role.
        let (_, second) = create(&ann, json!({"name": "nightly", "service_account": "ci"})).await;
        assert_eq!(user_id(&second).await, robot);
        let other = json!({"name": "x", "service_account": "ci", "role": "viewer"});
        ann.post(TOKENS, other).await.expect(409);
        ann.patch(&format!("/api/v1/users/{robot}"), json!({"role": "viewer"})).await.expect(200);
        second.post("/api/v1/clusters", json!({"name": "b", "capacity": {"cpu": 1}})).await.expect(403);
        ann.patch(&format!("/api/v1/users/{robot}"), json!({"role": "owner"})).await.expect(400);
        // Removing the account revokes all of its tokens.
        ann.delete(&format!("/api/v1/users/{robot}")).await.expect(204);
        for client in [&ci, &second] {
            client.get("/user/").await.expect(401);
        }
    }

    async fn service_accounts_of_two_organizations_may_have_the_same_name(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let zoe = paddock.owner("zoe").await;
        let body = json!({"name": "pipeline", "service_account": "ci", "role": "viewer"});
        let (id, ours) = create(&ann, body.clone()).await;
        let (_, theirs) = create(&zoe, body).await;
        assert_ne!(user_id(&ours).await, user_id(&theirs).await);
        zoe.get(&format!("{TOKENS}/{id}")).await.expect(404);
        zoe.delete(&format!("{TOKENS}/{id}")).await.expect(404);
        ours.post("/api/v1/clusters", json!({"name": "x", "capacity": {"cpu": 1}})).await.expect(403);
        let role = json!({"name": "x", "service_account": "boss", "role": "owner"});
        names_field(&ann.post(TOKENS, role).await, "role", "owner");
        names_field(&ann.post(TOKENS, json!({"name": "x", "role": "viewer"})).await, "role", "personal");
    }
}
