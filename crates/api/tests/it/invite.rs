//! Invites: single use, expiry, reopening and revocation.

use std::time::Duration;

use model::Time;
use serde_json::{Value, json};
use testing::{Answer, Client, TestSettings, on_both_engines};

use crate::world::{names_field, start, start_with};

const WEEK: Duration = Duration::from_hours(7 * 24);

on_both_engines! {
    async fn invite_is_valid_for_its_lifetime(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        for (body, life) in [
            (json!({}), WEEK),
            (json!({"expires_in": null}), WEEK),
            (json!({"expires_in": 61}), Duration::from_secs(61)),
            (json!({"expires_in": 2_592_000}), Duration::from_hours(30 * 24)),
        ] {
            let invite = ann.post("/api/v1/invites", body.clone()).await.expect(201);
            assert_eq!(time(&invite["expires_at"]).since(time(&invite["created_at"])), life);
            let before = paddock.db().now();
            let kargo = ann.patch("/organization/invite/", body).await.expect(201);
            let lives = time(&kargo["expires_at"]).since(before);
            assert!(lives >= life && lives < life + Duration::from_secs(5), "{lives:?}");
        }
    }

    async fn expired_invite_cannot_be_redeemed(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let code = ann.patch("/organization/invite/", json!({"expires_in": 60})).await.text("code");
        assert_eq!(status(&paddock.client, &code).await, (true, false, Value::Null));
        paddock.clock.advance(Duration::from_secs(61));
        assert_eq!(status(&paddock.client, &code).await, (false, true, Value::Null));
        for path in ["/organization/invite/", "/api/v1/invites/redeem"] {
            let refused = join(&paddock.client, path, &code, "mia").await;
            assert_eq!(refused.status, 410, "{:#}", refused.json);
        }
        let ann = paddock.sign_in("ann", "secret").await;
        ann.patch("/organization/invite/", json!({"code": code})).await.expect(201);
        assert_eq!(join(&paddock.client, "/organization/invite/", &code, "mia").await.status, 201);
        assert_eq!(status(&paddock.client, &code).await, (false, true, json!("mia")));
    }

    async fn owner_can_reopen_an_invite_repeatedly(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let invite = ann.post("/api/v1/invites", json!({})).await;
        let (id, code) = (invite.text("id"), invite.text("code"));
        let path = format!("/api/v1/invites/{id}");
        for name in ["one", "two", "three"] {
            assert_eq!(join(&paddock.client, "/api/v1/invites/redeem", &code, name).await.status, 201);
            assert_eq!(join(&paddock.client, "/api/v1/invites/redeem", &code, "late").await.status, 409);
            assert_eq!(ann.get(&path).await.expect(200)["used_by"], name);
            let open = ann.post(&format!("{path}/reopen"), json!({"expires_in": 60})).await.expect(200);
            assert_eq!((&open["active"], &open["used_by"]), (&json!(true), &Value::Null));
        }
        let shown = ann.get(&path).await.expect(200);
        let uses = shown["uses"].as_array().unwrap();
        let names: Vec<_> = uses.iter().map(|u| u["username"].as_str().unwrap()).collect();
        assert_eq!((names, &shown["times_used"]), (vec!["one", "two", "three"], &json!(3)));
        // Reopening an active invite extends its lifetime.
        ann.post(&format!("{path}/reopen"), json!({})).await.expect(200);
        assert_eq!(join(&paddock.client, "/organization/invite/", &code, "four").await.status, 201);
    }

    async fn only_owners_manage_invites(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mia = paddock.member(&ann, "mia").await;
        mia.post("/api/v1/invites", json!({})).await.expect(403);
        mia.patch("/organization/invite/", json!({})).await.expect(403);
        let invite = ann.post("/api/v1/invites", json!({})).await;
        let (code, path) = (invite.text("code"), format!("/api/v1/invites/{}", invite.text("id")));
        mia.post(&format!("{path}/reopen"), json!({})).await.expect(403);
        mia.delete(&path).await.expect(403);
        mia.patch("/organization/invite/", json!({"code": code})).await.expect(403);
        assert_eq!(join(&paddock.client, "/organization/invite/", &code, "new").await.status, 201);
    }

    async fn members_may_create_invites_if_configured(engine: Engine) {
        let api = api::Settings { member_invites: true, ..api::Settings::default() };
        let (paddock, ann) = start_with(engine, TestSettings { api, ..Default::default() }).await;
        let mia = paddock.member(&ann, "mia").await;
        let invite = mia.post("/api/v1/invites", json!({})).await;
        mia.patch("/organization/invite/", json!({})).await.expect(201);
        let (code, path) = (invite.text("code"), format!("/api/v1/invites/{}", invite.text("id")));
        mia.post(&format!("{path}/reopen"), json!({})).await.expect(403);
        mia.delete(&path).await.expect(403);
        assert_eq!(join(&paddock.client, "/organization/invite/", &code, "new").await.status, 201);
    }

    async fn removed_user_cannot_rejoin_with_own_invites(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let bob = paddock.member(&ann, "bob").await;
        let me = format!("/api/v1/users/{}", bob.get("/api/v1/users/me").await.text("id"));
        ann.patch(&me, json!({"role": "owner"})).await.expect(200);
        let invite = bob.post("/api/v1/invites", json!({})).await;
        let (code, path) = (invite.text("code"), format!("/api/v1/invites/{}", invite.text("id")));
        let used = bob.patch("/organization/invite/", json!({})).await.text("code");
        assert_eq!(join(&paddock.client, "/organization/invite/", &used, "cat").await.status, 201);
        let anns = ann.patch("/organization/invite/", json!({})).await.text("code");

        ann.delete(&me).await.expect(204);
        for path in ["/organization/invite/", "/api/v1/invites/redeem"] {
            let answer = join(&paddock.client, path, &code, "bob").await;
            assert_eq!(answer.status, 410, "{:#}", answer.json);
        }
        // Nor can anyone make the code work again.
        ann.post(&format!("{path}/reopen"), json!({})).await.expect(409);
        ann.patch("/organization/invite/", json!({"code": used})).await.expect(409);
        let log = ann.get("/api/v1/events?type=invite.revoked").await.expect(200);
        assert_eq!(log["items"].as_array().unwrap().len(), 1, "{log:#}");
        assert_eq!(join(&paddock.client, "/organization/invite/", &anns, "dan").await.status, 201);
    }

    async fn maximum_lifetime_is_configurable(engine: Engine) {
        let api = api::Settings { invite_max_life: Duration::from_hours(1), ..api::Settings::default() };
        let (paddock, ann) = start_with(engine, TestSettings { api, ..Default::default() }).await;
        for path in ["/api/v1/invites", "/organization/invite/"] {
            let method = if path.starts_with("/api") { "POST" } else { "PATCH" };
            let invite = async |body: Value| ann.call(method, path, &body).await;
            names_field(&invite(json!({"expires_in": 3601})).await, "expires_in", path);
            invite(json!({"expires_in": 3600})).await.expect(201);
            let shown = invite(json!({})).await.expect(201);
            assert!(time(&shown["expires_at"]).since(paddock.db().now()) <= Duration::from_hours(1));
        }
    }

    async fn revoked_invite_cannot_be_redeemed(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let invite = ann.post("/api/v1/invites", json!({})).await;
        let (code, path) = (invite.text("code"), format!("/api/v1/invites/{}", invite.text("id")));
        ann.delete(&path).await.expect(204);
        assert_eq!(join(&paddock.client, "/organization/invite/", &code, "mia").await.status, 410);
        assert_eq!(status(&paddock.client, &code).await, (false, true, Value::Null));
        ann.post(&format!("{path}/reopen"), json!({})).await.expect(200);
        assert_eq!(join(&paddock.client, "/organization/invite/", &code, "mia").await.status, 201);
    }

    async fn invite_code_is_accepted_in_body_query_or_bearer(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let anybody = &paddock.client;
        let path = "/organization/invite/";
        for (name, from) in [("one", "body"), ("two", "query"), ("three", "bearer")] {
            let code = ann.patch(path, json!({})).await.text("code");
            let user = json!({"username": name, "password": "x"});
            let answer = match from {
                "body" => join(anybody, path, &format!(" {code} "), name).await,
                "query" => anybody.post(&format!("{path}?code={code}"), user).await,
                _ => anybody.with_token(&code).post(path, user).await,
            };
            let joined = answer.expect(201);
            assert_eq!((&joined["username"], &joined["role"]), (&json!(name), &json!("member")));
            assert_eq!(joined["organization_id"], ann.get("/organization/").await.text("id"));
        }
        let none = anybody.post(path, json!({"username": "x", "password": "x"})).await;
        names_field(&none, "code", "no code");
        assert_eq!(join(anybody, path, "no such code", "x").await.status, 404);
    }

    async fn failed_redemption_leaves_the_invite_active(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let code = ann.patch("/organization/invite/", json!({})).await.text("code");
        assert_eq!(join(&paddock.client, "/organization/invite/", &code, "ANN").await.status, 409);
        assert_eq!(join(&paddock.client, "/organization/invite/", &code, "a b").await.status, 400);
        assert_eq!(status(&paddock.client, &code).await, (true, false, Value::Null));
        assert_eq!(join(&paddock.client, "/organization/invite/", &code, "mia").await.status, 201);
    }
}

async fn join(client: &Client, path: &str, code: &str, name: &str) -> Answer {
    client.post(path, json!({"code": code, "username": name, "password": "x"})).await
}

/// `active`, `expired` and `used_by`; both APIs return the same.
async fn status(anybody: &Client, code: &str) -> (bool, bool, Value) {
    let kargo = anybody.get(&format!("/organization/invite/?code={code}")).await.expect(200);
    let platform = anybody.post("/api/v1/invites/check", json!({"code": code})).await.expect(200);
    assert_eq!(kargo, platform);
    let is = |field: &str| kargo[field].as_bool().unwrap();
    (is("active"), is("expired"), kargo["used_by"].clone())
}

fn time(text: &Value) -> Time {
    text.as_str().unwrap().parse().unwrap()
}
