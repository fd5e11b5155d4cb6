//! Login and logout.

use std::time::Duration;

use serde_json::json;
use testing::{Client, TestPaddock, TestSettings, on_both_engines};

use crate::calls;
use crate::world::{World, names_field, start};

on_both_engines! {
    async fn token_is_valid_until_it_expires(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        assert_eq!(ann.get("/api/v1/users/me").await.expect(200)["username"], "ann");
        paddock.clock.advance(Duration::from_hours(24) - Duration::from_mins(5));
        ann.get("/api/v1/users/me").await.expect(200);
        paddock.clock.advance(Duration::from_mins(5));
        ann.get("/api/v1/users/me").await.expect(401);
    }

    async fn usernames_ignore_case(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        paddock.owner("Zoë").await;
        let zoe = paddock.sign_in(" zOË ", "secret").await;
        assert_eq!(zoe.get("/user/").await.expect(200)["username"], "Zoë");
        let body = json!({"name": "other", "owner": {"username": "ZOË", "password": "x"}});
        let taken = paddock.client.post("/api/v1/organizations", body).await;
        assert_eq!((taken.status, &taken.json["errors"][0]["field"]), (409, &json!("owner.username")));
        let body = json!({"name": "zoë", "owner": {"username": "other", "password": "x"}});
        let taken = paddock.client.post("/api/v1/organizations", body).await;
        assert_eq!((taken.status, &taken.json["errors"][0]["field"]), (409, &json!("name")));
    }

    async fn logout_revokes_only_its_own_token(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let elsewhere = paddock.sign_in("ann", "secret").await;
        for client in [&ann, &elsewhere] {
            client.get("/user/").await.expect(200);
        }
        ann.post("/api/v1/logout", json!({})).await.expect(204);
        ann.get("/user/").await.expect(401);
        ann.get("/api/v1/events").await.expect(401);
        elsewhere.get("/user/").await.expect(200);
    }

    async fn revoked_token_is_rejected_under_concurrency(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        paddock.owner("ann").await;
        for _ in 0..10 {
            let ann = paddock.sign_in("ann", "secret").await;
            let asking = futures_util::future::join_all((0..20).map(|_| ann.get("/user/")));
            let leaving = ann.post("/api/v1/logout", json!({}));
            tokio::join!(asking, leaving);
            ann.get("/user/").await.expect(401);
        }
    }

    async fn password_change_ends_all_sessions(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let elsewhere = paddock.sign_in("ann", "secret").await;
        elsewhere.get("/user/").await.expect(200);
        basic(&paddock.client, "/user/", "ann", "secret", 200).await;
        let path = "/api/v1/users/me";
        names_field(&ann.patch(path, json!({"password": "new"})).await, "current_password", path);
        let wrong = json!({"password": "new", "current_password": "wrong"});
        names_field(&ann.patch(path, wrong).await, "current_password", path);
        elsewhere.get("/user/").await.expect(200);

        ann.patch(path, json!({"password": "new", "current_password": "secret"})).await.expect(200);
        elsewhere.get("/user/").await.expect(401);
        basic(&paddock.client, "/user/", "ann", "secret", 401).await;
        basic(&paddock.client, "/user/", "ann", "new", 200).await;
        paddock.sign_in("ann", "new").await.get("/user/").await.expect(200);
    }

    async fn basic_authentication_works_on_every_kargo_endpoint(engine: Engine) {
        let world = World::new(engine).await;
        let anybody = &world.paddock.client;
        let all = calls::all(&world.ours);
        let users = all.iter().filter(|call| call.is_for_users() && !call.is_for_admins());
        for call in users.filter(|call| call.method == "GET" && !call.needs_query()) {
            basic(anybody, &call.path, "ann", "secret", 200).await;
        }
        let body = json!({"cluster_name": "b", "resource": {"cpu": 1}});
        let request = anybody.request("PUT", "/cluster/").basic_auth("ann", Some("secret"));
        assert_eq!(anybody.send(request.json(&body)).await.status, 201);
        basic(anybody, "/cluster/", "ann", "wrong", 401).await;
        basic(anybody, "/cluster/", "nobody", "secret", 401).await;
        basic(anybody, "/cluster/", "a\0b", "secret", 401).await;
    }

    async fn failed_login_does_not_reveal_whether_a_user_exists(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        paddock.owner("ann").await;
        let long = "x".repeat(10_000);
        let mut said = Vec::new();
        for (username, password) in
            [("ann", "wrong"), ("nobody", "secret"), ("", ""), ("a\0b", "\0"), (&long, &long)]
        {
            for path in ["/user/login/", "/api/v1/login"] {
                let body = json!({"username": username, "password": password});
                said.push(paddock.client.post(path, body).await.expect(401)["detail"].clone());
            }
        }
        said.dedup();
        assert_eq!(said.len(), 1, "{said:?}");
    }

    async fn minimum_password_length_is_configurable(engine: Engine) {
        let api = api::Settings { password_min: 10, ..api::Settings::default() };
        let paddock = TestPaddock::start_with(engine, TestSettings { api, ..Default::default() }).await;
        let user = |password: &str| json!({"username": "ann", "password": password});
        let body = json!({"user": user("ninechars"), "organization": {"name": "ann"}});
        let answer = paddock.client.put("/user/create/", body).await;
        names_field(&answer, "user.password", "nine");
        assert!(answer.json["detail"].as_str().unwrap().contains("at least 10"), "{:#}", answer.json);
        let body = json!({"user": user("tenletters"), "organization": {"name": "ann"}});
        paddock.client.put("/user/create/", body).await.expect(201);
        let ann = paddock.sign_in("ann", "tenletters").await;
        let change = json!({"password": "short", "current_password": "tenletters"});
        names_field(&ann.patch("/api/v1/users/me", change).await, "password", "short");
    }

    async fn non_empty_password_is_accepted_by_default(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        for (i, password) in [" ", "x", "pass:word", "\u{0}\u{1b}", "日本語"].iter().enumerate() {
            let user = json!({"username": format!("user{i}"), "password": password});
            let body = json!({"user": user, "organization": {"name": format!("user{i}")}});
            paddock.client.put("/user/create/", body).await.expect(201);
            paddock.sign_in(&format!("user{i}"), password).await;
            basic(&paddock.client, "/user/", &format!("user{i}"), password, 200).await;
        }
    }
}

async fn basic(anybody: &Client, path: &str, user: &str, password: &str, status: u16) {
    let request = anybody.request("GET", path).basic_auth(user, Some(password));
    anybody.send(request).await.expect(status);
}
