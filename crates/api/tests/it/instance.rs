//! Instances in the platform API.

use serde_json::json;
use testing::on_both_engines;

use crate::fleet::{kafka, organization, start_fleet};
use crate::world::{refused, start, start_still};

const INSTANCES: &str = "/api/v1/instances";

on_both_engines! {
    async fn instance_is_visible_in_both_apis(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let body = json!({"kind": "kafka", "name": "orders", "plan": "standard.x1"});
        let send = async || {
            let request = ann.request("POST", INSTANCES).json(&body);
            ann.send(request.header("idempotency-key", "one")).await
        };
        let made = send().await.expect(201);
        assert_eq!(send().await.expect(201), made);
        assert_eq!((&made["plan"], &made["status"]), (&json!("standard.x1"), &json!("accepted")));
        assert_eq!(made["organization_id"], organization(&ann).await);
        let id = made["id"].as_str().unwrap();
        ann.get(&format!("/api/kafkas_mgmt/v1/kafkas/{id}")).await.expect(200);
        assert_eq!(ann.get(&format!("{INSTANCES}/{id}")).await.expect(200), made);
        zoe.get(&format!("{INSTANCES}/{id}")).await.expect(404);
        // The name is in use in both APIs.
        let again = ann.post(INSTANCES, body).await;
        refused(&again, "taken");
        assert_eq!(again.status, 409);
        for (query, count) in [("kind=kafka", 1), ("kind=dinosaur", 0), ("name=orders", 1), ("owner=bob", 0), ("status=ready", 0)] {
            let list = ann.get(&format!("{INSTANCES}?{query}")).await.expect(200);
            assert_eq!(list["items"].as_array().unwrap().len(), count, "{query}");
        }
        assert_eq!(zoe.get(INSTANCES).await.expect(200)["items"], json!([]));
    }

    async fn unsupported_fields_of_a_kind_are_rejected(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        for (field, value) in [
            ("plan", json!("standard.x1")),
            ("billing_model", json!("standard")),
            ("cluster_id", json!("x")),
            ("reauthentication", json!(true)),
        ] {
            let mut body = json!({"kind": "dinosaur", "name": "rex"});
            body[field] = value;
            let answer = ann.post(INSTANCES, body).await;
            assert_eq!((answer.status, &answer.json["errors"][0]["field"]), (400, &json!(field)));
        }
        let body = json!({"kind": "kafka", "name": "a", "cluster_id": "nobody's"});
        let answer = ann.post(INSTANCES, body).await;
        assert_eq!((answer.status, &answer.json["errors"][0]["field"]), (403, &json!("cluster_id")));
    }

    async fn owners_and_administrators_change_and_delete_instances(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let (bob, admin) = (paddock.member(&ann, "bob").await, paddock.admin().await);
        let path = format!("{INSTANCES}/{}", kafka(&ann, "orders").await);
        bob.patch(&path, json!({"owner": "bob"})).await.expect(403);
        bob.delete(&path).await.expect(403);
        let stale = ann.request("PATCH", &path).json(&json!({"owner": "bob"}));
        ann.send(stale.header("if-match", "\"7\"")).await.expect(412);
        let changed = ann.patch(&path, json!({"owner": "bob", "reauthentication": false})).await.expect(200);
        assert_eq!((&changed["owner"], &changed["reauthentication"], &changed["generation"]),
            (&json!("bob"), &json!(false), &json!(2)));
        assert_eq!(admin.delete(&path).await.expect(202)["status"], "deprovision");
    }

    async fn kinds_are_listed(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let kinds = ann.get("/api/v1/kinds").await.expect(200);
        assert_eq!(kinds["items"][0]["name"], "dinosaur");
        assert_eq!(kinds["items"][1]["plans"][1]["name"], "standard.x2");
        assert_eq!(kinds["items"][1]["regions"][0]["is_default"], true);
    }

    async fn deployment_of_an_instance_cannot_be_changed(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        paddock.cluster(&ann, json!({"cpu": 1, "ram": "1Gi"})).await;
        let id = kafka(&ann, "orders").await;
        paddock.until(&ann, &format!("{INSTANCES}/{id}"), "status", "ready").await;
        let mut read = paddock.db().read().await.unwrap();
        let found = store::instance::get(&mut read, store::Scope::All, id.parse().unwrap()).await.unwrap();
        drop(read);
        let deployment = found.deployment_id.unwrap();
        assert_eq!(ann.get("/api/v1/deployments").await.expect(200)["items"], json!([]));
        let path = format!("/api/v1/deployments/{deployment}");
        for answer in [
            ann.patch(&path, json!({"priority": 5})).await,
            ann.delete(&path).await,
            ann.delete(&format!("/deployment/{deployment}/")).await,
        ] {
            refused(&answer, "an instance's");
            assert_eq!(answer.status, 409, "{:#}", answer.json);
            assert!(answer.json["detail"].as_str().unwrap().contains(&id), "{:#}", answer.json);
        }
        ann.delete(&format!("{INSTANCES}/{id}")).await.expect(202);
        paddock.until_deleted(&ann, &format!("{INSTANCES}/{id}")).await;
    }
}
