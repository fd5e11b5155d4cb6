//! Every error of the fleet API with its code and status.

use serde_json::json;
use testing::on_both_engines;

use crate::fleet::{
    API, DINOSAURS, KAFKAS, fails, grant, kafka, organization, request_kafka, start_fleet,
};
use crate::world::start_still;

const ASYNC: &str = "?async=true";

on_both_engines! {
    async fn body_and_async_errors_come_first(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        for (query, body, code) in [
            (ASYNC, "", 17),
            (ASYNC, "{", 17),
            (ASYNC, "[]", 17),
            (ASYNC, "\"text\"", 17),
            (ASYNC, r#"{"name": 5}"#, 17),
            ("", "{", 17),
            (ASYNC, "null", 33),
            ("", "null", 103),
            ("", r#"{"name": "a"}"#, 103),
            ("?async=True", r#"{"name": "a"}"#, 103),
            ("?async=1", r#"{"name": "a"}"#, 103),
            ("?async=", r#"{"name": ""}"#, 103),
        ] {
            let request = ann.request("POST", &format!("{KAFKAS}{query}")).body(body);
            fails(&ann.send(request).await, code, 400);
        }
        assert_eq!(ann.get(KAFKAS).await.expect(200)["total"], 0);
        // Unknown fields and any content type are accepted.
        let request = ann.request("POST", &format!("{KAFKAS}{ASYNC}"));
        let request = request.body(r#"{"name": "a", "surprise": {"deep": [1]}}"#);
        ann.send(request.header("content-type", "text/plain")).await.expect(202);
    }

    async fn validation_errors_follow_the_order_of_the_checks(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        kafka(&ann, "taken").await;
        let long = "a".repeat(33);
        for (name, more, code, status) in [
            (long.as_str(), json!({"cloud_provider": "mars"}), 34, 400),
            ("", json!({}), 33, 400),
            ("Upper", json!({"cloud_provider": "mars"}), 32, 400),
            ("ends-", json!({}), 32, 400),
            ("taken", json!({"cloud_provider": "mars"}), 36, 409),
            ("a", json!({"cloud_provider": "mars", "plan": "x"}), 30, 400),
            ("a", json!({"region": "mars", "plan": "x"}), 31, 400),
            ("a", json!({"cloud_provider": "aws", "region": "eu-west-1"}), 41, 400),
            ("a", json!({"plan": "x", "billing_model": "free"}), 21, 400),
            ("a", json!({"plan": "huge.x1"}), 21, 400),
            ("a", json!({"plan": "standard.x9"}), 42, 400),
            ("a", json!({"plan": "standard.x1", "billing_model": "free"}), 37, 400),
            ("a", json!({"billing_model": "standard", "cluster_id": "c"}), 43, 400),
            ("a", json!({"billing_model": "enterprise"}), 21, 400),
            ("a", json!({"marketplace": "aws"}), 43, 400),
            ("a", json!({"cluster_id": "nobody's"}), 24, 403),
        ] {
            fails(&request_kafka(&ann, name, more).await, code, status);
        }
        assert_eq!(ann.get(KAFKAS).await.expect(200)["total"], 1);
        // Empty fields count as omitted.
        let empty = json!({"cluster_id": "", "cloud_provider": "", "region": "", "plan": ""});
        request_kafka(&ann, "empty", empty).await.expect(202);
    }

    async fn multi_az_is_required_by_some_kinds(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let path = format!("{DINOSAURS}{ASYNC}");
        fails(&ann.post(&path, json!({"name": "rex", "multi_az": false})).await, 35, 400);
        let body = json!({"name": "rex", "multi_az": false, "region": "mars"});
        fails(&ann.post(&path, body).await, 31, 400);
        // Fields that the kind does not offer are ignored.
        let body = json!({"name": "rex", "plan": "huge.x9", "billing_model": "free"});
        assert_eq!(ann.post(&path, body).await.expect(202)["multi_az"], true);
        ann.post(&path, json!({"name": "rexa", "multi_az": true})).await.expect(202);
    }

    async fn quota_and_trial_errors_have_their_codes(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let own = organization(&ann).await;
        grant(&paddock, json!({"organization_id": own, "limit": 2})).await;
        // Unlisted users may create one trial instance.
        fails(&request_kafka(&zoe, "a", json!({"plan": "standard.x1"})).await, 21, 400);
        assert_eq!(request_kafka(&zoe, "a", json!({})).await.expect(202)["instance_type"], "developer");
        fails(&request_kafka(&zoe, "b", json!({})).await, 24, 403);
        // Listed users get the granted type up to the limit.
        fails(&request_kafka(&ann, "a", json!({"plan": "developer.x1"})).await, 21, 400);
        fails(&request_kafka(&ann, "a", json!({"billing_model": "marketplace"})).await, 120, 403);
        assert_eq!(request_kafka(&ann, "a", json!({})).await.expect(202)["instance_type"], "standard");
        fails(&request_kafka(&ann, "b", json!({"plan": "standard.x2"})).await, 5, 403);
        request_kafka(&ann, "b", json!({})).await.expect(202);
        fails(&request_kafka(&ann, "c", json!({})).await, 5, 403);
        // An expired grant does not count.
        let ended = json!({"organization_id": own, "expires_at": "2001-01-01T00:00:00Z"});
        grant(&paddock, ended).await;
        fails(&request_kafka(&ann, "d", json!({})).await, 120, 403);
    }

    async fn denied_user_gets_403_on_every_endpoint(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let (ann, admin) = (paddock.owner("ann").await, paddock.admin().await);
        let id = kafka(&ann, "a").await;
        let body = json!({"owner": "ann", "reason": "abuse"});
        admin.post("/api/v1/admin/denied-owners", body).await.expect(201);
        for path in [KAFKAS.to_owned(), format!("{KAFKAS}/{id}"), format!("{API}/cloud_providers")] {
            fails(&ann.get(&path).await, 4, 403);
        }
        fails(&request_kafka(&ann, "b", json!({})).await, 4, 403);
        let body = json!({"kind": "kafka", "name": "b"});
        ann.post("/api/v1/instances", body).await.expect(403);
        admin.delete("/api/v1/admin/denied-owners/ann").await.expect(204);
        ann.get(KAFKAS).await.expect(200);
    }

    async fn unknown_paths_are_404_when_authenticated(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let (ann, nobody) = (paddock.owner("ann").await, &paddock.client);
        let never = "9m4e2mr0ui3e8a215n4g";
        for path in [
            format!("{API}/nothing"),
            format!("{API}/dinosaurs"),
            format!("{KAFKAS}/{never}"),
            format!("{KAFKAS}/x"),
            format!("{KAFKAS}/{never}/nothing/here"),
            format!("{API}/cloud_providers/mars/regions"),
            format!("{API}/status"),
            "/api/kafkas_mgmt/v2".to_owned(),
            "/api/dinosaurs_mgmt/v1/instance_types/aws/us-east-1".to_owned(),
        ] {
            fails(&ann.get(&path).await, 7, 404);
            fails(&nobody.get(&path).await, 15, 401);
        }
        fails(&nobody.with_token("bogus").get(KAFKAS).await, 15, 401);
        fails(&ann.delete(KAFKAS).await, 10, 405);
        fails(&ann.put(&format!("{KAFKAS}/{never}"), json!({})).await, 10, 405);
        fails(&ann.delete(&format!("{KAFKAS}/{never}{ASYNC}")).await, 7, 404);
        fails(&ann.delete(&format!("{KAFKAS}/{never}")).await, 103, 400);
        fails(&ann.get(&format!("{API}/instance_types/mars/x")).await, 30, 400);
        fails(&ann.get(&format!("{API}/instance_types/aws/x")).await, 31, 400);
        // A kind that is not in the catalog has no API error format.
        let answer = ann.request("GET", "/api/unicorns_mgmt/v1/unicorns").send().await.unwrap();
        assert_eq!(answer.status(), 404);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
    }

    async fn error_catalogue_is_listed(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let nobody = &paddock.client;
        let all = nobody.get(&format!("{API}/errors")).await.expect(200);
        assert_eq!(all["kind"], "ErrorList");
        let codes = |list: &serde_json::Value| -> Vec<u16> {
            let items = list["items"].as_array().unwrap().iter();
            items.map(|one| one["id"].as_str().unwrap().parse().unwrap()).collect()
        };
        let all_codes = codes(&all);
        assert!(all_codes.is_sorted() && all_codes.contains(&429) && !all_codes.contains(&35));
        let total = all_codes.len();
        assert_eq!((&all["size"], &all["total"]), (&json!(total), &json!(total)));
        let part = nobody.get(&format!("{API}/errors?page=2&size=3")).await.expect(200);
        assert_eq!((codes(&part), &part["size"]), (all_codes[3..6].to_vec(), &json!(3)));
        let last = nobody.get(&format!("{API}/errors?page=99&size=3")).await.expect(200);
        assert_eq!(codes(&last), all_codes);
        let one = nobody.get(&format!("{API}/errors/36")).await.expect(200);
        assert_eq!((&one["code"], &one["kind"]), (&json!("KAFKAS-MGMT-36"), &json!("Error")));
        for id in ["35", "1", "x", "036"] {
            fails(&nobody.get(&format!("{API}/errors/{id}")).await, 7, 404);
        }
        let theirs = nobody.get("/api/dinosaurs_mgmt/v1/errors/35").await.expect(200);
        assert_eq!(theirs["code"], "DINOSAURS-MGMT-35");
    }
}
