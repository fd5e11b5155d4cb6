//! `GET /api/v1/fleet/scaling`, and what foreign agents shall keep warm.

use model::scaling::Pool;
use serde_json::json;
use testing::{Engine, TestPaddock, TestSettings, on_both_engines, pools};

async fn start(engine: Engine, pools: Vec<Pool>) -> TestPaddock {
    TestPaddock::start_with(engine, TestSettings { pools, ..TestSettings::default() }).await
}

on_both_engines! {
    async fn an_administrator_sees_what_is_decided_and_why(engine: Engine) {
        let paddock = start(engine, vec![pools::pool("east", [("cpu", 4)], 1)]).await;
        let (admin, ann) = (paddock.admin().await, paddock.owner("ann").await);
        ann.get("/api/v1/fleet/scaling").await.expect(403);
        paddock.client.get("/api/v1/fleet/scaling").await.expect(401);
        let new = |name: &str| json!({"name": name, "resources": {"cpu": 3}});
        let first = ann.post("/api/v1/deployments", new("a")).await.text("id");
        paddock.until(&ann, &format!("/api/v1/deployments/{first}"), "status", "running").await;
        ann.post("/api/v1/deployments", new("b")).await.expect(201);
        let mut pool = json!(null);
        for _ in 0..400 {
            pool = admin.get("/api/v1/fleet/scaling").await.json["items"][0].clone();
            if pool["wish"] == "waiting" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        assert_eq!(pool["name"], "east");
        assert_eq!(pool["decision"], "stay");
        let reason = "Would grow, because 1 waits for 3 cpu that no cluster has; \
                      but there are 1 clusters, and at most 1 may be.";
        assert_eq!(pool["reason"], reason);
        assert_eq!(pool["clusters"], json!({"ready": 1}));
        assert_eq!((&pool["used"], &pool["free"]), (&json!({"cpu": 3}), &json!({"cpu": 1})));
        assert_eq!(pool["waiting"][0]["count"], 1);
        assert_eq!(pool["settings"]["at_most"], 1);
        assert!(pool["last_grown_at"].is_string() && pool["last_shrunk_at"].is_null());
        // What was made by the pool is everybody's, and its event tells why.
        let events = admin.get("/api/v1/events?type=pool.grown").await.json;
        let told = &events["items"][0]["data"];
        assert_eq!(told["reason"], "One more cluster, because 1 waits for 3 cpu that no cluster has.");
        let events = ann.get("/api/v1/events?type=pool.grown").await.json;
        assert_eq!(events["items"], json!([]));
    }

    async fn without_pools_there_is_nothing_to_see(engine: Engine) {
        let paddock = start(engine, Vec::new()).await;
        let admin = paddock.admin().await;
        assert_eq!(admin.get("/api/v1/fleet/scaling").await.json, json!({"items": []}));
    }
}
