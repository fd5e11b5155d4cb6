//! Scopes of tokens: one table for all routes.

use serde_json::{Value, json};
use testing::on_both_engines;

use crate::calls;
use crate::token::create;
use crate::world::{World, start};

const TOKENS: &str = "/api/v1/tokens";

on_both_engines! {
    async fn read_only_token_changes_nothing_on_any_route(engine: Engine) {
        let (world, _) = World::with_snapshot(engine).await;
        let (_, reader) = create(&world.ann, json!({"name": "r", "scope": {"read_only": true}})).await;
        let before = world.snapshot().await;
        let calls = calls::all(&world.ours).into_iter().chain(calls::fleet(&world.ours));
        let mut changing = 0;
        for call in calls.filter(|call| !call.template.contains("/admin/")) {
            let Some(action) = call.operation["x-paddock-access"]["action"].as_str() else { continue };
            let answer = reader.send(call.request(&reader, &call.path)).await;
            if !call.is_read() {
                changing += 1;
                assert_eq!(answer.status, 403, "{} {action}: {:#}", call.name(), answer.json);
            } else if !call.template.starts_with("/api/{api}/") && !action.starts_with("platform") {
                assert_ne!(answer.status, 403, "{}: {:#}", call.name(), answer.json);
            }
        }
        assert!(changing > 50, "only {changing} routes change something");
        assert_eq!(world.snapshot().await, before);
    }

    async fn token_is_limited_to_its_kinds(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 4})).await;
        let scope = json!({"name": "deployer", "scope": {"kinds": ["deployment"]}});
        let (_, ci) = create(&ann, scope).await;
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}});
        ci.post("/api/v1/deployments", body.clone()).await.expect(201);
        ci.put("/deployment/", json!({"cluster_id": cluster, "resource": {"cpu": 1}})).await.expect(201);
        ci.get("/api/v1/users/me").await.expect(200);
        for (method, path, body) in [
            ("GET", "/api/v1/clusters", Value::Null),
            ("GET", "/cluster/", Value::Null),
            ("GET", "/api/v1/events", Value::Null),
            ("GET", "/api/kafkas_mgmt/v1/kafkas", Value::Null),
            ("GET", "/api/v1/tokens", Value::Null),
            ("PATCH", "/api/v1/users/me", json!({"display_name": "x"})),
            ("POST", "/api/v1/tokens", json!({"name": "more"})),
            ("POST", "/api/v1/clusters", json!({"name": "x", "capacity": {"cpu": 1}})),
        ] {
            let answer = ci.call(method, path, &body).await;
            assert_eq!(answer.status, 403, "{method} {path}: {:#}", answer.json);
            let text = answer.json.to_string();
            assert!(text.contains("read and change subjects of kind deployment"), "{text}");
        }
        let (_, reader) =
            create(&ann, json!({"name": "r", "scope": {"kinds": ["deployment"], "read_only": true}})).await;
        reader.get("/api/v1/deployments").await.expect(200);
        reader.post("/api/v1/deployments", body).await.expect(403);
    }

    async fn token_creates_no_token_with_more_rights(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        let kinds = json!(["token", "deployment", "service_account"]);
        let (_, limited) =
            create(&ann, json!({"name": "l", "expires_in": 3600, "scope": {"kinds": kinds}})).await;
        for (body, status, field) in [
            (json!({"name": "all"}), 403, "scope"),
            (json!({"name": "other", "scope": {"kinds": ["deployment", "cluster"]}}), 403, "scope"),
            (json!({"name": "long", "expires_in": 7200, "scope": {"kinds": ["deployment"]}}), 403, "expires_in"),
            (json!({"name": "account", "service_account": "ci"}), 403, "scope"),
            (json!({"name": "ok", "scope": {"kinds": ["deployment"]}}), 201, ""),
            (json!({"name": "ro", "expires_in": 60, "scope": {"kinds": kinds, "read_only": true}}), 201, ""),
        ] {
            let answer = limited.post(TOKENS, body.clone()).await;
            assert_eq!(answer.status, status, "{body}: {:#}", answer.json);
            if status == 403 {
                assert_eq!(answer.json["errors"][0]["field"], field, "{body}: {:#}", answer.json);
            }
        }
        // Without a lifetime, the new token ends with the one that created it.
        let page = ann.get(TOKENS).await.expect(200);
        let find = |name: &str| {
            let items = page["items"].as_array().unwrap();
            items.iter().find(|t| t["name"] == name).unwrap()["expires_at"].clone()
        };
        assert_eq!(find("ok"), find("l"));
        // Credentials without a scope are out of reach.
        let account = json!({"name": "robot"});
        limited.post("/api/kafkas_mgmt/v1/service_accounts", account.clone()).await.expect(403);
        ann.post("/api/kafkas_mgmt/v1/service_accounts", account).await.expect(202);
    }
}
