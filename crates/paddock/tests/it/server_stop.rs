//! Graceful stop: running requests complete, nothing is lost, and it takes limited time.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use serde_json::json;
use testing::on_both_engines;

use super::process::{Server, Setup};
use super::storm::Workload;

const LIMIT: Duration = Duration::from_secs(10);

on_both_engines! {
    async fn graceful_stop_under_load_loses_nothing(engine: Engine) {
        let limit = "--max-deployments-per-organization";
        let mut server = Setup::on(engine).await.arg(limit, "100000").start();
        let mut workload = Workload::new(&server).await;
        let events = workload.client(&server).request("GET", "/api/v1/events");
        let events = events.header("accept", "text/event-stream").send().await.unwrap();
        let events = base::task::spawn("events", events.text());

        workload.storm(&mut server, 400, |server| server.terminate()).await;
        let status = tokio::task::block_in_place(|| server.wait_for_exit(LIMIT));
        assert_eq!(status.code(), Some(0), "{}", server.stderr());
        assert!(std::net::TcpStream::connect(server.address.trim_start_matches("http://")).is_err());
        // An error would mean that the stream was broken instead of closed.
        let events = events.await.unwrap().unwrap();
        assert!(events.ends_with("\n\n") && events.contains("deployment.created"));

        server.restart();
        workload.assert_settles(&server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_completes_running_requests_but_not_stuck_ones() {
    let mut server = Server::start();
    let ann = server.http_owner("acme").await;
    let token = ann
        .post("/api/v1/login", json!({ "username": "acme", "password": super::process::PASSWORD }));
    let token = token.await.text("token");
    let body = r#"{"name":"late","capacity":{"cpu":1}}"#;
    let head = format!(
        "POST /api/v1/clusters HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let (mut slow, mut stuck) = (server.connect(), server.connect());
    for stream in [&mut slow, &mut stuck] {
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body.as_bytes()[..10]).unwrap();
    }
    // After a later request is served, both requests have started.
    ann.get("/api/v1/self/ping").await.expect(200);
    let stopping_since = base::monotonic();
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
    let status = tokio::task::block_in_place(|| {
        server.wait_for_exit(LIMIT.saturating_sub(stopping_since.elapsed()))
    });
    assert_eq!(status.code(), Some(0), "{}", server.stderr());

    server.restart();
    let clusters = server.http().with_token(&token).get("/api/v1/clusters?name=late").await;
    assert_eq!(clusters.json["items"].as_array().unwrap().len(), 1, "{:#}", clusters.json);
}

#[test]
fn sigint_stops_the_server() {
    let mut server = Setup::plain().start();
    server.signal("INT");
    assert_eq!(server.wait_for_exit(LIMIT).code(), Some(0));
}
