//! Limits of requests, connections, streams and sign-ups.

use std::time::Duration;

use api::{EdgeSettings, Limit};
use serde_json::json;
use testing::{Answer, Client, Engine, TestPaddock, on_both_engines};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::concurrency::at_once;
use crate::edge::start_with_edge;
use crate::sse::Stream;

const NONE: Limit<u32> = Limit { user: 0, organization: 0, address: 0 };

async fn limited(engine: Engine, requests_per_second: Limit<u32>) -> (TestPaddock, Client) {
    let edge =
        EdgeSettings { requests_per_second, limit_loopback: true, ..EdgeSettings::default() };
    start_with_edge(engine, edge).await
}

on_both_engines! {
    async fn streams_are_limited_per_user_and_organization(engine: Engine) {
        let max_streams = Limit { user: 3, organization: 5, address: 0 };
        let edge = EdgeSettings { max_streams, ..EdgeSettings::default() };
        let (paddock, ann) = start_with_edge(engine, edge).await;
        let mia = paddock.member(&ann, "mia").await;
        let zoe = paddock.owner("zoe").await;
        let mut open = Vec::new();
        for client in [&ann, &ann, &ann, &mia, &mia] {
            open.push(Stream::open(client, "", None).await);
        }
        for (client, of) in [(&ann, "this user"), (&mia, "this organization")] {
            let refused = open_stream(client).await;
            assert_eq!(refused.status, 429, "{:#}", refused.json);
            assert!(refused.json["detail"].as_str().unwrap().contains(of), "{:#}", refused.json);
            assert_eq!(refused.headers["retry-after"], "5");
        }
        // Others are not affected, and a closed stream makes place.
        Stream::open(&zoe, "", None).await;
        paddock.client.get("/api/v1/self/ping").await.expect(200);
        open.remove(0);
        for attempt in 0.. {
            let request = ann.request("GET", "/api/v1/events").header("accept", "text/event-stream");
            if request.send().await.unwrap().status() == 200 {
                break;
            }
            assert!(attempt < 100, "a closed stream still counts");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn requests_are_limited_per_user(engine: Engine) {
        let (paddock, ann) = limited(engine, Limit { user: 5, ..NONE }).await;
        let mia = paddock.member(&ann, "mia").await;
        too_many_of(&ann, "requests of this user").await;
        mia.get("/user/").await.expect(200);
        let admin = paddock.admin().await;
        for _ in 0..50 {
            admin.get("/user/").await.expect(200);
        }
    }

    async fn requests_are_limited_per_organization(engine: Engine) {
        let (paddock, ann) = limited(engine, Limit { organization: 5, ..NONE }).await;
        let (mia, zoe) = (paddock.member(&ann, "mia").await, paddock.owner("zoe").await);
        too_many_of(&ann, "requests of this organization").await;
        let accepted = too_many_of(&mia, "requests of this organization").await;
        assert!(accepted < 15, "{accepted} requests of another user of the organization");
        zoe.get("/user/").await.expect(200);
    }

    async fn requests_are_limited_per_address_except_operational_ones(engine: Engine) {
        let (paddock, ann) = limited(engine, Limit { address: 20, ..NONE }).await;
        too_many_of(&ann, "requests from this address").await;
        let accepted = too_many_of(&paddock.client, "requests from this address").await;
        assert!(accepted < 60, "{accepted} requests of another client of the address");
        for _ in 0..50 {
            paddock.client.get("/api/v1/self/ping").await.expect(200);
        }
    }

    async fn requests_of_this_machine_are_not_limited_by_default(engine: Engine) {
        let requests_per_second = Limit { user: 1, organization: 1, address: 1 };
        let edge = EdgeSettings { requests_per_second, ..EdgeSettings::default() };
        let (_paddock, ann) = start_with_edge(engine, edge).await;
        for _ in 0..50 {
            ann.get("/user/").await.expect(200);
        }
    }

    async fn new_accounts_are_limited_per_address(engine: Engine) {
        let edge = EdgeSettings { limit_loopback: true, ..EdgeSettings::default() };
        let (paddock, ann) = start_with_edge(engine, edge).await;
        let mut last = None;
        for n in 0..30 {
            let owner = json!({"username": format!("user{n}"), "password": "x"});
            let body = json!({"name": format!("org{n}"), "owner": owner});
            last = Some(paddock.client.post("/api/v1/organizations", body).await);
        }
        let last = last.unwrap();
        assert_eq!(last.status, 429, "{:#}", last.json);
        assert!(last.headers.contains_key("retry-after"));
        paddock.sign_in("ann", "secret").await;
        ann.get("/user/").await.expect(200);
    }

    async fn operational_endpoints_answer_while_all_connections_are_in_use(engine: Engine) {
        let edge = EdgeSettings { max_connections: 20, ..EdgeSettings::default() };
        let (paddock, ann) = start_with_edge(engine, edge).await;
        let address = paddock.client.base().strip_prefix("http://").unwrap().to_owned();
        let mut idle = Vec::new();
        for _ in 0..40 {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            stream.write_all(b"GET /user/ HTTP/1.1\r\n").await.unwrap();
            idle.push(stream);
        }
        let began = base::monotonic();
        let raw = async |path: &str| {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text
        };
        assert!(raw("/api/v1/self/ping").await.contains("pong"));
        let refused = raw("/user/").await;
        assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after"), "{refused}");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        drop(idle);
        ann.get("/user/").await;
    }

    async fn connections_are_limited_per_address(engine: Engine) {
        let edge = EdgeSettings {
            max_connections_per_address: 5,
            limit_loopback: true,
            ..EdgeSettings::default()
        };
        let (paddock, _ann) = start_with_edge(engine, edge).await;
        let address = paddock.client.base().strip_prefix("http://").unwrap().to_owned();
        let mut refused = 0;
        let mut open = Vec::new();
        for _ in 0..10 {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            let mut start = [0; 12];
            let read = stream.read_exact(&mut start);
            match tokio::time::timeout(Duration::from_millis(300), read).await {
                Ok(read) => {
                    read.unwrap();
                    assert_eq!(&start, b"HTTP/1.1 429");
                    refused += 1;
                }
                Err(_) => open.push(stream),
            }
        }
        assert!((5..=7).contains(&refused), "{refused} of 10 were refused");
    }

    async fn stream_ends_after_its_lifetime_and_is_resumed(engine: Engine) {
        let stream_life = Duration::from_millis(500);
        let edge = EdgeSettings { stream_life, ..EdgeSettings::default() };
        let (_paddock, ann) = start_with_edge(engine, edge).await;
        let mut stream = Stream::open(&ann, "", None).await;
        assert!(stream.ends().await, "the stream does not end");
        let body = json!({"name": "meanwhile", "capacity": {"cpu": 1}});
        ann.post("/api/v1/clusters", body).await.expect(201);
        let mut resumed = Stream::open(&ann, "", stream.place).await;
        assert_eq!(resumed.next().await.data["data"]["name"], "meanwhile");
    }

    async fn sign_ups_do_not_delay_logins(engine: Engine) {
        let (paddock, _ann) = start_with_edge(engine, EdgeSettings::default()).await;
        let slow = at_once(48, |n| {
            let client = paddock.client.clone();
            async move {
                let owner = json!({"username": format!("user{n}"), "password": "x"});
                let body = json!({"name": format!("org{n}"), "owner": owner});
                client.post("/api/v1/organizations", body).await
            }
        });
        let login = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let began = base::monotonic();
            paddock.sign_in("ann", "secret").await;
            began.elapsed()
        };
        let began = base::monotonic();
        let (created, took) = tokio::join!(slow, login);
        let all = began.elapsed();
        assert!(created.iter().all(|answer| answer.status == 201));
        assert!(took < all / 4, "login took {took:?} of {all:?}");
    }
}

/// Sends requests until one is refused. Returns how many were accepted.
async fn too_many_of(client: &Client, what: &str) -> usize {
    for accepted in 0..400 {
        let answer = client.get("/user/").await;
        if answer.status == 429 {
            assert!(answer.json["detail"].as_str().unwrap().contains(what), "{:#}", answer.json);
            assert!(answer.headers.contains_key("retry-after"));
            return accepted;
        }
    }
    panic!("no request was refused");
}

async fn open_stream(client: &Client) -> Answer {
    let request = client.request("GET", "/api/v1/events").header("accept", "text/event-stream");
    client.send(request).await
}
