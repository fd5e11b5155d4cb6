//! Throttling of password guessing.

use std::time::Duration;

use serde_json::json;
use testing::{Answer, TestPaddock, on_both_engines};

use crate::concurrency::{at_once, statuses};
use crate::world::start;

on_both_engines! {
    async fn repeated_failures_are_throttled_per_user(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        for name in ["ann", "bob"] {
            paddock.owner(name).await;
        }
        let mut last = login(&paddock, "ann", "wrong").await;
        for _ in 0..9 {
            last = login(&paddock, "ann", "wrong").await;
        }
        assert_eq!(last.status, 429, "{:#}", last.json);
        let wait: u64 = last.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        // The right password is throttled as well, also as Basic; Bob is not.
        assert_eq!(login(&paddock, "Ann", "secret").await.status, 429);
        let basic = paddock.client.request("GET", "/user/").basic_auth("ann", Some("secret"));
        assert_eq!(paddock.client.send(basic).await.status, 429);
        assert_eq!(login(&paddock, "bob", "secret").await.status, 200);
        paddock.clock.advance(Duration::from_secs(wait));
        assert_eq!(login(&paddock, "ann", "secret").await.status, 200);
    }

    async fn existing_session_is_not_throttled(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        for _ in 0..8 {
            login(&paddock, "ann", "wrong").await;
        }
        ann.get("/user/").await.expect(200);
    }

    async fn parallel_guesses_are_throttled(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        paddock.owner("ann").await;
        let answers = at_once(60, |_| login(&paddock, "ann", "wrong")).await;
        let tried = statuses(&answers)[&401];
        assert!(tried <= 12, "{tried} of 60 guesses were tried");
    }
}

async fn login(paddock: &TestPaddock, username: &str, password: &str) -> Answer {
    let body = json!({"username": username, "password": password});
    paddock.client.post("/api/v1/login", body).await
}
