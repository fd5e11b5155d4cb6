//! The client against faulty servers and connections.

use std::process::{Command, Stdio};

use super::fake::{Act, Fake, answer, header, json, stream};
use super::process::{BINARY, Client, Outcome};

const PROBLEM: &str = "content-type: application/problem+json\r\n";
const ID: &str = "9m4e2mr0ui3e8a215n4g";

/// A cluster as JSON.
fn cluster(id: &str, name: &str, status: &str, reason: &str) -> String {
    format!(
        r#"{{"id":"{id}","name":"{name}","status":"{status}","status_reason":"{reason}","shared":false,"provider":"local","cloud_provider":"local","region":"local","labels":{{}},"capacity":{{}},"nodes":[],"deployments":0,"generation":1,"created_by":"server","created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"}}"#
    )
}

fn accepted() -> String {
    cluster(ID, "prod", "accepted", "")
}

fn ready() -> String {
    cluster(ID, "prod", "ready", "")
}

/// An event about a cluster.
fn event(seq: u32, status: &str) -> String {
    format!(
        r#"{{"seq":{seq},"at":"2026-01-02T03:04:05Z","actor":"server","kind":"cluster","subject":"{ID}","type":"cluster.{status}","data":{{"status":"{status}"}}}}"#
    )
}

#[test]
fn unreachable_server_is_reported() {
    let client = Client::logged_in("http://127.0.0.1:1");
    client.run("whoami").fails(
        1,
        &[
            "error: cannot reach http://127.0.0.1:1: connection refused\n",
            "hint: start a server with \"paddock server\"",
        ],
    );
    client.run("logout").fails(1, &["cannot reach", "the stored token was removed"]);
    client.run("whoami").fails(1, &["not logged in"]);
}

#[test]
fn invalid_server_urls_are_rejected() {
    for address in ["home", "ftp://home", "http://ann:secret@home"] {
        Client::new(address).run("whoami").fails(2, &["invalid server URL"]);
    }
}

#[test]
fn error_responses_have_hints() {
    let busy = r#"{"title":"Too Many Requests","detail":"Too many logins."}"#;
    let fields = r#"{"detail":"Fix these.","errors":[{"field":"resources.cpu","detail":"too much"},{"field":"labels.a","detail":"too long"}]}"#;
    let broken = r#"{"title":"Internal Server Error","request_id":"r-77"}"#;
    for (act, words) in [
        (
            answer("429 Too Many Requests", &format!("{PROBLEM}retry-after: 12\r\n"), busy),
            &["error: Too many logins.\n", "hint: retry in 12 s\n"][..],
        ),
        (
            answer("400 Bad Request", PROBLEM, fields),
            &["error: Fix these. (--cpu: too much; --label a: too long)\n"],
        ),
        (answer("500 Internal Server Error", PROBLEM, broken), &["request id r-77"]),
        (
            json(
                "500 Internal Server Error",
                r#"{"kind":"Error","code":"X-9","reason":"Not now.","operation_id":"o-5"}"#,
            ),
            &["error: Not now.\n", "hint: see the server's log for request id o-5\n"],
        ),
        (
            answer("502 Bad Gateway", "content-type: text/html\r\n", "<h1>\u{1b}[31m</h1>"),
            &["error: server responded with 502 Bad Gateway\n"],
        ),
        (
            json("401 Unauthorized", r#"{"detail":"No."}"#),
            &["error: No.\n", "hint: run \"paddock login\""],
        ),
        (
            answer("308 Permanent Redirect", "location: https://new.example/\r\n", ""),
            &["redirects to https://new.example/", "--server"],
        ),
        (json("200 OK", "<html>"), &["invalid response", "check that it is a Paddock server"]),
        (json("200 OK", "{}"), &["invalid response"]),
    ] {
        let fake = Fake::start(vec![act]);
        Client::logged_in(&fake.address).run("whoami").fails(1, words);
    }
}

#[test]
fn untrusted_text_does_not_control_the_terminal() {
    let item = cluster(ID, r"\u001b[2Jx\nid", "ready", "");
    let page = format!(r#"{{"items":[{item}],"next":null}}"#);
    let fake = Fake::start(vec![json("200 OK", &page)]);
    let outcome = Client::logged_in(&fake.address).run("cluster list").succeeds();
    assert!(!outcome.stdout.contains('\u{1b}'));
    assert_eq!(outcome.stdout.lines().count(), 2);
}

#[test]
fn creation_of_a_secret_is_not_retried() {
    let kinds = r#"{"items":[{"name":"rhino","display_name":"Rhino","api":"rhinos_mgmt",
        "plans":[],"trial":null,"regions":[],"versions":[]}]}"#;
    let fake = Fake::start(vec![
        json("200 OK", kinds),
        json("200 OK", r#"{"collections":[{"id":"rhinos"},{"id":"service_accounts"}]}"#),
        Act::HangUp,
        json("202 Accepted", r#"{"id":"1","name":"a","client_id":"c","client_secret":"s"}"#),
    ]);
    let client = Client::logged_in(&fake.address);
    client.run("service-account create a").fails(1, &["cannot reach"]);
    let requests = fake.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[1].starts_with("get /api/rhinos_mgmt/v1 "), "{requests:?}");
    assert!(requests[2].starts_with("post /api/rhinos_mgmt/v1/service_accounts "), "{requests:?}");
}

#[test]
fn creation_is_retried_with_the_same_idempotency_key() {
    let fake = Fake::start(vec![Act::HangUp, json("201 Created", &accepted())]);
    Client::logged_in(&fake.address).run("cluster create prod --cpu 1").succeeds();
    let requests = fake.requests();
    let keys: Vec<_> = requests.iter().map(|r| header(r, "idempotency-key")).collect();
    assert_eq!(keys.len(), 2);
    assert!(keys[0].is_some() && keys[0] == keys[1], "{keys:?}");
    assert!(requests[1].ends_with(r#"{"capacity":{"cpu":"1"},"name":"prod"}"#), "{requests:?}");
}

#[test]
fn login_is_not_retried() {
    let fake = Fake::start(vec![Act::HangUp, json("200 OK", r#"{"token":"t"}"#)]);
    Client::new(&fake.address).run("login --username ann").fails(1, &["cannot reach"]);
    assert_eq!(fake.requests().len(), 1);
}

#[test]
fn token_is_not_sent_to_another_server() {
    let fake = Fake::start(vec![json("200 OK", "{}")]);
    let client = Client::logged_in("http://127.0.0.1:1");
    let line = format!("--server {} whoami", fake.address);
    client.run(&line).fails(1, &["not logged in to http://127.0.0.1:"]);
    assert_eq!(fake.requests().len(), 0);
}

#[test]
fn pages_are_merged() {
    let [one, two] = [("1", "a"), ("2", "b")].map(|(id, name)| (format!("{id:0<20}"), name));
    let [a, b] = [&one, &two].map(|(id, name)| cluster(id, name, "ready", ""));
    let script = || {
        vec![
            json("200 OK", &format!(r#"{{"items":[{a}],"next":"1"}}"#)),
            json("200 OK", &format!(r#"{{"items":[{b}],"next":null}}"#)),
        ]
    };
    let fake = Fake::start(script());
    Client::logged_in(&fake.address)
        .run("cluster list")
        .succeeds()
        .prints(&["10000000000000000000  a ", "20000000000000000000  b "]);
    assert!(fake.requests()[1].starts_with("get /api/v1/clusters?limit=999&after=1 "));
    let fake = Fake::start(script());
    let outcome = Client::logged_in(&fake.address).run("cluster list -o json").succeeds();
    let want = format!(r#"{{"items":[{a},{b}],"next":null}}"#);
    assert_eq!(outcome.stdout, format!("{want}\n"));
}

#[test]
fn single_page_is_printed_unchanged() {
    let body = "{ \"next\": null,\n  \"items\": [ {\"status\":\"x\", \"name\":\"a\",\"id\":\"1\", \"new\": 1.50} ] }";
    let fake = Fake::start(vec![json("200 OK", body)]);
    let outcome = Client::logged_in(&fake.address).run("cluster list -o json").succeeds();
    assert_eq!(outcome.stdout, format!("{body}\n"));
}

#[test]
fn wait_resumes_a_broken_stream() {
    let message = |seq: u32, status: &str| format!("id: {seq}\ndata: {}\n\n", event(seq, status));
    let fake = Fake::start(vec![
        json("201 Created", &accepted()),
        stream("id: 6\n\n"),
        json("200 OK", &accepted()),
        stream(&format!("{}id: 8\ndata: {{\"ty", message(7, "provisioning"))),
        Act::HangUp,
        stream(&message(8, "ready")),
        json("200 OK", &ready()),
    ]);
    let client = Client::logged_in(&fake.address);
    let outcome = client.run("cluster create prod --cpu 1 --wait=30").succeeds();
    outcome
        .prints(&["prod  ready"])
        .notes(&["cluster prod: provisioning\n", "cluster prod: ready\n"]);
    let requests = fake.requests();
    assert_eq!(header(&requests[1], "accept"), Some("text/event-stream"));
    let resumed = [1, 3, 5].map(|n| header(&requests[n], "last-event-id"));
    assert_eq!(resumed, [None, Some("6"), Some("7")]);
}

#[test]
fn wait_reports_the_reason_of_a_failure() {
    let failed = cluster(ID, "prod", "failed", "no such region");
    let fake = Fake::start(vec![
        json("201 Created", &accepted()),
        stream("id: 6\n\n"),
        json("200 OK", &failed),
    ]);
    Client::logged_in(&fake.address)
        .run("cluster create prod --cpu 1 --wait")
        .fails(1, &["error: cluster prod failed: no such region\n"]);
}

#[test]
fn failed_wait_reports_the_created_cluster() {
    let fake = Fake::start(vec![
        json("201 Created", &accepted()),
        json("403 Forbidden", r#"{"detail":"No events for you."}"#),
    ]);
    Client::logged_in(&fake.address).run("cluster create prod --cpu 1 --wait").fails(
        1,
        &[
            "error: waiting for cluster prod failed: No events for you.\n",
            "hint: the operation continues; to check it, run \
             \"paddock cluster show 9m4e2mr0ui3e8a215n4g\"\n",
        ],
    );
}

#[test]
fn past_and_new_events_have_no_gap_or_duplicate() {
    let event = |seq: u32| event(seq, "ready");
    let message = |seq: u32| format!("id: {seq}\ndata: {}\n\n", event(seq));
    let fake = Fake::start(vec![
        stream(&[message(5), message(6)].concat()),
        json("200 OK", &format!(r#"{{"items":[{},{}],"next":null}}"#, event(4), event(5))),
        json("401 Unauthorized", r#"{"detail":"The token has expired."}"#),
    ]);
    let client = Client::logged_in(&fake.address);
    let outcome = client.run("events -f --since 1h -o json").ends(1);
    assert_eq!(outcome.stdout, format!("{}\n{}\n{}\n", event(4), event(5), event(6)));
    outcome.notes(&["The token has expired."]);
    assert_eq!(header(&fake.requests()[2], "last-event-id"), Some("6"));
}

#[test]
fn closed_stdout_is_not_a_failure() {
    let fake = Fake::start(vec![json("200 OK", r#"{"items":[],"next":null}"#)]);
    let client = Client::logged_in(&fake.address);
    let mut child = client.command("events").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());

    let mut child = Command::new(BINARY)
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    Outcome::new("completions", child.wait_with_output().unwrap()).succeeds();
}

#[test]
fn unresponsive_server_times_out() {
    // Nothing accepts connections, but the operating system completes the handshake.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::logged_in(&address);
    client.run("whoami --timeout 1").fails(1, &["no response within 1 s"]);
    client.run("events -f --timeout 1").fails(1, &["no response within 1 s"]);
    client.run("whoami --timeout 0").fails(2, &["--timeout"]);
}

#[test]
fn name_is_resolved_by_the_server() {
    let found = format!(r#"{{"items":[{}],"next":null}}"#, ready());
    let fake = Fake::start(vec![json("200 OK", &found), json("200 OK", &ready())]);
    Client::logged_in(&fake.address).run("cluster show prod").succeeds();
    assert!(fake.requests()[0].starts_with("get /api/v1/clusters?name=prod&limit=100 "));
}

#[test]
fn invalid_event_stream_is_not_followed_forever() {
    let page = || stream("<html>no events here</html>");
    let fake = Fake::start(vec![page(), page(), page(), page(), json("404 Not Found", "{}")]);
    Client::logged_in(&fake.address).run("events -f").ends(1);
}
