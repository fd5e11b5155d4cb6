//! The HTTP edge: hosts, origins, sign-up, proxies, and headers of every response.

use std::time::Duration;

use api::{EdgeSettings, SignUp};
use serde_json::json;
use testing::{Answer, Client, Engine, TestPaddock, TestSettings, on_both_engines};

use crate::calls;
use crate::world::{World, refused, start, start_with};

/// Settings of the API's edge, for a server in this process.
pub(crate) fn with_edge(edge: EdgeSettings) -> TestSettings {
    with_api(api::Settings { edge, ..api::Settings::default() })
}

fn with_api(api: api::Settings) -> TestSettings {
    TestSettings { api, api_only: true, ..TestSettings::default() }
}

fn with_sign_up(sign_up: SignUp) -> TestSettings {
    with_api(api::Settings { sign_up, ..api::Settings::default() })
}

on_both_engines! {
    async fn unknown_host_is_refused_by_every_api(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let sign_up = json!({"name": "evil", "owner": {"username": "eve", "password": "x"}});
        let client = &paddock.client;
        let as_host = |client: &Client, method: &str, path: &str, host: &str| {
            client.request(method, path).header("host", host.to_owned())
        };
        let request = as_host(client, "POST", "/api/v1/organizations", "evil.example");
        let answer = client.send(request.json(&sign_up)).await;
        assert_eq!(answer.status, 421, "{:#}", answer.json);
        let detail = answer.json["detail"].as_str().unwrap();
        assert!(detail.contains("evil.example") && detail.contains("--allowed-host"), "{detail}");
        for (path, status) in [
            ("/user/", 421),
            ("/api/v1/users/me", 421),
            // Fleet managers have no code for it.
            ("/api/kafkas_mgmt/v1/kafkas", 400),
            ("/metrics", 421),
            ("/docs", 421),
        ] {
            let answer = ann.send(as_host(&ann, "GET", path, "evil.example:8001")).await;
            assert_eq!(answer.status, status, "{path}: {:#}", answer.json);
            assert!(answer.json.to_string().contains("evil.example"), "{path}: {:#}", answer.json);
        }
        // Load balancers call health checks by any name.
        for path in ["ping", "liveliness", "readiness", "started"] {
            let path = format!("/api/v1/self/{path}");
            client.send(as_host(client, "GET", &path, "10.1.2.3")).await.expect(200);
        }
        client.send(as_host(client, "GET", "/api/v1/self/info", "localhost")).await.expect(200);
    }

    async fn additional_host_is_allowed_by_setting(engine: Engine) {
        let mut edge = EdgeSettings::default();
        assert!(edge.hosts.allow("paddock.example"));
        let (_paddock, ann) = start_with(engine, with_edge(edge)).await;
        let request = |host: &str| ann.request("GET", "/user/").header("host", host.to_owned());
        ann.send(request("Paddock.example:443")).await.expect(200);
        ann.send(request("other.example")).await.expect(421);
    }

    async fn sign_up_by_invite_admits_only_invited_users(engine: Engine) {
        let paddock = TestPaddock::start_with(engine, with_sign_up(SignUp::Invite)).await;
        let admin = paddock.admin().await;
        for client in [&paddock.client, &paddock.client.with_token("bogus")] {
            let answer = found(client, "acme", "ann").await;
            assert!([401, 403].contains(&answer.status), "{:#}", answer.json);
        }
        let detail = found(&paddock.client, "acme", "ann").await.json["detail"].clone();
        assert!(detail.as_str().unwrap().contains("invite code"), "{detail}");
        found(&admin, "acme", "ann").await.expect(201);
        let ann = paddock.sign_in("ann", "secret").await;
        // An owner is no administrator.
        found(&ann, "other", "eve").await.expect(403);
        assert_eq!(paddock.member(&ann, "mia").await.get("/user/").await.text("username"), "mia");
        let events = admin.get("/api/v1/events?type=organization.created&limit=1000").await;
        let last = events.json["items"].as_array().unwrap().last().unwrap().clone();
        assert_ne!(last["actor"], json!("anonymous"), "{last:#}");
    }

    async fn closed_sign_up_admits_nobody(engine: Engine) {
        let paddock = TestPaddock::start_with(engine, with_sign_up(SignUp::Closed)).await;
        found(&paddock.client, "acme", "ann").await.expect(403);
        found(&paddock.admin().await, "acme", "ann").await.expect(201);
        let ann = paddock.sign_in("ann", "secret").await;
        ann.post("/api/v1/invites", json!({})).await.expect(403);
        ann.patch("/organization/invite/", json!({})).await.expect(403);
        let body = json!({"code": "x", "username": "mia", "password": "x"});
        for path in ["/organization/invite/", "/api/v1/invites/redeem"] {
            paddock.client.post(path, body.clone()).await.expect(403);
        }
    }

    async fn cross_site_request_changes_nothing(engine: Engine) {
        let (world, before) = World::with_snapshot(engine).await;
        let sites = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "http://evil.example"),
            ("origin", "null"),
        ];
        for call in calls::all(&world.ours) {
            for (name, value) in sites.iter().filter(|_| call.method != "GET") {
                let client = world.caller(&call);
                let request = call.request(client, &call.path).header(*name, *value);
                let answer = client.send(request).await;
                refused(&answer, &call.name());
                assert_eq!(answer.status, 403, "{} {value}: {:#}", call.name(), answer.json);
            }
        }
        assert_eq!(world.snapshot().await, before);
        let own = ("sec-fetch-site", "same-origin");
        let request = world.ann.request("POST", "/api/v1/invites").header(own.0, own.1);
        world.ann.send(request).await.expect(201);
    }

    async fn fleet_api_accepts_bearer_tokens_from_other_origins(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        let path = "/api/kafkas_mgmt/v1/kafkas?async=true";
        let request = ann.request("POST", path).header("origin", "https://ui.example");
        let request = request.header("sec-fetch-site", "cross-site");
        let answer = ann.send(request.json(&json!({"name": "web"}))).await;
        assert_eq!(answer.status, 202, "{:#}", answer.json);
        let request = ann.signed_out().request("POST", path).basic_auth("ann", Some("secret"));
        let request = request.header("sec-fetch-site", "cross-site");
        let answer = ann.send(request.json(&json!({"name": "other"}))).await;
        assert_eq!(answer.status, 403, "{:#}", answer.json);
    }

    async fn form_of_another_site_cannot_use_cached_basic_credentials(engine: Engine) {
        let (paddock, _ann) = start(engine).await;
        let client = &paddock.client;
        let basic = |path: &str| client.request("POST", path).basic_auth("ann", Some("secret"));
        for path in ["/api/v1/invites", "/api/v1/templates", "/api/v1/logout"] {
            let template = "name: a\nversion: 1\nresources: []\n";
            let plain = basic(path).header("content-type", "text/plain").body(template);
            for request in [basic(path), plain] {
                let answer = client.send(request).await;
                assert_eq!(answer.status, 415, "{path}: {:#}", answer.json);
                assert!(answer.json["detail"].as_str().unwrap().contains("X-Requested-With"));
            }
        }
        let proof = basic("/api/v1/invites").header("x-requested-with", "curl");
        client.send(proof).await.expect(201);
        client.send(basic("/api/v1/invites").json(&json!({}))).await.expect(201);
    }

    async fn browser_gets_no_basic_challenge(engine: Engine) {
        let (paddock, _ann) = start(engine).await;
        let client = &paddock.client;
        let challenge = async |name: &str, value: &str| {
            let request = client.request("GET", "/user/").header(name, value);
            let answer = client.send(request).await;
            assert_eq!(answer.status, 401);
            answer.headers["www-authenticate"].to_str().unwrap().to_owned()
        };
        for (name, value) in [
            ("sec-fetch-mode", "cors"),
            ("origin", "http://127.0.0.1"),
            ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
        ] {
            let offered = challenge(name, value).await;
            assert!(offered.starts_with("Bearer ") && !offered.contains("Basic"), "{offered}");
        }
        assert!(challenge("user-agent", "curl/8.0").await.contains("Basic"));
    }

    async fn responses_are_neither_sniffed_nor_stored(engine: Engine) {
        let world = World::new(engine).await;
        let all = calls::all(&world.ours).into_iter().chain(calls::fleet(&world.ours));
        for call in all.filter(|call| call.method == "GET") {
            let client = world.caller(&call);
            let answer = client.send(call.request(client, &call.path)).await;
            let header = |name: &str| answer.headers.get(name).map(|v| v.to_str().unwrap());
            assert_eq!(header("x-content-type-options"), Some("nosniff"), "{}", call.name());
            assert_eq!(header("cache-control"), Some("no-store"), "{}", call.name());
        }
        let request = world.ann.request("GET", "/api/v1/events").header("accept", "text/event-stream");
        let stream = request.send().await.unwrap();
        assert_eq!(stream.headers()["cache-control"], "no-store");
        let page = world.ann.request("GET", "/").send().await.unwrap();
        assert_ne!(page.headers()["cache-control"], "no-store");
    }

    async fn guessing_behind_a_trusted_proxy_does_not_lock_out_others(engine: Engine) {
        let trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        let edge = EdgeSettings { trusted_proxies, ..EdgeSettings::default() };
        let (paddock, _ann) = start_with(engine, with_edge(edge)).await;
        let mut last = 0;
        for n in 0..10 {
            // The guesser varies what it can: the entries of its own request.
            let forged = format!("198.51.100.{n}, 203.0.113.7");
            last = login_from(&paddock, &forged, "wrong").await.status;
        }
        assert_eq!(last, 429);
        assert_eq!(login_from(&paddock, "203.0.113.7", "secret").await.status, 429);
        assert_eq!(login_from(&paddock, "198.51.100.200", "secret").await.status, 200);
        let both = login_request(&paddock, "secret").header("x-forwarded-for", "198.51.100.1");
        let both = both.header("forwarded", "for=198.51.100.2");
        paddock.client.send(both).await.expect(400);
    }

    async fn forwarded_address_of_an_unknown_proxy_is_ignored(engine: Engine) {
        let (paddock, _ann) = start(engine).await;
        let mut last = 0;
        for n in 0..10 {
            last = login_from(&paddock, &format!("198.51.100.{n}"), "wrong").await.status;
        }
        assert_eq!(last, 429, "the address of the client is not the one that it claims");
        paddock.clock.advance(Duration::from_mins(2));
        assert_eq!(login_from(&paddock, "198.51.100.1", "secret").await.status, 200);
    }
}

/// Creates an organization with its owner.
async fn found(client: &Client, name: &str, owner: &str) -> Answer {
    let body =
        json!({"user": {"username": owner, "password": "secret"}, "organization": {"name": name}});
    let kargo = client.put("/user/create/", body).await;
    if kargo.status == 201 {
        return kargo;
    }
    let owner = json!({"username": owner, "password": "secret"});
    let platform =
        client.post("/api/v1/organizations", json!({"name": name, "owner": owner})).await;
    assert_eq!(platform.status, kargo.status, "{:#}", platform.json);
    platform
}

fn login_request(paddock: &TestPaddock, password: &str) -> reqwest::RequestBuilder {
    let body = json!({"username": "ann", "password": password});
    paddock.client.request("POST", "/api/v1/login").json(&body)
}

async fn login_from(paddock: &TestPaddock, forwarded: &str, password: &str) -> Answer {
    let request = login_request(paddock, password).header("x-forwarded-for", forwarded);
    paddock.client.send(request).await
}

/// Starts a server with this edge, and ann.
pub(crate) async fn start_with_edge(engine: Engine, edge: EdgeSettings) -> (TestPaddock, Client) {
    start_with(engine, with_edge(edge)).await
}
