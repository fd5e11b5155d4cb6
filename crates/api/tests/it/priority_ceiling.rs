//! The priority ceiling of organizations: the server's default, and the administrator's exceptions.

use serde_json::json;
use testing::on_both_engines;

use crate::world::{deployment_path, names_field, start_still};

on_both_engines! {
    async fn priority_above_the_ceiling_is_refused_in_every_api(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let cluster = json!({"cluster_name": "main", "resource": {"cpu": 1}});
        let cluster = ann.put("/cluster/", cluster).await.text("id");
        let body = json!({"resources": {"cpu": 1}, "priority": 101});
        let refused = ann.post("/api/v1/deployments", body.clone()).await;
        names_field(&refused, "priority", "ceiling");
        assert!(refused.json.to_string().contains("to 100 in this organization"), "{:#}", refused.json);
        names_field(&ann.post("/api/v1/deployments?dry_run=true", body).await, "priority", "dry run");
        let body = json!({"resource": {"cpu": 1}, "priority": 101, "cluster_id": cluster});
        names_field(&ann.put("/deployment/", body).await, "priority", "Kargo");
        let body = json!({"resources": {"cpu": 1}, "priority": 100});
        let made = ann.post("/api/v1/deployments", body).await.text("id");
        let path = deployment_path(&made);
        names_field(&ann.patch(&path, json!({"priority": 101})).await, "priority", "update");
        ann.patch(&path, json!({"priority": -5})).await.expect(200);
    }

    async fn administrator_raises_and_lowers_the_ceiling_of_one_organization(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let (zoe, admin) = (paddock.owner("zoe").await, paddock.admin().await);
        let me = ann.get("/api/v1/users/me").await.expect(200);
        let path = format!("/api/v1/organizations/{}", me["organization_id"].as_str().unwrap());
        for body in [json!({"max_priority": 500}), json!({"weight": 3}), json!({"max_priority": null})] {
            ann.patch(&path, body).await.expect(403);
        }
        names_field(&admin.patch(&path, json!({"max_priority": 1_000_001})).await, "max_priority", "range");
        for weight in [0, 1001] {
            names_field(&admin.patch(&path, json!({"weight": weight})).await, "weight", "range");
        }
        let changed = admin.patch(&path, json!({"max_priority": 500, "weight": 3})).await.expect(200);
        assert_eq!((&changed["max_priority"], &changed["weight"]), (&json!(500), &json!(3)));
        let body = json!({"resources": {"cpu": 1}, "priority": 500});
        let high = ann.post("/api/v1/deployments", body.clone()).await.text("id");
        names_field(&zoe.post("/api/v1/deployments", body).await, "priority", "other organization");

        // What exceeds the ceiling stays and can be changed otherwise.
        let changed = admin.patch(&path, json!({"max_priority": null})).await.expect(200);
        assert_eq!((&changed["max_priority"], &changed["weight"]), (&json!(null), &json!(3)));
        let high = deployment_path(&high);
        assert_eq!(ann.get(&high).await.expect(200)["priority"], 500);
        ann.patch(&high, json!({"name": "renamed", "priority": 500})).await.expect(200);
        names_field(&ann.patch(&high, json!({"priority": 499})).await, "priority", "lower, but above");
        ann.patch(&path, json!({"name": "mine"})).await.expect(200);
    }
}
