//! Server information, web pages, and requests rejected before any handler runs.

use reqwest::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use serde_json::{Value, json};
use testing::{Client, Engine, TestPaddock, on_both_engines};

use crate::world::{refused, start};

on_both_engines! {
    async fn health_endpoints_report_status(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let anybody = &paddock.client;
        let info = anybody.get("/api/v1/self/info").await.expect(200);
        let database = if engine == Engine::Sqlite { "sqlite" } else { "postgresql" };
        assert_eq!((&info["name"], &info["database"]), (&json!("paddock"), &json!(database)));
        for path in ["started", "readiness", "liveliness", "liveliness?type=summary"] {
            let health = anybody.get(&format!("/api/v1/self/{path}")).await.expect(200);
            assert_eq!(health, json!({"status": "healthy"}), "{path}");
        }
        let detailed = anybody.get("/api/v1/self/liveliness?type=detailed").await.expect(200);
        let checks = detailed["checks"].as_array().unwrap();
        let names: Vec<_> = checks.iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["database", "work queue", "agent"]);
        let pong = anybody.get("/api/v1/self/ping").await.expect(200);
        assert_eq!(pong["response"], "pong");
    }

    async fn metrics_endpoint_has_all_series(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        paddock.cluster(&ann, json!({"cpu": 1})).await;
        let (status, headers, _) = raw(&ann, "GET", "/metrics").await;
        assert_eq!(status, 200);
        assert!(headers[CONTENT_TYPE].to_str().unwrap().starts_with("application/openmetrics-text"));
        let wanted = [
            "paddock_http_requests_total{method=\"POST\",route=\"/api/v1/clusters\",status=\"201\"} 1",
            "paddock_http_seconds_bucket{le=",
            "paddock_work_queue ",
            "paddock_work_failing 0",
            "paddock_work_runs_total{worker=\"cluster\",outcome=",
            "paddock_work_seconds_count{worker=\"cluster\"}",
            "paddock_work_late_seconds_count ",
            "paddock_work_running ",
        ];
        // A reconciliation is counted shortly after its effect is visible.
        for tries in 0.. {
            let (_, _, text) = raw(&ann, "GET", "/metrics").await;
            let Some(missing) = wanted.iter().find(|series| !text.contains(**series)) else { break };
            assert!(tries < 200, "{missing} is not in {text}");
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
    }

    async fn pages_have_a_security_policy_and_etags(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        for path in ["/", "/docs", "/docs/"] {
            let (status, headers, text) = raw(&paddock.client, "GET", path).await;
            assert_eq!(status, 200, "{path}");
            assert!(headers[CONTENT_TYPE].to_str().unwrap().starts_with("text/html"), "{path}");
            let policy = headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(policy.contains("default-src 'self'"), "{policy}");
            assert_eq!(headers["x-content-type-options"], "nosniff");
            assert!(text.to_lowercase().contains("<!doctype html>"), "{path}");
            let request = paddock.client.request("GET", path).header(IF_NONE_MATCH, &headers[ETAG]);
            let again = request.send().await.unwrap();
            assert_eq!((again.status().as_u16(), &again.headers()[ETAG]), (304, &headers[ETAG]));
            assert!(again.bytes().await.unwrap().is_empty());
        }
        for name in ["kargo", "platform"] {
            let (status, _, text) = raw(&paddock.client, "GET", &format!("/docs/{name}.json")).await;
            let document: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
        }
    }

    async fn unknown_paths_return_a_problem_document(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        for (method, path, status) in [
            ("GET", "/nothing", 404),
            ("GET", "/api/v1/nothing", 404),
            ("GET", "/api/v2/clusters", 404),
            ("POST", "/cluster/x/y/z/", 404),
            ("GET", "/assets/../secret", 404),
            ("GET", "/user/create/", 405),
            ("POST", "/api/v1/clusters/9m4e2mr0ui3e8a215n4g", 405),
            ("PUT", "/api/v1/clusters", 405),
            ("DELETE", "/api/v1/events", 405),
            ("POST", "/metrics", 405),
            ("POST", "/", 405),
            ("DELETE", "/docs", 405),
            ("GET", "/cluster/%FF/", 400),
            ("GET", "/api/v1/clusters/%00", 404),
        ] {
            let answer = ann.send(ann.request(method, path)).await;
            refused(&answer, path);
            assert_eq!(answer.status, status, "{method} {path}: {:#}", answer.json);
        }
    }

    async fn body_limit_is_one_mebibyte(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        let body = |bytes: usize| {
            let frame = r#"{"name":"","capacity":{"cpu":1}}"#.len();
            format!(r#"{{"name":"{}","capacity":{{"cpu":1}}}}"#, "x".repeat(bytes - frame))
        };
        let mebibyte: usize = 1024 * 1024;
        for key in [None, Some("key")] {
            for (bytes, status) in [(mebibyte, 400), (mebibyte + 1, 413), (3 * mebibyte, 413)] {
                let mut request = ann.request("POST", "/api/v1/clusters").body(body(bytes));
                request = request.header(CONTENT_TYPE, "application/json");
                if let Some(key) = key {
                    request = request.header("idempotency-key", key);
                }
                let answer = ann.send(request).await;
                refused(&answer, "large");
                assert_eq!(answer.status, status, "{bytes} {key:?}: {:#}", answer.json["detail"]);
            }
        }
    }

    async fn trailing_slash_is_ignored(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        for path in ["/user", "/cluster", "/deployment", "/api/v1/clusters", "/api/v1/users/me"] {
            let without = ann.get(path).await.expect(200);
            assert_eq!(ann.get(&format!("{path}/")).await.expect(200), without, "{path}");
        }
        let body = json!({"cluster_name": "x", "resource": {"cpu": 1}});
        let id = ann.put("/cluster?x=y", body).await.text("id");
        let body = json!({"resource": {"cpu": 1}});
        ann.patch(&format!("/cluster/{id}/resource"), body).await.expect(200);
    }
}

/// Sends a request that is in no OpenAPI document.
pub(crate) async fn raw(
    client: &Client,
    method: &str,
    path: &str,
) -> (u16, reqwest::header::HeaderMap, String) {
    let response = client.request(method, path).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, response.text().await.unwrap())
}
