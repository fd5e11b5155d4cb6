//! `paddock deployment logs`, also with broken connections.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::fake::{Act, Fake, json, stream};
use super::process::{Client, Outcome, Server, Setup};

fn with_cluster(server: &Server) -> Client {
    let ann = server.owner("acme", "ann");
    ann.run("cluster create prod --cpu 4 --ram 8Gi --wait=60").succeeds();
    ann
}

#[test]
fn logs_are_shown() {
    let server = Server::start();
    let ann = with_cluster(&server);
    ann.run("deploy nginx:1 --name web --cluster prod --port 80 --wait=60").succeeds();
    let all = ann.run("deployment logs web").succeeds();
    let lines: Vec<_> = all.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("simulated: started nginx:1"), "{lines:?}");
    let tail = ann.run("deployment logs web --tail 1").succeeds();
    assert_eq!(tail.stdout, "simulated: listening on port 80\n");
    let timed = ann.run("deployment logs web --tail 1 --timestamps").succeeds();
    assert!(timed.stdout.starts_with("20") && timed.stdout.contains("Z simulated"), "{timed:?}");
    assert_eq!(ann.run("deployment logs web --tail 0").succeeds().stdout, "");
    let line = ann.json("deployment logs web --tail 1");
    assert_eq!(line["text"], "simulated: listening on port 80");
    assert_eq!(line["replica"], 0);

    ann.run("deployment scale web 2 --wait=60").succeeds();
    ann.run("deployment logs web").succeeds().prints(&["[0] simulated", "[1] simulated"]);
    let second = ann.run("deployment logs web --replica 1").succeeds();
    assert!(second.stdout.starts_with("simulated: started"), "{second:?}");
}

#[test]
fn missing_logs_are_explained() {
    let server = Server::start();
    let ann = with_cluster(&server);
    ann.run("deployment logs nothing").fails(1, &["deployment \"nothing\" not found"]);
    ann.run("deployment create --name held --cluster prod --cpu 1 --wait=60").succeeds();
    for follow in ["", " -f"] {
        let line = format!("deployment logs held{follow}");
        ann.run(&line).fails(1, &["held has no image", "deployment show held"]);
    }
    ann.run("deploy big:1 --name big --cluster prod --cpu 64").succeeds();
    ann.run("deployment logs big").succeeds().notes(&["big has no logs yet: queued: "]);
    ann.run("deployment logs big --replica 7").fails(1, &["big has no replica 7"]);
    ann.run("deployment logs big --tail many").fails(2, &["--tail"]);
    ann.run("deployment logs big --tail 1000000").fails(2, &["--tail"]);
}

#[test]
fn follow_shows_all_lines_until_all_replicas_end() {
    let setup = Setup::new().arg("--simulated-complete", "job");
    let server = setup.arg("--simulated-delay-ms", "1500").start();
    let ann = with_cluster(&server);
    // No output exists yet.
    ann.run("deploy job:1 --name job --cluster prod --replicas 2 --restart never").succeeds();
    let outcome = ann.run("deployment logs job -f").succeeds();
    for (number, what) in [(0, "started"), (0, "exited"), (1, "started"), (1, "exited")] {
        let line = format!("[{number}] simulated: {what}");
        assert_eq!(outcome.stdout.matches(&line).count(), 1, "{outcome:?}");
    }
    // All replicas have already ended.
    let again = ann.run("deployment logs job -f --replica 1").succeeds();
    assert_eq!(again.stdout.lines().count(), 2, "{again:?}");
}

#[test]
fn follow_ends_with_the_deployment_or_ctrl_c() {
    let server = Server::start();
    let ann = with_cluster(&server);
    ann.run("deploy nginx:1 --name web --cluster prod --wait=60").succeeds();
    let follow = |flags: &str| {
        let mut command = ann.command(&format!("deployment logs web -f {flags}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("simulated: started"), "{line}");
        child
    };
    let child = follow("");
    let interrupt = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    let outcome = Outcome::new("logs -f", child.wait_with_output().unwrap()).succeeds();
    assert_eq!(outcome.stderr, "");

    // A replica removed by scale-down ends as well.
    ann.run("deployment scale web 2 --wait=60").succeeds();
    let child = follow("--replica 1");
    ann.run("deployment scale web 1 --wait=60").succeeds();
    Outcome::new("logs -f --replica 1", child.wait_with_output().unwrap()).succeeds();

    let child = follow("");
    ann.run("deployment delete web --yes --wait=60").succeeds();
    Outcome::new("logs -f", child.wait_with_output().unwrap()).succeeds();
}

#[test]
fn follow_survives_a_server_restart() {
    // A fixed port, so that the server comes back at the same URL.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let setup = Setup::new().arg("--listen", &address).arg("--simulated-complete", "job");
    let mut server = setup.arg("--simulated-delay-ms", "3000").start();
    let ann = with_cluster(&server);
    ann.run("deploy job:1 --name job --cluster prod --restart never --wait=60").succeeds();
    let mut command = ann.command("deployment logs job -f");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert!(first.starts_with("simulated: started job:1"), "{first}");

    server.kill();
    std::thread::sleep(Duration::from_millis(1500));
    server.restart();
    let started = base::monotonic();
    let rest: Vec<_> = out.lines().map(Result::unwrap).collect();
    assert_eq!(rest, ["simulated: exited with code 0"], "no gap, no repetition");
    assert!(started.elapsed() < Duration::from_mins(1));
    let outcome = Outcome::new("logs -f", child.wait_with_output().unwrap()).succeeds();
    outcome.notes(&["cannot reach", "retrying"]);
}

const ID: &str = "9m4e2mr0ui3e8a215n4g";

fn deployment(replicas: &[(u32, &str)]) -> Act {
    let replica = |(number, status): &(u32, &str)| {
        format!(
            r#"{{"number":{number},"status":"{status}","status_reason":"","cluster_id":"{ID}",
                "node":"a","endpoints":[]}}"#
        )
    };
    let replicas: Vec<_> = replicas.iter().map(replica).collect();
    let body = format!(
        r#"{{"id":"{ID}","organization_id":"{ID}","name":"web","image":"nginx","resources":{{}},
            "replicas":1,"priority":0,"env":{{}},"command":[],"ports":[],"labels":{{}},
            "restart":"never","node_selector":{{}},"anti_affinity":false,"status":"running",
            "status_reason":"","endpoints":[],"generation":1,"created_by":"server",
            "created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z",
            "replica_statuses":[{}]}}"#,
        replicas.join(",")
    );
    json("200 OK", &body)
}

fn line(replica: u32, second: u32, text: &str) -> String {
    format!(
        "{{\"replica\":{replica},\"at\":\"2026-01-02T03:04:{second:02}Z\",\"source\":\"stdout\",\
         \"text\":\"{text}\",\"next\":\"{replica}-{second}\"}}\n"
    )
}

#[test]
fn each_replica_log_is_resumed_separately() {
    let running = || deployment(&[(0, "running"), (1, "running")]);
    let fake = Fake::start(vec![
        running(),
        running(),
        stream(&format!("{}{{\"replica\":0,\"at", line(0, 1, "zero"))),
        stream(&[line(1, 1, "one"), line(1, 2, "two")].concat()),
        // The server is down for a while, then not ready.
        Act::HangUp,
        Act::HangUp,
        Act::HangUp,
        json("503 Service Unavailable", r#"{"detail":"Not yet."}"#),
        deployment(&[(0, "completed"), (1, "failed")]),
        stream(&line(0, 2, "end of zero")),
        // The cursor is no longer valid, so the log restarts.
        stream(&[line(1, 1, "one"), line(1, 2, "two"), line(1, 3, "end of one")].concat()),
    ]);
    let client = Client::logged_in(&fake.address);
    let outcome = client.run(&format!("deployment logs {ID} -f --tail 5")).succeeds();
    let mut lines: Vec<_> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    let want = ["[0] end of zero", "[0] zero", "[1] end of one", "[1] one", "[1] two"];
    assert_eq!(lines, want);
    assert_eq!(outcome.stderr.matches("retrying").count(), 1, "{outcome:?}");

    let requests = fake.requests();
    let path = |n: usize| requests[n].split(' ').nth(1).unwrap().to_owned();
    let logs = format!("/api/v1/deployments/{ID}/logs?follow=true");
    assert_eq!(path(2), format!("{logs}&replica=0&tail=5"));
    assert_eq!(path(3), format!("{logs}&replica=1&tail=5"));
    assert_eq!(path(9), format!("{logs}&replica=0&after=0-1"));
    assert_eq!(path(10), format!("{logs}&replica=1&after=1-2"));
    assert!(requests[2].contains("accept: application/x-ndjson"), "{requests:?}");
}

#[test]
fn invalid_log_is_rejected() {
    for follow in ["", " -f"] {
        let fake = Fake::start(vec![
            deployment(&[(0, "running")]),
            deployment(&[(0, "running")]),
            stream("<html>\n"),
        ]);
        let client = Client::logged_in(&fake.address);
        let line = format!("deployment logs {ID}{follow}");
        client.run(&line).fails(1, &["invalid response", "check that it is a Paddock server"]);
    }
}
