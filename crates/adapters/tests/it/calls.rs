//! Calls of addresses that templates name, against servers inside the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use adapters::calls::Calls;
use adapters::web::Options;
use port::{Observed, Operation, Progress, Task};
use serde_json::{Value, json};

use crate::canned;
use crate::fake::{Asked, Fake, Mood, prepare};
use crate::kv::{apply, refused, unavailable};
use crate::patience::ANSWER_WITHIN;

fn calls() -> Calls {
    prepare();
    Calls::new(Options::default()).unwrap()
}

fn task(with: &Value) -> Task {
    crate::kv::task(10, with)
}

/// Asks until it is done.
async fn until_done(calls: &Calls, task: &Task) -> port::Outcome {
    loop {
        if let Progress::Done(done) = calls.apply(task).await.unwrap() {
            return done;
        }
    }
}

#[tokio::test]
async fn a_call_says_what_it_is_told_and_gives_what_is_answered() {
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let heard = asked.clone();
    let fake = Fake::start(move |asked: &Asked| {
        let key = asked.header("idempotency-key").to_owned();
        let (method, path) = (&asked.method, &asked.path);
        let query = asked.query.get("q").cloned();
        heard.lock().unwrap().push(json!([method, path, query, key, asked.body]));
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
    assert_eq!(*asked.lock().unwrap(), expected);
    assert_eq!(calls.plan(&one).await, Ok(Progress::Done(Vec::new())));
    assert_eq!(calls.observe(&one).await, Ok(Progress::Done(Observed::default())));
    assert_eq!(calls.destroy(&one).await, Ok(Progress::Done(())));
    assert_eq!(fake.asked().len(), 3, "only to make it calls anybody");
}

#[tokio::test]
async fn the_status_decides_what_is_done_refused_or_tried_again() {
    let fake = Fake::start(|asked| {
        let status = asked.path.trim_start_matches('/').parse().unwrap();
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
        let says = format!("POST {}/{status} was refused: it answered {status}: ", fake.address);
        assert!(why.starts_with(&says) && why.contains("said on"), "{why}");
    }
    for status in [408, 425, 429, 500, 502, 503] {
        let why = unavailable(calls.apply(&one(status)).await);
        assert!(why.contains(&status.to_string()) && !why.contains("secret"), "{why}");
        apply(&calls, &one(200)).await;
    }
    // Nothing is remembered of a try that failed.
    fake.be(Mood::Status(500));
    unavailable(calls.apply(&one(200)).await);
    fake.be(Mood::Fine);
    apply(&calls, &one(200)).await;
}

#[tokio::test]
async fn a_host_that_is_down_is_left_alone_for_the_organization_that_named_it() {
    let (fake, calls) = (Fake::start(|_| (200, Value::Null)).await, calls());
    fake.be(Mood::Status(503));
    let one = |path: &str| task(&json!({"url": format!("{}{path}", fake.address)}));
    for _ in 0..5 {
        unavailable(calls.apply(&one("/a")).await);
    }
    fake.be(Mood::Fine);
    let why = unavailable(calls.apply(&one("/b")).await);
    assert!(why.starts_with(&format!("{} is not asked again before 30s", fake.address)), "{why}");
    assert!(why.contains("it answered 503"), "{why}");
    assert_eq!(fake.asked(), ["POST /a"; 5]);
    let theirs = Task { organization: Some("00000000000000000090".parse().unwrap()), ..one("/c") };
    apply(&calls, &theirs).await;
    let elsewhere = Fake::start(|_| (200, Value::Null)).await;
    apply(&calls, &task(&json!({"url": elsewhere.address}))).await;
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let (fake, calls) = (Fake::start(|_| (200, Value::Null)).await, calls());
    for status in [301, 302, 303, 307, 308] {
        fake.be(Mood::Status(status));
        let why = refused(calls.apply(&task(&json!({"url": fake.address, "method": "GET"}))).await);
        assert!(why.contains("leads elsewhere"), "{why}");
    }
    assert!(fake.asked().iter().all(|asked| asked == "GET /"), "{:?}", fake.asked());
}

#[tokio::test]
async fn an_answer_is_json_or_text_and_not_too_long() {
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

/// A server that answers once it is told to.
fn patient() -> (String, mpsc::Sender<()>, Arc<AtomicUsize>) {
    let (go, wait) = mpsc::channel();
    let (wait, asked) = (Mutex::new(wait), Arc::new(AtomicUsize::new(0)));
    let count = asked.clone();
    let server = canned::serve(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        let _ = wait.lock().unwrap().recv();
        (200, "late".into())
    });
    (server, go, asked)
}

#[tokio::test]
async fn a_call_that_takes_long_goes_on_in_the_background_and_is_made_once() {
    let (server, go, asked) = patient();
    let calls = calls();
    let one = task(&json!({"url": server}));
    for _ in 0..2 {
        let Progress::Running { reason: message, .. } = calls.apply(&one).await.unwrap() else {
            panic!("done")
        };
        assert_eq!(message.to_string(), format!("POST {server}/ has not answered yet."));
    }
    go.send(()).unwrap();
    assert_eq!(until_done(&calls, &one).await.outputs["body"], "late");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_ended() {
    let (server, _go, _) = patient();
    let one = task(&json!({"url": server, "timeout_seconds": 1}));
    let why = refused(calls().apply(&one).await);
    assert_eq!(why, format!("POST {server}/ took longer than 1 s and was ended"));
}

/// A server that never answers; tells of everybody who comes, and of everybody who goes.
fn silent() -> (String, mpsc::Receiver<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, (say, said)) = (listener.local_addr().unwrap(), mpsc::channel());
    std::thread::spawn(move || {
        for visitor in listener.incoming().flatten() {
            let say = say.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(visitor);
                reader.read_line(&mut String::new()).unwrap();
                say.send("comes").unwrap();
                let _ = reader.read_to_end(&mut Vec::new());
                say.send("goes").unwrap();
            });
        }
    });
    (format!("http://{address}"), said)
}

/// What it tells next; of several words, whichever comes first. Others run while it is waited for.
async fn hear(said: &mpsc::Receiver<&'static str>, words: &[&str]) {
    let (began, mut heard) = (base::monotonic(), Vec::new());
    while heard.len() < words.len() {
        match said.try_recv() {
            Ok(word) => heard.push(word),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        assert!(began.elapsed() < ANSWER_WITHIN, "only {heard:?} of {words:?}");
    }
    heard.sort_unstable();
    assert_eq!(heard, words);
}

#[tokio::test]
async fn a_call_is_ended_by_cancelling_by_the_next_change_and_at_the_end() {
    let (server, said) = silent();
    let calls = calls();
    let one = task(&json!({"url": server}));
    let next = Task { key: "10-2".into(), ..one.clone() };
    assert_eq!(calls.cancel(&one).await, Ok(true));
    calls.apply(&one).await.unwrap();
    hear(&said, &["comes"]).await;
    assert_eq!(calls.cancel(&one).await, Ok(true));
    hear(&said, &["goes"]).await;
    calls.apply(&one).await.unwrap();
    hear(&said, &["comes"]).await;
    calls.apply(&next).await.unwrap();
    hear(&said, &["comes", "goes"]).await;
    assert_eq!(calls.destroy(&next).await, Ok(Progress::Done(())));
    hear(&said, &["goes"]).await;
    calls.apply(&one).await.unwrap();
    hear(&said, &["comes"]).await;
    drop(calls);
    hear(&said, &["goes"]).await;
}

#[tokio::test]
async fn addresses_that_only_this_machine_reaches_are_not_called() {
    prepare();
    let fake = Fake::start(|_| (200, Value::Null)).await;
    let port = fake.address.rsplit(':').next().unwrap().to_owned();
    let strict = Calls::new(Options { allow_private: false }).unwrap();
    for host in ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "0x7f.1", "10.0.0.1"] {
        let why =
            refused(strict.apply(&task(&json!({"url": format!("http://{host}:{port}")}))).await);
        assert!(why.contains("this server asks public ones only"), "{host}: {why}");
    }
    for host in ["169.254.169.254", "2852039166", "[fe80::1]", "[::ffff:169.254.169.254]"] {
        for calls in [&strict, &calls()] {
            let one = task(&json!({"url": format!("http://{host}/latest/meta-data/")}));
            let why = refused(calls.apply(&one).await);
            assert!(why.contains("must not be asked"), "{host}: {why}");
        }
    }
    assert_eq!(fake.asked(), Vec::<String>::new());
    let by_name = task(&json!({"url": format!("http://localhost:{port}/")}));
    apply(&calls(), &by_name).await;
    assert_eq!(fake.asked(), ["POST /"]);
}

#[tokio::test]
async fn nobody_there_is_tried_again_and_garbage_is_no_answer() {
    let calls = calls();
    let url = format!("http://127.0.0.1:{}/x?secret=1", testing::programs::free_port());
    let why = unavailable(calls.apply(&task(&json!({"url": url}))).await);
    assert!(why.contains("/x can't be reached: ") && !why.contains("secret"), "{why}");
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
fn what_can_not_be_called_is_a_sentence() {
    let calls = calls();
    for (with, sentence) in [
        (json!({"url": "http://"}), "with.url: must be an address like"),
        (json!({"url": "http://u:p@host/"}), "with.url: must have no name or password in it"),
        (json!({"url": "http://host/", "method": "BREW"}), "with.method: must be one of"),
        (json!({"url": "http://host/", "timeout_seconds": 0}), "with.timeout_seconds: must be"),
    ] {
        let with = with.as_object().unwrap();
        let said = calls.validate(with, &Arc::default()).unwrap_err().to_string();
        assert!(said.contains(sentence), "{said}");
    }
    let fine = json!({"url": "https://host/hook", "method": "GET", "timeout_seconds": 5});
    calls.validate(fine.as_object().unwrap(), &Arc::default()).unwrap();
}
