//! A Consul that is down, denies, or answers garbage; and servers that die in the middle.

use std::time::Duration;

use adapters::consul::{Consul as Executes, Options};
use adapters::guard::Guarded;
use model::Secret;
use port::{Health, Observed, Operation, Progress, Task};
use serde_json::json;
use testing::programs::Consul;

use crate::cut::{At, Cut};
use crate::fake::{Fake, Mood, prepare};
use crate::kv::{
    apply, destroy, executor, made, many, next, options, refused, taken_over, task, unavailable,
    values,
};
use crate::patience::{ANSWER_WITHIN, eventually, guard, until_open};

/// All ways in which a server can die at its first calls.
fn cuts() -> impl Iterator<Item = At> {
    let both = |number| [true, false].map(|is_carried_out| At { number, is_carried_out });
    (0..40).flat_map(both)
}

#[tokio::test]
async fn whoever_dies_while_making_leaves_what_the_next_one_finishes() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let (mut cut_off, mut finished) = (0, 0);
    for at in cuts().take_while(|at| at.number < 16) {
        let (n, carried) = (at.number, u8::from(at.is_carried_out));
        let prefix = format!("p{n}-{carried}/");
        let first = task(10, &values(&prefix, &many(70, "first")));
        apply(&executor(&consul.url()), &first).await;
        // Changes all, deletes some, and makes some.
        let mut wish = many(65, "second");
        wish["new"] = json!("x");
        let change = next(&first, &values(&prefix, &wish));
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
        let seen = executor(&consul.url()).observe(&made(&again)).await;
        assert_eq!(seen, Ok(Progress::Done(Observed::default())), "{at:?}");
    }
    assert!(cut_off >= 10 && finished > 0, "{cut_off} cut off, {finished} not");
}

#[tokio::test]
async fn whoever_dies_at_the_first_try_leaves_nothing_that_stays() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let mut cut_off = 0;
    for at in cuts().take_while(|at| at.number < 12) {
        let first = task(10, &values("shop/", &many(70, "x")));
        let cut = Cut::before(&consul.url(), at).await;
        cut_off += u32::from(cut.does(executor(&cut.address).apply(&first)).await.is_none());
        // It is not wanted any more; nobody ever heard that anything was made.
        destroy(&executor(&consul.url()), &taken_over(&first)).await;
        assert_eq!(consul.keys("shop/").await, Vec::<String>::new(), "{at:?}");
    }
    assert!(cut_off >= 10, "{cut_off} cut off");
}

#[tokio::test]
async fn whoever_dies_while_destroying_leaves_what_the_next_one_destroys() {
    let consul = Consul::prepare();
    let _running = consul.start();
    consul.put("shop/theirs", "x").await;
    let mut cut_off = 0;
    for at in cuts().take_while(|at| at.number < 12) {
        let one = task(10, &values("shop/", &many(70, "x")));
        apply(&executor(&consul.url()), &one).await;
        let one = made(&one);
        let cut = Cut::before(&consul.url(), at).await;
        cut_off += u32::from(cut.does(executor(&cut.address).destroy(&one)).await.is_none());
        destroy(&executor(&consul.url()), &taken_over(&one)).await;
        assert_eq!(consul.keys("shop/").await, ["shop/theirs"], "{at:?}");
    }
    assert!(cut_off >= 8, "{cut_off} cut off");
}

#[tokio::test]
async fn a_token_without_rights_is_a_sentence_that_names_the_prefix() {
    let consul = Consul::guarded();
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
    assert_eq!(kv.observe(&made(&one)).await, Ok(Progress::Done(Observed::default())));
    for (prefix, verb) in [("seen/", "write"), ("hidden/", "read")] {
        let why = refused(kv.apply(&task(11, &values(prefix, &json!({"a": "1"})))).await);
        let expected = format!("does not let Paddock {verb} below {prefix}");
        assert!(why.contains(&expected) && why.contains("key_prefix"), "{why}");
        assert!(!why.contains(&token), "{why}");
    }
    // A first try where nothing may be seen holds up neither the next one nor the end.
    let wrong = task(12, &values("hidden/", &json!({"a": "1"})));
    refused(kv.plan(&wrong).await);
    let kept = kv.keep(&wrong).await.unwrap();
    destroy(&kv, &Task { kept: kept.clone(), ..wrong }).await;
    let right = task(12, &values("team/shop/web/", &json!({"a": "1"})));
    let why = refused(kv.apply(&Task { kept, ..right }).await);
    assert!(why.contains("belongs to the resource"), "it comes as far as that: {why}");
    // What may not be seen is not taken for something that is gone.
    let nobody = executor(&consul.url());
    let why = refused(nobody.observe(&made(&one)).await);
    assert!(why.contains("does not let Paddock read below team/shop/"), "{why}");
    let unknown = "0b4c0c4e-0f0e-4b8e-9d5e-6a1d1f0b7a12";
    let why = unavailable(with(unknown).apply(&one).await);
    assert!(why.contains("403 (ACL not found)") && why.contains("check the credentials"), "{why}");
    assert!(!why.contains(unknown), "{why}");
    destroy(&kv, &made(&one)).await;
    assert_eq!(consul.keys("team/").await, Vec::<String>::new());
}

#[tokio::test]
async fn down_and_back_again() {
    let consul = Consul::prepare();
    let kv = Guarded::new(executor(&consul.url()), guard("Consul", ANSWER_WITHIN));
    let one = task(10, &values("shop/", &json!({"a": "1"})));
    let said = until_open(async || kv.apply(&one).await).await;
    assert!(said[0].contains("can't be reached"), "{said:?}");
    assert!(matches!(kv.guard().health(), Health::Down { .. }));
    assert!(kv.keep(&one).await.unwrap().is_empty(), "nothing was made");
    assert_eq!(kv.cancel(&one).await, Ok(true), "for that nobody has to be there");
    assert!(matches!(kv.guard().health(), Health::Down { .. }), "nor was anybody");
    let running = consul.start();
    eventually(async || kv.apply(&one).await).await;
    assert_eq!(kv.guard().health(), Health::Up);
    let one = made(&one);
    running.kill();
    until_open(async || kv.observe(&one).await).await;
    until_open(async || kv.destroy(&one).await).await;
    assert!(!kv.keep(&one).await.unwrap().is_empty(), "what is kept is kept also then");
    let _running = consul.start();
    assert_eq!(
        eventually(async || kv.observe(&one).await).await,
        Progress::Done(Observed::default())
    );
    assert_eq!(eventually(async || kv.destroy(&one).await).await, Progress::Done(()));
    assert_eq!(consul.keys("shop/").await, Vec::<String>::new());
}

#[tokio::test]
async fn answers_that_make_no_sense_are_no_answers() {
    prepare();
    let one: Task = made(&task(10, &values("shop/", &json!({"a": "1"}))));
    let fake = Fake::start(|_| (200, json!({"Results": [{"KV": {"Key": "shop/a"}}]}))).await;
    let base64 = |_: &crate::fake::Asked| {
        let pair = json!({"Key": "shop/a", "Value": "?", "CreateIndex": 1, "ModifyIndex": 1});
        (200, json!({"Results": [{"KV": pair}]}))
    };
    let strange = Fake::start(base64).await;
    for (server, mood, sentence) in [
        (&fake, Mood::Fine, "make no sense"),
        (&strange, Mood::Fine, "a value is not in base64"),
        (&fake, Mood::Garbage, "make no sense"),
        (&fake, Mood::Slow, "did not answer within"),
        (&fake, Mood::Status(500), "fails to read below shop/: it answered 500 (it hurts)"),
        (&fake, Mood::Status(503), "503"),
        (&fake, Mood::Status(429), "has no time to read below shop/"),
        (&fake, Mood::Status(404), "it answered 404; check its address"),
        (&fake, Mood::Status(302), "302"),
    ] {
        server.be(mood);
        let limit = Duration::from_millis(if mood == Mood::Slow { 300 } else { 60_000 });
        let kv = Executes::new(Options { limit, ..Options::new(&server.address) }).unwrap();
        for why in [
            unavailable(kv.plan(&one).await),
            unavailable(kv.apply(&one).await),
            unavailable(kv.observe(&one).await),
            unavailable(kv.destroy(&one).await),
            unavailable(kv.adopt(&one, "shop/").await),
        ] {
            assert!(why.contains(sentence), "{why}");
        }
    }
    fake.be(Mood::Status(403));
    let kv = executor(&fake.address);
    assert!(refused(kv.apply(&one).await).contains("does not let Paddock read below shop/"));
    fake.be(Mood::Status(413));
    assert!(refused(kv.apply(&one).await).contains("limits.txn_max_req_len"));
}

#[test]
fn an_address_that_is_none_is_a_sentence() {
    prepare();
    for addr in ["", "consul:8500", "ftp://consul", "http://user:pass@consul"] {
        let refused = Executes::new(Options::new(addr)).err().unwrap().to_string();
        assert!(refused.contains("is no address") && !refused.contains("pass@"), "{refused}");
    }
}
