//! Conventions of all fleet endpoints.

use serde_json::json;
use testing::{Client, on_both_engines};

use crate::calls;
use crate::fleet::{API, KAFKAS, fails, kafka, start_fleet};
use crate::world::{World, start_still};

/// Endpoints without authentication. Every addition must be deliberate.
const OPEN: &[&str] = &[
    "GET /api/{api}",
    "GET /api/{api}/v1",
    "GET /api/{api}/v1/openapi",
    "GET /api/{api}/v1/errors",
    "GET /api/{api}/v1/errors/{id}",
    "GET /api/{api}/v1/sso_providers",
    TOKEN,
];
/// Token endpoint, which has its own error format.
const TOKEN: &str = "POST /auth/realms/paddock/protocol/openid-connect/token";

on_both_engines! {
    async fn endpoints_require_authentication_and_are_isolated(engine: Engine) {
        let (world, before) = World::with_snapshot(engine).await;
        for call in calls::fleet(&world.theirs) {
            assert_eq!(call.is_open(), OPEN.contains(&call.name().as_str()), "{}", call.name());
            let path = format!("{}?async=true", call.path);
            let send = async |client: &Client| client.send(call.request(client, &path)).await;
            let nobody = &world.paddock.client;
            if call.is_open() {
                let expected = if call.name() == TOKEN { 400 } else { 200 };
                send(nobody).await.expect(expected);
                continue;
            }
            fails(&send(nobody).await, 15, 401);
            fails(&send(&nobody.with_token("bogus")).await, 15, 401);
            if call.template.contains("{plural}/{id}") {
                fails(&send(&world.ann).await, 7, 404);
            }
        }
        assert_eq!(world.snapshot().await, before);
    }

    async fn responses_are_compressed_on_request(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let path = format!("{API}/errors");
        let plain = paddock.client.request("GET", &path).send().await.unwrap();
        assert!(plain.headers().get("content-encoding").is_none());
        let plain = plain.bytes().await.unwrap();
        for (coding, begin) in [("gzip", 0x1f), ("deflate", 0x78)] {
            let request = paddock.client.request("GET", &path).header("accept-encoding", coding);
            let answer = request.send().await.unwrap();
            assert_eq!(answer.headers()["content-encoding"], coding);
            let packed = answer.bytes().await.unwrap();
            assert_eq!(packed[0], begin, "{coding}");
            assert!(packed.len() * 2 < plain.len(), "{} of {}", packed.len(), plain.len());
        }
    }

    async fn responses_have_operation_id_and_vary_headers(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let id = kafka(&ann, "a").await;
        let mut seen = std::collections::BTreeSet::new();
        for path in ["/api/kafkas_mgmt".to_owned(), format!("{API}/errors"), KAFKAS.to_owned(), format!("{KAFKAS}/{id}/")] {
            let answer = ann.get(&path).await;
            assert_eq!((answer.status, &answer.headers["vary"]), (200, &"Authorization".parse().unwrap()), "{path}");
            let id = answer.headers["x-operation-id"].to_str().unwrap().to_owned();
            assert!(id.len() == 20 && seen.insert(id), "{path}");
        }
        // Other APIs have none.
        assert!(!ann.get("/api/v1/instances").await.headers.contains_key("x-operation-id"));
    }

    async fn cors_preflight_is_allowed(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let nobody = &paddock.client;
        let request = nobody.request("OPTIONS", KAFKAS).header("origin", "https://example.org");
        let request = request.header("access-control-request-method", "POST");
        // Without the checking client: preflight requests are not in the documents.
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("access-control-max-age"), "600");
        assert_eq!(header("access-control-allow-methods"), "DELETE,GET,PATCH,POST");
        assert_eq!(header("access-control-allow-headers"), "authorization,content-type");
    }

    async fn api_root_lists_versions_and_collections(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let nobody = &paddock.client;
        let api = nobody.get("/api/kafkas_mgmt").await.expect(200);
        assert_eq!(api, json!({"id": "kafkas_mgmt", "kind": "API", "href": "/api/kafkas_mgmt", "versions": [
            {"id": "v1", "kind": "APIVersion", "href": API, "server_version": "", "collections": null}]}));
        let version = nobody.get(API).await.expect(200);
        let ids: Vec<_> = version["collections"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
        assert_eq!(json!(ids), json!(["kafkas", "service_accounts", "cloud_providers", "clusters"]));
        assert_eq!(version["collections"][0], json!({"id": "kafkas", "href": KAFKAS, "kind": "KafkaList"}));
        let document = nobody.get(&format!("{API}/openapi")).await.expect(200);
        let get = &document["paths"]["/api/kafkas_mgmt/v1/kafkas/{id}"]["get"];
        assert_eq!(get["parameters"].as_array().unwrap().len(), 1, "{get:#}");
        let properties = &document["components"]["schemas"]["Instance"]["properties"];
        assert_eq!(properties["bootstrap_server_host"]["type"], "string");
        let theirs = nobody.get("/api/dinosaurs_mgmt/v1/openapi").await.expect(200);
        let paths = theirs["paths"].as_object().unwrap();
        assert!(paths.keys().all(|path| !path.contains("promote") && !path.contains("{api}")), "{paths:#?}");
    }
}
