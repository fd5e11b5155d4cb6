//! Quota limits under concurrency; rejected requests have no effect.

use futures_util::future::join_all;
use model::kind::{Catalog, Kind};
use serde_json::{Value, json};
use testing::{Client, Engine, TestPaddock, TestSettings, on_both_engines};

use crate::fleet::{
    API, KAFKAS, charged, fails, grant, kafka, organization, request_kafka, start_fleet,
};
use crate::world::{start_still, start_with};

on_both_engines! {
    async fn quota_holds_under_concurrency(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let own = organization(&ann).await;
        grant(&paddock, json!({"organization_id": own, "limit": 5})).await;
        let names: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
        let answers = join_all(names.iter().map(|name| request_kafka(&ann, name, json!({})))).await;
        for answer in answers.iter().filter(|answer| answer.status != 202) {
            fails(answer, 5, 403);
        }
        assert_eq!(answers.iter().filter(|answer| answer.status == 202).count(), 5);
        assert_eq!(ann.get(KAFKAS).await.expect(200)["total"], 5);
        let expected = [
            (format!("kafka organization/{own} standard.standard"), 5),
            ("kafka region/local/local standard".to_owned(), 5),
        ];
        assert_eq!(charged(&paddock).await, expected);
    }

    async fn full_region_charges_no_quota(engine: Engine) {
        let (paddock, ann) = limited(engine, "standard", 3).await;
        let own = organization(&ann).await;
        grant(&paddock, json!({"organization_id": own, "limit": 100})).await;
        assert_eq!(sizes(&ann).await, json!(["x1", "x2"]));
        request_kafka(&ann, "large", json!({"plan": "standard.x2"})).await.expect(202);
        assert_eq!(sizes(&ann).await, json!(["x1"]));
        let names: Vec<String> = (0..10).map(|n| format!("k{n}")).collect();
        let answers = join_all(names.iter().map(|name| request_kafka(&ann, name, json!({})))).await;
        for answer in answers.iter().filter(|answer| answer.status != 202) {
            fails(answer, 24, 403);
        }
        assert_eq!(answers.iter().filter(|answer| answer.status == 202).count(), 1);
        assert_eq!(sizes(&ann).await, json!([]));
        assert!(charged(&paddock).await.iter().all(|(_, units)| *units == 3));
    }

    async fn region_without_capacity_rejects_instances(engine: Engine) {
        let (paddock, ann) = limited(engine, "developer", 0).await;
        fails(&request_kafka(&ann, "a", json!({})).await, 24, 403);
        assert_eq!(charged(&paddock).await, []);
    }

    async fn quota_is_visible_before_creation(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let free = ann.get("/api/v1/quota").await.expect(200);
        assert_eq!(free["is_limited"], false);
        assert!(of_kafka(&free).iter().all(|one| one["limit"].is_null()));
        let own = organization(&ann).await;
        grant(&paddock, json!({"organization_id": own, "limit": 5})).await;
        kafka(&ann, "a").await;
        let limited = ann.get("/api/v1/quota").await.expect(200);
        let expected = json!([{"kind": "kafka", "instance_type": "standard", "billing_model": "standard",
            "holder": format!("organization/{own}"), "limit": 5, "used": 1, "expires_at": null}]);
        assert_eq!((json!(of_kafka(&limited)), &limited["is_limited"]), (expected, &json!(true)));
        kafka(&zoe, "a").await;
        let trial = zoe.get("/api/v1/quota").await.expect(200);
        let trial = &of_kafka(&trial)[0];
        assert_eq!((&trial["instance_type"], &trial["limit"], &trial["used"]),
            (&json!("developer"), &json!(1), &json!(1)));
    }

    async fn only_the_administrator_grants_quota(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let (ann, admin) = (paddock.owner("ann").await, paddock.admin().await);
        let body = json!({"username": "ann", "instance_type": "standard", "limit": 3});
        for (method, path) in [
            ("GET", "/api/v1/admin/quota"),
            ("POST", "/api/v1/admin/quota"),
            ("DELETE", "/api/v1/admin/quota/9m4e2mr0ui3e8a215n4g"),
        ] {
            ann.send(ann.request(method, path).json(&body)).await.expect(403);
        }
        for path in ["/api/v1/admin/denied-owners", "/api/v1/admin/denied-owners/x"] {
            let method = if path.ends_with('x') { "DELETE" } else { "GET" };
            ann.send(ann.request(method, path)).await.expect(403);
        }
        let made = admin.post("/api/v1/admin/quota", body).await.expect(201);
        assert_eq!((&made["holder"], &made["limit"]), (&json!("user/ann"), &json!(3)));
        let all = admin.get("/api/v1/admin/quota").await.expect(200);
        assert_eq!(all["items"], json!([made]));
        let none = admin.get("/api/v1/admin/quota?holder=user/bob").await.expect(200);
        assert_eq!(none["items"], json!([]));
        assert_eq!(request_kafka(&ann, "a", json!({})).await.expect(202)["instance_type"], "standard");
        admin.delete(&format!("/api/v1/admin/quota/{}", made["id"].as_str().unwrap())).await.expect(204);
        assert_eq!(ann.get("/api/v1/quota").await.expect(200)["is_limited"], false);
        let both = json!({"username": "ann", "organization_id": organization(&ann).await, "instance_type": "standard"});
        admin.post("/api/v1/admin/quota", both).await.expect(400);
        let never = json!({"organization_id": "9m4e2mr0ui3e8a215n4g", "instance_type": "standard"});
        admin.post("/api/v1/admin/quota", never).await.expect(404);
    }
}

/// Starts a server without workers, with a limit on this instance type in the first region.
async fn limited(engine: Engine, instance_type: &str, limit: u32) -> (TestPaddock, Client) {
    let catalog = Catalog::built_in();
    let mut kafka = Kind::clone(catalog.kind("kafka").unwrap());
    kafka.clouds[0].regions[0].types.get_mut(instance_type).unwrap().limit = Some(limit);
    let catalog = Some(catalog.with(vec![kafka]).unwrap());
    start_with(engine, TestSettings { api_only: true, catalog, ..TestSettings::default() }).await
}

/// Available sizes of standard kafkas.
async fn sizes(client: &Client) -> Value {
    let regions = client.get(&format!("{API}/cloud_providers/local/regions")).await.expect(200);
    assert_eq!(regions["items"][0]["capacity"][0]["instance_type"], "standard");
    regions["items"][0]["capacity"][0]["available_sizes"].clone()
}

fn of_kafka(allowance: &Value) -> Vec<Value> {
    let items = allowance["items"].as_array().unwrap().iter();
    items.filter(|one| one["kind"] == "kafka").cloned().collect()
}
