//! Open streams end as soon as their caller may no longer read: events and all kinds of logs.

use std::time::Duration;

use api::EdgeSettings;
use model::Time;
use reqwest::Response;
use serde_json::json;
use testing::{Client, Engine, TestPaddock, TestSettings, on_both_engines};

use crate::fleet_oidc::{FakeTokens, person};
use crate::shop::{Shop, path};
use crate::sse::Stream;
use crate::world::agent_cluster;

/// Every kind of stream, as paths.
struct Streams {
    shop: Shop,
    paths: Vec<String>,
}

impl Streams {
    /// A server with a running deployment, a running operation, and a cluster in preparation.
    async fn start(engine: Engine, edge: EdgeSettings) -> Self {
        let api = api::Settings { edge, ..api::Settings::default() };
        let shop = Shop::open_with(engine, TestSettings { api, ..TestSettings::default() }).await;
        let cluster = shop.paddock.cluster(&shop.ann, json!({"cpu": 4})).await;
        let body = json!({"cluster_id": cluster, "image": "web:1", "resources": {"cpu": 1}});
        let deployment = shop.ann.post("/api/v1/deployments", body).await.text("id");
        let deployment = format!("/api/v1/deployments/{deployment}");
        shop.paddock.until(&shop.ann, &deployment, "status", "running").await;
        shop.executor.state().running_polls = u32::MAX;
        let environment = shop.create(json!({"size": 0})).await;
        shop.until_resource(&environment, "base", "applying").await;
        let far = format!("/api/v1/clusters/{}", agent_cluster(&shop.ann, "far").await);
        shop.paddock.until(&shop.ann, &far, "status", "waiting_for_agent").await;
        let paths = vec![
            "/api/v1/events".to_owned(),
            format!("{deployment}/logs?follow=true"),
            format!("{}/resources/base/logs?follow=true", path(&environment)),
            format!("{far}/logs?follow=true"),
        ];
        Self { shop, paths }
    }

    /// Opens all streams.
    async fn open(&self, client: &Client) -> Vec<(&str, Response)> {
        let mut open = Vec::new();
        for path in &self.paths {
            let mut request = client.request("GET", path);
            if path.ends_with("events") {
                request = request.header("accept", "text/event-stream");
            }
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 200, "{path}");
            open.push((path.as_str(), response));
        }
        open
    }
}

/// Whether a stream ends within a few seconds.
async fn ends(response: &mut Response) -> bool {
    let read = async { while let Ok(Some(_)) = response.chunk().await {} };
    tokio::time::timeout(Duration::from_secs(5), read).await.is_ok()
}

async fn all_end(streams: Vec<(&str, Response)>, why: &str) {
    for (path, mut stream) in streams {
        assert!(ends(&mut stream).await, "{path} goes on after {why}");
    }
}

async fn all_go_on(streams: Vec<(&str, Response)>) {
    for (path, mut stream) in streams {
        let read = async { while let Ok(Some(_)) = stream.chunk().await {} };
        let outcome = tokio::time::timeout(Duration::from_millis(300), read).await;
        assert!(outcome.is_err(), "{path} ends");
    }
}

on_both_engines! {
    async fn streams_end_when_their_caller_loses_access(engine: Engine) {
        let streams = Streams::start(engine, EdgeSettings::default()).await;
        let (paddock, ann) = (&streams.shop.paddock, &streams.shop.ann);
        let user = async |client: &Client| {
            format!("/api/v1/users/{}", client.get("/api/v1/users/me").await.text("id"))
        };

        let mia = paddock.member(ann, "mia").await;
        let open = streams.open(&mia).await;
        ann.delete(&user(&mia).await).await.expect(204);
        all_end(open, "the removal of the user").await;

        let bob = paddock.member(ann, "bob").await;
        let open = streams.open(&bob).await;
        ann.patch(&user(&bob).await, json!({"role": "owner"})).await.expect(200);
        all_end(open, "a change of the role").await;

        let elsewhere = paddock.sign_in("bob", "secret").await;
        let open = streams.open(&elsewhere).await;
        elsewhere.post("/api/v1/logout", json!({})).await.expect(204);
        all_end(open, "the logout").await;

        let open = streams.open(&bob).await;
        let change = json!({"password": "new", "current_password": "secret"});
        bob.patch("/api/v1/users/me", change).await.expect(200);
        all_end(open, "a change of the password").await;

        let open = streams.open(ann).await;
        paddock.member(ann, "cat").await;
        all_go_on(open).await;
    }

    async fn idle_streams_end_when_their_token_expires(engine: Engine) {
        let edge = EdgeSettings { stream_check: Duration::from_millis(200), ..EdgeSettings::default() };
        let streams = Streams::start(engine, edge).await;
        let open = streams.open(&streams.shop.ann).await;
        streams.shop.paddock.clock.advance(Duration::from_hours(25));
        all_end(open, "the expiry of the token").await;
    }

    async fn event_stream_ends_with_its_oidc_token(engine: Engine) {
        let tokens = FakeTokens::default();
        let settings = TestSettings { api: tokens.settings(), ..TestSettings::default() };
        let paddock = TestPaddock::start_with(engine, settings).await;
        let expires_at = Time(paddock.db().now().0 + 2_000_000);
        let token = tokens.add(model_claims(expires_at));
        let ann = paddock.client.with_token(&token);
        let mut stream = Stream::open(&ann, "", None).await;
        assert!(stream.ends().await, "the stream outlives its token");
    }

    async fn nothing_is_sent_after_the_removal_was_answered(engine: Engine) {
        let (paddock, ann) = crate::world::start_still(engine).await;
        for round in 0..10 {
            let mia = paddock.member(&ann, &format!("mia{round}")).await;
            let id = mia.get("/api/v1/users/me").await.text("id");
            let mut stream = Stream::open(&mia, "?kind=cluster", None).await;
            ann.delete(&format!("/api/v1/users/{id}")).await.expect(204);
            let body = json!({"name": format!("secret {round}"), "capacity": {"cpu": 1}});
            ann.post("/api/v1/clusters", body).await.expect(201);
            assert!(stream.ends().await, "an event was sent in round {round}");
        }
    }
}

fn model_claims(expires_at: Time) -> api::oidc::Claims {
    api::oidc::Claims { expires_at, ..person("ann", "acme") }
}
