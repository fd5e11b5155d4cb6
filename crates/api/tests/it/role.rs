//! Roles: viewers, auditors, and the roles that invites give.

use serde_json::{Value, json};
use testing::{Client, TestSettings, on_both_engines};

use crate::world::{deploy, deployment_path, details, names_field, start, start_with};

on_both_engines! {
    async fn viewer_reads_everything_and_changes_only_its_own_account(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 4, "ram": "1Gi"})).await;
        let body = json!({
            "cluster_id": cluster, "image": "web:1", "resources": {"cpu": 1},
            "env": {"KEY": "k3y-of-ann"},
        });
        let path = deployment_path(&deploy(&ann, body.clone()).await);
        let (vera, mia) =
            (paddock.user(&ann, "vera", "viewer").await, paddock.member(&ann, "mia").await);
        assert_eq!(vera.get("/user/").await.text("role"), "viewer");
        for (client, shown) in [(&ann, "k3y-of-ann"), (&mia, "k3y-of-ann"), (&vera, "•••")] {
            let list = client.get("/api/v1/deployments").await.expect(200);
            let single = client.get(&path).await.expect(200);
            for deployment in [&list["items"][0], &single] {
                assert_eq!(deployment["env"], json!({"KEY": shown}));
            }
        }
        for list in ["events", "users", "invites", "clusters", "organizations", "search?q=web"] {
            vera.get(&format!("/api/v1/{list}")).await.expect(200);
        }
        let refused = vera.post("/api/v1/deployments", body.clone()).await;
        assert_eq!(refused.status, 403, "{:#}", refused.json);
        assert!(details(&refused).contains("role member is needed"), "{:#}", refused.json);
        vera.put("/deployment/", json!({"cluster_id": cluster, "resource": {"cpu": 1}})).await.expect(403);
        vera.delete(&path).await.expect(403);
        vera.patch("/api/v1/users/me", json!({"role": "owner"})).await.expect(403);
        // Even with an id that belongs to nobody: the role decides first.
        vera.delete(&deployment_path("9m4e2mr0ui3e8a215n4g")).await.expect(403);
        let change = json!({"password": "new", "current_password": "secret"});
        vera.patch("/api/v1/users/me", change).await.expect(200);
        let vera = paddock.sign_in("vera", "new").await;
        vera.post("/api/v1/logout", Value::Null).await.expect(204);
    }

    async fn role_change_takes_effect_at_once(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mia = paddock.member(&ann, "mia").await;
        let cluster = json!({"name": "one", "capacity": {"cpu": 1}});
        mia.post("/api/v1/clusters", cluster.clone()).await.expect(201);
        set(&ann, &mia, json!({"role": "viewer"}), 200).await;
        mia.post("/api/v1/clusters", cluster.clone()).await.expect(403);
        mia.get("/api/v1/clusters").await.expect(200);
        set(&ann, &mia, json!({"role": "member"}), 200).await;
        mia.post("/api/v1/clusters", json!({"name": "two", "capacity": {"cpu": 1}})).await.expect(201);
    }

    async fn invite_gives_its_role(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        for (number, role) in ["viewer", "member", "owner"].into_iter().enumerate() {
            let invite = ann.post("/api/v1/invites", json!({"role": role})).await.expect(201);
            assert_eq!(invite["role"], role);
            let name = format!("user{number}");
            let body = json!({"code": invite["code"], "username": name, "password": "secret"});
            let joined = paddock.client.post("/api/v1/invites/redeem", body).await.expect(201);
            assert_eq!(joined["role"], role);
            // A reopened invite keeps its role.
            let path = format!("/api/v1/invites/{}/reopen", invite["id"].as_str().unwrap());
            let other = if role == "owner" { "member" } else { "owner" };
            names_field(&ann.post(&path, json!({"role": other})).await, "role", role);
            assert_eq!(ann.post(&path, json!({"role": role})).await.expect(200)["role"], role);
        }
        let none = ann.post("/api/v1/invites", json!({})).await.expect(201);
        assert_eq!(none["role"], "member");
        names_field(&ann.patch("/organization/invite/", json!({"role": "boss"})).await, "role", "");
        names_field(&ann.post("/api/v1/invites", json!({"role": "auditor"})).await, "role", "");
    }

    async fn only_owners_invite_owners(engine: Engine) {
        let api = api::Settings { member_invites: true, ..api::Settings::default() };
        let (paddock, ann) = start_with(engine, TestSettings { api, ..TestSettings::default() }).await;
        let (mia, vera) =
            (paddock.member(&ann, "mia").await, paddock.user(&ann, "vera", "viewer").await);
        for (role, status) in [("viewer", 201), ("member", 201), ("owner", 403)] {
            mia.post("/api/v1/invites", json!({"role": role})).await.expect(status);
            mia.patch("/organization/invite/", json!({"role": role})).await.expect(status);
            vera.post("/api/v1/invites", json!({"role": role})).await.expect(403);
        }
        ann.post("/api/v1/invites", json!({"role": "owner"})).await.expect(201);
    }

    async fn lesser_role_revokes_open_invites_of_the_user(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let oona = paddock.user(&ann, "oona", "owner").await;
        let code = oona.post("/api/v1/invites", json!({"role": "owner"})).await.text("code");
        set(&ann, &oona, json!({"display_name": "O", "role": "owner"}), 200).await;
        let check = async || {
            let status = paddock.client.post("/api/v1/invites/check", json!({"code": code})).await;
            status.expect(200)["active"].clone()
        };
        assert_eq!(check().await, true);
        set(&ann, &oona, json!({"role": "viewer"}), 200).await;
        assert_eq!(check().await, false);
        let body = json!({"code": code, "username": "oona2", "password": "secret"});
        paddock.client.post("/api/v1/invites/redeem", body).await.expect(410);
    }

    async fn auditor_reads_all_organizations_and_changes_nothing(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (admin, zoe) = (paddock.admin().await, paddock.owner("zoe").await);
        let cluster = paddock.cluster(&ann, json!({"cpu": 4, "ram": "1Gi"})).await;
        let body = json!({
            "cluster_id": cluster, "image": "web:1", "resources": {"cpu": 1},
            "env": {"KEY": "k3y-of-ann"},
        });
        let path = deployment_path(&deploy(&ann, body).await);
        let aude = paddock.member(&zoe, "aude").await.of_platform();
        aude.get(&path).await.expect(404);
        set(&zoe, &aude, json!({"access": "auditor"}), 403).await;
        set(&admin, &aude, json!({"access": "platform"}), 400).await;
        let user = set(&admin, &aude, json!({"access": "auditor"}), 200).await;
        assert_eq!((&user["access"], &user["role"]), (&json!("auditor"), &json!("viewer")));

        let shown = aude.get(&path).await.expect(200);
        assert_eq!(shown["env"], json!({"KEY": "•••"}));
        let events = aude.get("/api/v1/events?limit=1000").await.expect(200);
        let of = |name: &str| organization(&events, name);
        assert!(of("ann") && of("zoe") && of("platform"), "{events:#}");
        aude.get("/api/v1/admin/quota").await.expect(200);
        aude.get("/api/kafkas_mgmt/v1/admin/kafkas").await.expect(200);
        let refused = aude.delete(&path).await;
        assert_eq!(refused.status, 403);
        assert!(details(&refused).contains("auditor"), "{:#}", refused.json);
        aude.post("/api/v1/clusters", json!({"name": "x", "capacity": {"cpu": 1}})).await.expect(403);
        aude.patch("/api/v1/users/me", json!({"access": "tenant"})).await.expect(403);

        set(&admin, &aude, json!({"access": "tenant"}), 200).await;
        aude.get(&path).await.expect(404);
        assert_eq!(aude.get("/user/").await.text("role"), "viewer");
    }

    async fn administrator_and_last_owner_cannot_become_auditors(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let admin = paddock.admin().await;
        set(&admin, &admin, json!({"access": "tenant"}), 409).await;
        set(&admin, &ann, json!({"access": "auditor"}), 409).await;
        assert_eq!(ann.get("/user/").await.text("role"), "owner");
    }

    async fn user_is_found_by_name_within_the_callers_scope(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (admin, _zoe) = (paddock.admin().await, paddock.owner("zoe").await);
        let found = async |client: &Client, name: &str| {
            let page = client.get(&format!("/api/v1/users?username={name}")).await.expect(200);
            page["items"].as_array().unwrap().len()
        };
        assert_eq!(found(&ann, "ANN").await, 1);
        assert_eq!(found(&ann, "zoe").await, 0);
        assert_eq!(found(&admin, "zoe").await, 1);
        assert_eq!(found(&admin, "nobody").await, 0);
    }
}

/// Changes a user as another one.
async fn set(by: &Client, user: &Client, change: Value, status: u16) -> Value {
    let id = user.get("/user/").await.text("id");
    by.patch(&format!("/api/v1/users/{id}"), change).await.expect(status)
}

/// Whether an organization with this name was created.
fn organization(events: &Value, name: &str) -> bool {
    let all = events["items"].as_array().unwrap();
    all.iter().any(|event| event["kind"] == "organization" && event["data"]["name"] == name)
}
