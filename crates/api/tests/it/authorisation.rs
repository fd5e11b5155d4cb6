//! Authentication of every endpoint.

use std::time::Duration;

use reqwest::header::AUTHORIZATION;
use testing::{Client, on_both_engines};

use crate::calls::{self, Call};
use crate::world::{World, refused};

/// Endpoints without authentication. Every addition must be deliberate.
const OPEN: &[&str] = &[
    "PUT /user/create/",
    "POST /user/login/",
    "GET /organization/invite/",
    "POST /organization/invite/",
    "POST /api/v1/login",
    "POST /api/v1/organizations",
    "POST /api/v1/invites/check",
    "POST /api/v1/invites/redeem",
    "POST /api/v1/password-resets/redeem",
    "GET /api/v1/self/info",
    "GET /api/v1/self/liveliness",
    "GET /api/v1/self/readiness",
    "GET /api/v1/self/started",
    "GET /api/v1/self/ping",
];

on_both_engines! {
    async fn endpoints_reject_missing_and_invalid_credentials(engine: Engine) {
        let mut world = World::new(engine).await;
        let expired = world.ann.clone();
        world.paddock.clock.advance(Duration::from_hours(25));
        world.ann = world.paddock.sign_in("ann", "secret").await;
        world.zoe = world.paddock.sign_in("zoe", "secret").await;
        world.admin = world.paddock.admin().await;
        let before = world.snapshot().await;

        let nobody = &world.paddock.client;
        let someones = world.paddock.client.with_token("");
        let bogus = nobody.with_token("qy4u5f3bogus");
        for call in calls::all(&world.ours) {
            assert_eq!(call.is_open(), OPEN.contains(&call.name().as_str()), "{}", call.name());
            if call.is_open() {
                continue;
            }
            for client in [nobody, &bogus, &someones, &expired] {
                assert_unauthenticated(client, &call, None).await;
            }
            // Invalid Base64, no colon, a wrong password, an unknown scheme, no scheme.
            for header in ["Basic !!!", "Basic YQ==", "Digest a=b", "Bearer", "x"] {
                assert_unauthenticated(nobody, &call, Some(header)).await;
            }
        }
        assert_eq!(world.snapshot().await, before);
    }

    async fn open_endpoints_ignore_invalid_tokens(engine: Engine) {
        let world = World::new(engine).await;
        let bogus = world.paddock.client.with_token("bogus");
        for call in calls::all(&world.ours).iter().filter(|c| c.is_open() && c.method == "GET") {
            let path = format!("{}?code={}", call.path, world.ours.code);
            assert_eq!(bogus.get(&path).await.status, 200, "{}", call.name());
        }
    }
}

async fn assert_unauthenticated(client: &Client, call: &Call, header: Option<&str>) {
    let mut request = call.request(client, &call.path);
    if let Some(value) = header {
        request = request.header(AUTHORIZATION, value);
    }
    let answer = client.send(request).await;
    refused(&answer, &call.name());
    assert_eq!(answer.status, 401, "{} {header:?}: {:#}", call.name(), answer.json);
    assert!(answer.headers.contains_key("www-authenticate"), "{}", call.name());
}
