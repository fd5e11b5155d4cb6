//! Guessing passwords is slow, for the one who guesses.

use std::time::Duration;

use serde_json::json;
use testing::{Answer, TestPaddock, on_both_engines};

use crate::concurrency::{at_once, statuses};
use crate::world::start;

on_both_engines! {
    async fn repeated_failures_have_to_wait_and_nobody_else_does(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        for name in ["ann", "bob"] {
            paddock.owner(name).await;
        }
        let mut last = sign_in(&paddock, "ann", "wrong").await;
        for _ in 0..9 {
            last = sign_in(&paddock, "ann", "wrong").await;
        }
        assert_eq!(last.status, 429, "{:#}", last.json);
        let wait: u64 = last.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        // The right password has to wait too, also as Basic; Bob has not.
        assert_eq!(sign_in(&paddock, "Ann", "secret").await.status, 429);
        let basic = paddock.client.request("GET", "/user/").basic_auth("ann", Some("secret"));
        assert_eq!(paddock.client.send(basic).await.status, 429);
        assert_eq!(sign_in(&paddock, "bob", "secret").await.status, 200);
        paddock.clock.advance(Duration::from_secs(wait));
        assert_eq!(sign_in(&paddock, "ann", "secret").await.status, 200);
    }

    async fn a_sign_in_goes_on_while_its_name_is_being_guessed(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        for _ in 0..8 {
            sign_in(&paddock, "ann", "wrong").await;
        }
        ann.get("/user/").await.expect(200);
    }

    async fn guessing_many_at_once_is_no_way_round(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        paddock.owner("ann").await;
        let answers = at_once(60, |_| sign_in(&paddock, "ann", "wrong")).await;
        let tried = statuses(&answers)[&401];
        assert!(tried <= 12, "{tried} of 60 guesses were tried");
    }
}

async fn sign_in(paddock: &TestPaddock, username: &str, password: &str) -> Answer {
    let body = json!({"username": username, "password": password});
    paddock.client.post("/api/v1/login", body).await
}
