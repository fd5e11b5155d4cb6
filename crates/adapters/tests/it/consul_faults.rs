//! A Consul that is down, denies access or returns invalid responses; and servers that crash in
//! between.

use std::time::Duration;

use adapters::consul::{Consul as Executes, Options};
use adapters::guard::Guarded;
use model::Secret;
use port::{Health, Observed, Operation, Progress, Task};
use serde_json::json;
use testing::programs::Consul;

use crate::cut::{At, Cut};
use crate::fake::{Behavior, Fake, prepare};
use crate::kv::{
    applied, apply, destroy, executor, many, next, options, refused, taken_over, task, unavailable,
    values,
};
use crate::patience::{ANSWER_WITHIN, eventually, guard, until_open};

/// All ways in which a server can crash at its first calls.
fn cuts() -> impl Iterator<Item = At> {
    let both = |number| [true, false].map(|is_carried_out| At { number, is_carried_out });
    (0..40).flat_map(both)
}

#[tokio::test]
async fn apply_of_a_crashed_server_is_finished_by_the_next() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let (mut cut_off, mut finished) = (0, 0);
    for at in cuts().take_while(|at| at.number < 16) {
        let (n, carried) = (at.number, u8::from(at.is_carried_out));
        let prefix = format!("p{n}-{carried}/");
        let first = task(10, &values(&prefix, &many(70, "first")));
        apply(&executor(&consul.url()), &first).await;
        // Changes all keys, deletes some, and creates some.
        let mut desired = many(65, "second");
        desired["new"] = json!("x");
        let change = next(&first, &values(&prefix, &desired));
        let cut = Cut::before(&consul.url(), at).await;
        match cut.does(executor(&cut.address).apply(&change)).await {
            Some(done) => {
                done.unwrap();
                finished += 1;
            }
            None => cut_off += 1,
        }
        let again = taken_over(&change);
        apply(&executor(&consul.url()), &again).await;
        assert_eq!(consul.keys(&prefix).await.len(), 67, "{at:?}");
        let observed = executor(&consul.url()).observe(&applied(&again)).await;
        assert_eq!(observed, Ok(Progress::Done(Observed::default())), "{at:?}");
    }
    assert!(cut_off >= 10 && finished > 0, "{cut_off} cut off, {finished} not");
}

#[tokio::test]
async fn first_attempt_of_a_crashed_server_leaves_nothing() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let mut cut_off = 0;
    for at in cuts().take_while(|at| at.number < 12) {
        let first = task(10, &values("shop/", &many(70, "x")));
        let cut = Cut::before(&consul.url(), at).await;
        cut_off += u32::from(cut.does(executor(&cut.address).apply(&first)).await.is_none());
        // It is no longer desired, and the first attempt was never acknowledged.
        destroy(&executor(&consul.url()), &taken_over(&first)).await;
        assert_eq!(consul.keys("shop/").await, Vec::<String>::new(), "{at:?}");
    }
    assert!(cut_off >= 10, "{cut_off} cut off");
}

#[tokio::test]
async fn destroy_of_a_crashed_server_is_finished_by_the_next() {
    let consul = Consul::prepare();
    let _running = consul.start();
    consul.put("shop/theirs", "x").await;
    let mut cut_off = 0;
    for at in cuts().take_while(|at| at.number < 12) {
        let one = task(10, &values("shop/", &many(70, "x")));
        apply(&executor(&consul.url()), &one).await;
        let one = applied(&one);
        let cut = Cut::before(&consul.url(), at).await;
        cut_off += u32::from(cut.does(executor(&cut.address).destroy(&one)).await.is_none());
        destroy(&executor(&consul.url()), &taken_over(&one)).await;
        assert_eq!(consul.keys("shop/").await, ["shop/theirs"], "{at:?}");
    }
    assert!(cut_off >= 8, "{cut_off} cut off");
}

#[tokio::test]
async fn missing_permission_is_reported_with_the_prefix() {
    let consul = Consul::with_acl();
    let _running = consul.start();
    let rules =
        r#"key_prefix "team/shop/" { policy = "write" } key_prefix "seen/" { policy = "read" }"#;
    let token = consul.token(rules).await;
    let with = |token: &str| {
        let token = Some(Secret::new(token));
        Executes::new(Options { token, ..options(&consul.url()) }).unwrap()
    };
    let kv = with(&token);
    let one = task(10, &values("team/shop/", &json!({"a": "1"})));
    apply(&kv, &one).await;
    assert_eq!(kv.observe(&applied(&one)).await, Ok(Progress::Done(Observed::default())));
    for (prefix, verb) in [("seen/", "write"), ("hidden/", "read")] {
        let why = refused(kv.apply(&task(11, &values(prefix, &json!({"a": "1"})))).await);
        let expected = format!("denied permission to {verb} below {prefix}");
        assert!(why.contains(&expected) && why.contains("key_prefix"), "{why}");
        assert!(!why.contains(&token), "{why}");
    }
    // A first attempt without read permission blocks neither the next one nor the destroy.
    let wrong = task(12, &values("hidden/", &json!({"a": "1"})));
    refused(kv.plan(&wrong).await);
    let kept = kv.persist(&wrong).await.unwrap();
    destroy(&kv, &Task { persisted: kept.clone(), ..wrong }).await;
    let right = task(12, &values("team/shop/web/", &json!({"a": "1"})));
    let why = refused(kv.apply(&Task { persisted: kept, ..right }).await);
    assert!(why.contains("belongs to the resource"), "it gets that far: {why}");
    // Keys without read permission are not considered missing.
    let without_token = executor(&consul.url());
    let why = refused(without_token.observe(&applied(&one)).await);
    assert!(why.contains("denied permission to read below team/shop/"), "{why}");
    let unknown = "0b4c0c4e-0f0e-4b8e-9d5e-6a1d1f0b7a12";
    let why = unavailable(with(unknown).apply(&one).await);
    assert!(why.contains("403 (ACL not found)") && why.contains("Check the credentials"), "{why}");
    assert!(!why.contains(unknown), "{why}");
    destroy(&kv, &applied(&one)).await;
    assert_eq!(consul.keys("team/").await, Vec::<String>::new());
}

#[tokio::test]
async fn unreachable_consul_recovers() {
    let consul = Consul::prepare();
    let kv = Guarded::new(executor(&consul.url()), guard("Consul", ANSWER_WITHIN));
    let one = task(10, &values("shop/", &json!({"a": "1"})));
    let messages = until_open(async || kv.apply(&one).await).await;
    assert!(messages[0].contains("is unreachable"), "{messages:?}");
    assert!(matches!(kv.guard().health(), Health::Down { .. }));
    assert!(kv.persist(&one).await.unwrap().is_empty(), "nothing was created");
    assert_eq!(kv.cancel(&one).await, Ok(true), "cancelling needs no call");
    assert!(matches!(kv.guard().health(), Health::Down { .. }), "no call was made");
    let running = consul.start();
    eventually(async || kv.apply(&one).await).await;
    assert_eq!(kv.guard().health(), Health::Up);
    let one = applied(&one);
    running.kill();
    until_open(async || kv.observe(&one).await).await;
    until_open(async || kv.destroy(&one).await).await;
    assert!(!kv.persist(&one).await.unwrap().is_empty(), "places are persisted also then");
    let _running = consul.start();
    assert_eq!(
        eventually(async || kv.observe(&one).await).await,
        Progress::Done(Observed::default())
    );
    assert_eq!(eventually(async || kv.destroy(&one).await).await, Progress::Done(()));
    assert_eq!(consul.keys("shop/").await, Vec::<String>::new());
}

#[tokio::test]
async fn invalid_responses_are_unavailable() {
    prepare();
    let one: Task = applied(&task(10, &values("shop/", &json!({"a": "1"}))));
    let fake = Fake::start(|_| (200, json!({"Results": [{"KV": {"Key": "shop/a"}}]}))).await;
    let base64 = |_: &crate::fake::Received| {
        let pair = json!({"Key": "shop/a", "Value": "?", "CreateIndex": 1, "ModifyIndex": 1});
        (200, json!({"Results": [{"KV": pair}]}))
    };
    let strange = Fake::start(base64).await;
    for (server, behavior, message) in [
        (&fake, Behavior::Normal, "invalid response"),
        (&strange, Behavior::Normal, "a value is not base64"),
        (&fake, Behavior::Garbage, "invalid response"),
        (&fake, Behavior::Slow, "did not answer within"),
        (&fake, Behavior::Status(500), "failed to read below shop/: status 500 (it hurts)"),
        (&fake, Behavior::Status(503), "503"),
        (&fake, Behavior::Status(429), "failed to read below shop/: overloaded, status 429"),
        (&fake, Behavior::Status(404), "status 404. Check its address"),
        (&fake, Behavior::Status(302), "302"),
    ] {
        server.set(behavior);
        let limit = Duration::from_millis(if behavior == Behavior::Slow { 300 } else { 60_000 });
        let kv =
            Executes::new(Options { timeout: limit, ..Options::new(&server.address) }).unwrap();
        for why in [
            unavailable(kv.plan(&one).await),
            unavailable(kv.apply(&one).await),
            unavailable(kv.observe(&one).await),
            unavailable(kv.destroy(&one).await),
            unavailable(kv.adopt(&one, "shop/").await),
        ] {
            assert!(why.contains(message), "{why}");
        }
    }
    fake.set(Behavior::Status(403));
    let kv = executor(&fake.address);
    assert!(refused(kv.apply(&one).await).contains("denied permission to read below shop/"));
    fake.set(Behavior::Status(413));
    assert!(refused(kv.apply(&one).await).contains("limits.txn_max_req_len"));
}

#[test]
fn invalid_address_is_rejected() {
    prepare();
    for addr in ["", "consul:8500", "ftp://consul", "http://user:pass@consul"] {
        let refused = Executes::new(Options::new(addr)).err().unwrap().to_string();
        assert!(refused.contains("invalid address") && !refused.contains("pass@"), "{refused}");
    }
}
