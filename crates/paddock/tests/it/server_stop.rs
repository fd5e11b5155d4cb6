//! SIGTERM: what is under way comes to its end, nothing is lost, and it does not take long.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use serde_json::json;
use testing::on_both_engines;

use super::process::{Server, Setup};
use super::storm::Arena;

const LIMIT: Duration = Duration::from_secs(10);

on_both_engines! {
    async fn a_stop_in_a_storm_loses_nothing(engine: Engine) {
        let limit = "--max-deployments-per-organization";
        let mut server = Setup::on(engine).await.arg(limit, "100000").start();
        let mut arena = Arena::new(&server).await;
        let events = arena.client(&server).request("GET", "/api/v1/events");
        let events = events.header("accept", "text/event-stream").send().await.unwrap();
        let events = base::task::spawn("events", events.text());

        arena.storm(&mut server, 400, |server| server.terminate()).await;
        let status = tokio::task::block_in_place(|| server.ended(LIMIT));
        assert_eq!(status.code(), Some(0), "{}", server.stderr());
        assert!(std::net::TcpStream::connect(server.address.trim_start_matches("http://")).is_err());
        // An error would mean that the stream was cut instead of ended.
        let events = events.await.unwrap().unwrap();
        assert!(events.ends_with("\n\n") && events.contains("deployment.created"));

        server.again();
        arena.comes_to_rest(&server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_under_way_gets_its_answer_and_one_that_hangs_holds_up_nothing() {
    let mut server = Server::start();
    let ann = server.http_owner("acme").await;
    let token = ann
        .post("/api/v1/login", json!({ "username": "acme", "password": super::process::PASSWORD }));
    let token = token.await.text("token");
    let body = r#"{"name":"late","capacity":{"cpu":1}}"#;
    let head = format!(
        "POST /api/v1/clusters HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let (mut slow, mut stuck) = (server.connect(), server.connect());
    for stream in [&mut slow, &mut stuck] {
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body.as_bytes()[..10]).unwrap();
    }
    // Both have begun when somebody who came later has been served.
    ann.get("/api/v1/self/ping").await.expect(200);
    let told = base::monotonic();
    server.terminate();
    while !server.stderr().contains("stopping") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    slow.write_all(&body.as_bytes()[10..]).unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 Created"), "{answer}");
    let ready = reqwest::get(format!("{}/api/v1/self/readiness", server.address)).await;
    assert!(ready.is_err(), "{ready:?}");
    let status = tokio::task::block_in_place(|| server.ended(LIMIT.saturating_sub(told.elapsed())));
    assert_eq!(status.code(), Some(0), "{}", server.stderr());

    server.again();
    let clusters = server.http().with_token(&token).get("/api/v1/clusters?name=late").await;
    assert_eq!(clusters.json["items"].as_array().unwrap().len(), 1, "{:#}", clusters.json);
}

#[test]
fn ctrl_c_ends_it_as_well() {
    let mut server = Setup::plain().start();
    server.signal("INT");
    assert_eq!(server.ended(LIMIT).code(), Some(0));
}
