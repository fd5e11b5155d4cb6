//! Limits of a server process: open files, streams, connections and sign-up.

use std::fs;
use std::net::TcpStream;

use super::process::Setup;

/// Soft and hard limit of open files of a process.
fn file_limits(id: u32) -> (String, String) {
    let limits = fs::read_to_string(format!("/proc/{id}/limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    (words[3].to_owned(), words[4].to_owned())
}

#[test]
fn server_raises_the_limit_of_open_files() {
    let server = Setup::new().files(300, 2000).start();
    assert_eq!(file_limits(server.id()), ("2000".into(), "2000".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_answers_while_one_tenant_opens_as_many_streams_as_it_can() {
    // As in the review: more streams than files.
    let server = Setup::new().files(1024, 1024).arg("--max-stream-secs", "60").start();
    let eve = server.http_owner("eve").await;
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..1100 {
        let request = eve.request("GET", "/api/v1/events").header("accept", "text/event-stream");
        match request.send().await.unwrap() {
            answer if answer.status() == 200 => open.push(answer),
            answer => {
                assert_eq!(answer.status(), 429);
                refused += 1;
            }
        }
    }
    assert_eq!((open.len(), refused), (100, 1000));
    server.http().get("/api/v1/self/ping").await.expect(200);
    let ann = server.http_owner("ann").await;
    ann.get("/api/v1/users/me").await.expect(200);
}

#[test]
fn connections_do_not_exhaust_the_files_of_the_server() {
    let server = Setup::new().files(600, 600).arg("--request-timeout-secs", "30").start();
    let idle: Vec<TcpStream> = (0..700).map(|_| server.connect()).collect();
    // Operational endpoints have connections of their own.
    let began = base::monotonic();
    let response = ping(&server.address);
    assert!(response.contains("pong"), "{response}");
    assert!(began.elapsed().as_secs() < 8, "{:?}", began.elapsed());
    drop(idle);
    let log = server.stderr();
    assert!(!log.contains("accepting a connection failed"), "{log}");
}

fn ping(address: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
    let request = "GET /api/v1/self/ping HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

#[test]
fn strangers_are_told_how_to_join_if_sign_up_is_by_invite() {
    let server = Setup::new().arg("--sign-up", "invite").start();
    let stranger = server.client();
    let words = ["Sign-up is by invite", "paddock org join CODE", "paddock login --username admin"];
    stranger.run("org create acme --username eve").fails(1, &words);
    stranger.run("demo").fails(1, &words);
    let admin = server.client();
    admin.run("login --username admin").succeeds();
    // The administrator becomes the owner whom it created.
    admin.run("org create acme --username ann").succeeds();
    let code = admin.json("org invite")["code"].as_str().unwrap().to_owned();
    stranger.run(&format!("org join {code} --username bob")).succeeds();
    stranger.run("org show").succeeds().prints(&["acme"]);
}
