//! HTTP calls of templates, against servers in the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use adapters::http_calls::HttpCalls;
use adapters::web::Options;
use base::Resolver;
use model::OrganizationId;
use model::address::Policy;
use port::{Endpoints, Observed, Operation, PortFuture, Progress, Task};
use serde_json::{Value, json};

use crate::canned;
use crate::fake::{Behavior, Fake, Received, prepare};
use crate::kv::{apply, refused, unavailable};
use crate::patience::ANSWER_WITHIN;

/// The servers of tests are on loopback.
pub(crate) fn loopback() -> Policy {
    Policy { allowed: vec!["127.0.0.0/8".parse().unwrap()], ..Policy::default() }
}

fn calls() -> HttpCalls {
    prepare();
    HttpCalls::new(Options::new(loopback())).unwrap()
}

fn task(with: &Value) -> Task {
    crate::kv::task(10, with)
}

/// Polls until the call is done.
async fn until_done(calls: &HttpCalls, task: &Task) -> port::Outcome {
    loop {
        if let Progress::Done(done) = calls.apply(task).await.unwrap() {
            return done;
        }
    }
}

#[tokio::test]
async fn call_sends_its_request_and_returns_the_response() {
    let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
    let recorded = requests.clone();
    let fake = Fake::start(move |request: &Received| {
        let key = request.header("idempotency-key").to_owned();
        let (method, path) = (&request.method, &request.path);
        let query = request.query.get("q").cloned();
        recorded.lock().unwrap().push(json!([method, path, query, key, request.body]));
        (201, json!({"id": 7}))
    });
    let (fake, calls) = (fake.await, calls());
    let url = format!("{}/hook?q=1", fake.address);
    let one = task(&json!({"url": url, "body": {"a": [1]}}));
    let given = apply(&calls, &one).await.outputs;
    assert_eq!(Value::from(given), json!({"status": 201, "body": {"id": 7}}));
    apply(&calls, &one).await;
    let put = task(&json!({"url": url, "method": "PUT"}));
    apply(&calls, &Task { key: "other".into(), ..put }).await;
    let expected = [
        json!(["POST", "/hook", "1", "10-1", {"a": [1]}]),
        json!(["POST", "/hook", "1", "10-1", {"a": [1]}]),
        json!(["PUT", "/hook", "1", "other", {}]),
    ];
    assert_eq!(*requests.lock().unwrap(), expected);
    assert_eq!(calls.plan(&one).await, Ok(Progress::Done(Vec::new())));
    assert_eq!(calls.observe(&one).await, Ok(Progress::Done(Observed::default())));
    assert_eq!(calls.destroy(&one).await, Ok(Progress::Done(())));
    assert_eq!(fake.received().len(), 3, "only apply sends requests");
}

#[tokio::test]
async fn status_decides_between_success_refusal_and_retry() {
    let fake = Fake::start(|request| {
        let status = request.path.trim_start_matches('/').parse().unwrap();
        (status, if status == 204 { Value::Null } else { json!("said on\none line") })
    });
    let (fake, calls) = (fake.await, calls());
    let one = |status: u16| task(&json!({"url": format!("{}/{status}?secret=1", fake.address)}));
    for status in [200, 202, 299] {
        assert_eq!(apply(&calls, &one(status)).await.outputs["status"], status);
    }
    assert_eq!(apply(&calls, &one(204)).await.outputs["body"], "");
    for status in [400, 401, 404, 409, 422] {
        let why = refused(calls.apply(&one(status)).await);
        let message = format!("POST {}/{status} was rejected: status {status} (", fake.address);
        assert!(why.starts_with(&message) && why.contains("said on"), "{why}");
    }
    for status in [408, 425, 429, 500, 502, 503] {
        let why = unavailable(calls.apply(&one(status)).await);
        assert!(why.contains(&status.to_string()) && !why.contains("secret"), "{why}");
        apply(&calls, &one(200)).await;
    }
    // A failed attempt leaves nothing behind.
    fake.set(Behavior::Status(500));
    unavailable(calls.apply(&one(200)).await);
    fake.set(Behavior::Normal);
    apply(&calls, &one(200)).await;
}

#[tokio::test]
async fn failing_host_opens_the_breaker_only_for_its_organization() {
    let (fake, calls) = (Fake::start(|_| (200, Value::Null)).await, calls());
    fake.set(Behavior::Status(503));
    let one = |path: &str| task(&json!({"url": format!("{}{path}", fake.address)}));
    for _ in 0..5 {
        unavailable(calls.apply(&one("/a")).await);
    }
    fake.set(Behavior::Normal);
    let why = unavailable(calls.apply(&one("/b")).await);
    assert!(why.starts_with(&format!("{} is unavailable: ", fake.address)), "{why}");
    assert!(why.contains("status 503") && why.contains("within 30s"), "{why}");
    assert_eq!(fake.received(), ["POST /a"; 5]);
    let theirs = Task { organization: Some("00000000000000000090".parse().unwrap()), ..one("/c") };
    apply(&calls, &theirs).await;
    let elsewhere = Fake::start(|_| (200, Value::Null)).await;
    apply(&calls, &task(&json!({"url": elsewhere.address}))).await;
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (fake, calls) = (Fake::start(|_| (200, Value::Null)).await, calls());
    for status in [301, 302, 303, 307, 308] {
        fake.set(Behavior::Status(status));
        let why = refused(calls.apply(&task(&json!({"url": fake.address, "method": "GET"}))).await);
        assert!(why.contains("follows no redirects"), "{why}");
    }
    assert!(fake.received().iter().all(|request| request == "GET /"), "{:?}", fake.received());
}

#[tokio::test]
async fn body_is_json_or_text_and_truncated() {
    let long = "é".repeat(40_000);
    let bodies = [json!(1).to_string(), "plain".into(), long.clone()];
    let server = canned::serve(move |request| {
        let number: usize = request.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
        (200, bodies[number].clone())
    });
    let calls = calls();
    let body = async |number: usize| {
        let one = task(&json!({"url": format!("{server}/{number}")}));
        apply(&calls, &one).await.outputs["body"].clone()
    };
    assert_eq!((body(0).await, body(1).await), (json!(1), json!("plain")));
    let cut = body(2).await;
    let cut = cut.as_str().unwrap();
    assert!(cut.len() <= 64 << 10 && long.starts_with(&cut[..60_000]), "{}", cut.len());
}

/// A server that answers on request.
fn blocking_server() -> (String, mpsc::Sender<()>, Arc<AtomicUsize>) {
    let (go, wait) = mpsc::channel();
    let (wait, requests) = (Mutex::new(wait), Arc::new(AtomicUsize::new(0)));
    let count = requests.clone();
    let server = canned::serve(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        let _ = wait.lock().unwrap().recv();
        (200, "late".into())
    });
    (server, go, requests)
}

#[tokio::test]
async fn long_call_continues_in_the_background_and_is_sent_once() {
    let (server, go, requests) = blocking_server();
    let calls = calls();
    let one = task(&json!({"url": server}));
    for _ in 0..2 {
        let Progress::Running { reason: message, .. } = calls.apply(&one).await.unwrap() else {
            panic!("done")
        };
        assert_eq!(message.to_string(), format!("Waiting for the response of POST {server}/."));
    }
    go.send(()).unwrap();
    assert_eq!(until_done(&calls, &one).await.outputs["body"], "late");
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn call_is_aborted_after_its_timeout() {
    let (server, _go, _) = blocking_server();
    let one = task(&json!({"url": server, "timeout_seconds": 1}));
    let why = refused(calls().apply(&one).await);
    assert_eq!(why, format!("POST {server}/ timed out after 1 s. Raise timeout_seconds"));
}

/// A server that never answers, and reports connections and disconnections.
fn silent_server() -> (String, mpsc::Receiver<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, (sender, events)) = (listener.local_addr().unwrap(), mpsc::channel());
    std::thread::spawn(move || {
        for visitor in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(visitor);
                reader.read_line(&mut String::new()).unwrap();
                sender.send("connect").unwrap();
                let _ = reader.read_to_end(&mut Vec::new());
                sender.send("disconnect").unwrap();
            });
        }
    });
    (format!("http://{address}"), events)
}

/// Waits for these events, in any order, without blocking the runtime.
async fn expect(events: &mpsc::Receiver<&'static str>, expected: &[&str]) {
    let (began, mut seen) = (base::monotonic(), Vec::new());
    while seen.len() < expected.len() {
        match events.try_recv() {
            Ok(event) => seen.push(event),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        assert!(began.elapsed() < ANSWER_WITHIN, "only {seen:?} of {expected:?}");
    }
    seen.sort_unstable();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn call_is_aborted_by_cancel_by_the_next_change_and_on_drop() {
    let (server, events) = silent_server();
    let calls = calls();
    let one = task(&json!({"url": server}));
    let next = Task { key: "10-2".into(), ..one.clone() };
    assert_eq!(calls.cancel(&one).await, Ok(true));
    calls.apply(&one).await.unwrap();
    expect(&events, &["connect"]).await;
    assert_eq!(calls.cancel(&one).await, Ok(true));
    expect(&events, &["disconnect"]).await;
    calls.apply(&one).await.unwrap();
    expect(&events, &["connect"]).await;
    calls.apply(&next).await.unwrap();
    expect(&events, &["connect", "disconnect"]).await;
    assert_eq!(calls.destroy(&next).await, Ok(Progress::Done(())));
    expect(&events, &["disconnect"]).await;
    calls.apply(&one).await.unwrap();
    expect(&events, &["connect"]).await;
    drop(calls);
    expect(&events, &["disconnect"]).await;
}

#[tokio::test]
async fn private_addresses_are_not_called() {
    prepare();
    let fake = Fake::start(|_| (200, Value::Null)).await;
    let port = fake.address.rsplit(':').next().unwrap().to_owned();
    let strict = HttpCalls::new(Options::new(Policy::default())).unwrap();
    let hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "0.0.0.0",
        "[::]",
        "2130706433",
        "0x7f.1",
        "017700000001",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
    ];
    for host in hosts {
        let why =
            refused(strict.apply(&task(&json!({"url": format!("http://{host}:{port}")}))).await);
        assert!(why.contains("is not permitted") && why.contains("allow_address"), "{host}: {why}");
    }
    for host in ["169.254.169.254", "2852039166", "[fe80::1]", "[::ffff:169.254.169.254]"] {
        for calls in [&strict, &calls()] {
            let one = task(&json!({"url": format!("http://{host}/latest/meta-data/")}));
            let why = refused(calls.apply(&one).await);
            assert!(why.contains("is not permitted"), "{host}: {why}");
        }
    }
    assert_eq!(fake.received(), Vec::<String>::new());
    let by_name = task(&json!({"url": format!("http://localhost:{port}/")}));
    apply(&calls(), &by_name).await;
    assert_eq!(fake.received(), ["POST /"]);
}

/// One organization's endpoint.
struct Endpoint(OrganizationId, String);

impl Endpoints for Endpoint {
    fn is_own<'a>(&'a self, of: OrganizationId, endpoint: &'a str) -> PortFuture<'a, bool> {
        port::ready(Ok(of == self.0 && endpoint == self.1))
    }
}

#[tokio::test]
async fn endpoints_of_own_deployments_are_called_by_exact_address_and_port() {
    prepare();
    let (own, other) =
        (Fake::start(|_| (200, Value::Null)).await, Fake::start(|_| (200, Value::Null)).await);
    let one = task(&json!({"url": own.address}));
    let endpoint = own.address.trim_start_matches("http://").to_owned();
    let endpoints = Arc::new(Endpoint(one.organization.unwrap(), endpoint));
    let calls = HttpCalls::new(Options { endpoints, ..Options::new(Policy::default()) }).unwrap();
    apply(&calls, &one).await;
    let theirs = Task { organization: Some("00000000000000000090".parse().unwrap()), ..one };
    let port = own.address.rsplit(':').next().unwrap();
    let elsewhere = [
        theirs,
        task(&json!({"url": other.address})),
        task(&json!({"url": format!("http://localhost:{port}")})),
        task(&json!({"url": format!("http://127.0.0.2:{port}")})),
    ];
    for refused_task in elsewhere {
        let why = refused(calls.apply(&refused_task).await);
        assert!(why.contains("a loopback address"), "{why}");
    }
    assert_eq!((own.received().len(), other.received().len()), (1, 0));
}

/// A resolver with changing answers, the last of which stays.
fn changing(policy: Policy, answers: &[&str]) -> Resolver {
    let mut answers: Vec<IpAddr> = answers.iter().map(|ip| ip.parse().unwrap()).collect();
    answers.reverse();
    let answers = Mutex::new(answers);
    Resolver::new(policy).with_lookup(Arc::new(move |_| {
        let mut answers = answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop() } else { answers.first().copied() };
        Box::pin(async move { Ok(answer.into_iter().collect()) })
    }))
}

#[tokio::test]
async fn name_is_checked_at_every_connection() {
    prepare();
    // Closes every connection: the next one resolves the name again.
    let server = canned::serve(|_| (200, "fine".into()));
    let port = server.rsplit(':').next().unwrap();
    let only = Policy { allowed: vec!["127.0.0.1".parse().unwrap()], ..Policy::default() };
    for private in ["127.0.0.2", "10.0.0.1", "169.254.169.254", "::ffff:10.0.0.1"] {
        let resolver = changing(only.clone(), &["127.0.0.1", private]);
        let options = Options { resolver, ..Options::new(Policy::default()) };
        let calls = HttpCalls::new(options).unwrap();
        let one = task(&json!({"url": format!("http://shop.example:{port}/")}));
        apply(&calls, &one).await;
        let why = refused(calls.apply(&one).await);
        assert!(why.starts_with("shop.example is not permitted"), "{private}: {why}");
    }
}

#[tokio::test]
async fn unreachable_host_and_invalid_response_are_retried() {
    let calls = calls();
    let url = format!("http://127.0.0.1:{}/x?secret=1", testing::programs::free_port());
    let why = unavailable(calls.apply(&task(&json!({"url": url}))).await);
    assert!(why.contains("/x is unreachable: ") && !why.contains("secret"), "{why}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut visitor in listener.incoming().flatten() {
            let _ = visitor.read(&mut [0; 4096]);
            let _ = visitor.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        }
    });
    unavailable(calls.apply(&task(&json!({"url": url}))).await);
}

#[test]
fn invalid_calls_are_rejected_with_a_message() {
    let calls = calls();
    for (with, message) in [
        (json!({"url": "http://"}), "with.url: must be a URL such as"),
        (json!({"url": "http://u:p@host/"}), "with.url: must not contain a user name or password"),
        (json!({"url": "http://host/", "method": "BREW"}), "with.method: must be one of"),
        (json!({"url": "http://host/", "timeout_seconds": 0}), "with.timeout_seconds: must be"),
    ] {
        let with = with.as_object().unwrap();
        let result = calls.validate(with, &Arc::default()).unwrap_err().to_string();
        assert!(result.contains(message), "{result}");
    }
    let fine = json!({"url": "https://host/hook", "method": "GET", "timeout_seconds": 5});
    calls.validate(fine.as_object().unwrap(), &Arc::default()).unwrap();
}
