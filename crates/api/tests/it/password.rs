//! Password resets.

use std::time::Duration;

use serde_json::json;
use testing::{Client, TestPaddock, on_both_engines};

use crate::world::{names_field, start};

const REDEEM: &str = "/api/v1/password-resets/redeem";

async fn path(client: &Client) -> String {
    format!("/api/v1/users/{}/password-reset", client.get("/user/").await.text("id"))
}

on_both_engines! {
    async fn owner_resets_the_password_of_a_member(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mia = paddock.member(&ann, "mia").await;
        let token = mia.post("/api/v1/tokens", json!({"name": "ci"})).await.text("token");
        let ci = mia.with_token(&token);
        let reset = ann.post(&path(&mia).await, json!({})).await.expect(201);
        assert_eq!(reset["username"], "mia");
        for client in [&mia, &ci] {
            client.get("/user/").await.expect(401);
        }
        let login = |password: &str| json!({"username": "mia", "password": password});
        paddock.client.post("/api/v1/login", login("secret")).await.expect(401);

        let code = reset["code"].as_str().unwrap();
        paddock.client.post("/api/v1/login", login(code)).await.expect(401);
        let body = |code: &str, password: &str| json!({"code": code, "password": password});
        names_field(&paddock.client.post(REDEEM, body(code, "")).await, "password", "empty");
        paddock.client.post(REDEEM, body("wrong", "new")).await.expect(404);
        let redeemed = paddock.client.post(REDEEM, body(code, "new")).await.expect(200);
        assert_eq!(redeemed["username"], "mia");
        paddock.client.post(REDEEM, body(code, "again")).await.expect(404);
        paddock.sign_in("mia", "new").await.get("/user/").await.expect(200);
        let events = ann.get("/api/v1/events?kind=user&limit=1000").await.expect(200).to_string();
        assert!(events.contains("user.password_reset") && !events.contains(code), "{events}");
    }

    async fn reset_code_expires_after_a_day(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mia = paddock.member(&ann, "mia").await;
        let code = ann.post(&path(&mia).await, json!({})).await.text("code");
        paddock.clock.advance(Duration::from_hours(24));
        let body = json!({"code": code, "password": "new"});
        paddock.client.post(REDEEM, body).await.expect(404);
    }

    async fn only_owners_and_administrators_reset_passwords_within_their_reach(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (mia, zoe) = (paddock.member(&ann, "mia").await, paddock.owner("zoe").await);
        let admin = paddock.admin().await;
        mia.post(&path(&ann).await, json!({})).await.expect(403);
        zoe.post(&path(&mia).await, json!({})).await.expect(404);
        // One's own password needs the current one.
        ann.post(&path(&ann).await, json!({})).await.expect(409);
        admin.post(&path(&zoe).await, json!({})).await.expect(201);
        let found = admin.get("/api/v1/users?username=MIA").await.expect(200);
        assert_eq!(found["items"][0]["username"], "mia");
        assert_eq!(ann.get("/api/v1/users?username=zoe").await.expect(200)["items"], json!([]));
    }

    async fn owner_of_the_platform_organization_does_not_reset_the_administrator(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let admin = paddock.admin().await;
        let pat = paddock.member(&admin, "pat").await;
        let pat_id = pat.get("/user/").await.text("id");
        admin.patch(&format!("/api/v1/users/{pat_id}"), json!({"role": "owner"})).await.expect(200);
        pat.post(&path(&admin).await, json!({})).await.expect(403);
        admin.get("/user/").await.expect(200);
    }
}
