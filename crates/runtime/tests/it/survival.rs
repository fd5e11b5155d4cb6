//! What survives a server, and that many at once leave nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use model::deployment::Restart;
use runtime::{Condition, Container, Embedded};

use crate::lab::{Lab, container, get, kill, number};
use crate::packing;

#[tokio::test(flavor = "multi_thread")]
async fn containers_survive_a_killed_server_and_are_adopted_with_pid_and_port() {
    let mut lab = Lab::new().await;
    let image = lab.registry.put("web", &packing::web());
    lab.runtime = None;
    // A program of its own, gone when it is adopted: as after an upgrade.
    let old = lab.dir.path().join("old-server");
    std::fs::copy(&lab.options.program, &old).unwrap();
    let mut server = Command::new(&old)
        .args([lab.options.dir.to_str().unwrap(), &lab.options.instance, &image])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut endpoint = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut endpoint).unwrap();
    let endpoint = endpoint.trim().to_owned();
    assert!(get(&endpoint, "/").contains("hello"), "{endpoint}");
    let mut begun = TcpStream::connect(&endpoint).unwrap();
    begun.write_all(b"GET / HT").unwrap();
    kill(i32::try_from(server.id()).unwrap());
    server.wait().unwrap();
    std::fs::remove_file(&old).unwrap();
    let before = number(&lab, "web-0/state.json", "pid");
    let porter = number(&lab, "web-0/ports.json", "porter");
    assert!(get(&endpoint, "/").contains("hello"), "it is served while there is no server");

    let runtime = Embedded::probe(lab.options.clone()).await.unwrap();
    assert!(get(&endpoint, "/").contains("hello"), "the port is there before anyone asks for it");
    let listed = runtime.list();
    assert_eq!(listed[0].pid, Some(before));
    let web =
        Container { ports: vec![8080], restart: Restart::Always, ..container("web-0", &image) };
    assert_eq!(runtime.start(&web).await.unwrap(), std::slice::from_ref(&endpoint));
    assert_eq!(runtime.list()[0].pid, Some(before));
    assert_eq!(number(&lab, "web-0/ports.json", "porter"), porter);
    begun.write_all(b"TP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    begun.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("hello"), "a connection of before goes on: {answer:?}");

    let second = Embedded::probe(lab.options.clone()).await.err().unwrap();
    assert!(second.to_string().contains("is used by another paddock"), "{second}");
    runtime.stop("web-0").await.unwrap();
    drop(runtime);
    assert_eq!(lab.left(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_shim_is_noticed_and_cleaned_up_after() {
    let lab = Lab::new().await;
    let sleeper = lab.shell("lost-0", "sleep 1000");
    let endpoints = lab.runtime().start(&sleeper).await.unwrap();
    let running = Condition::Running { endpoints };
    kill(number(&lab, "lost-0/state.json", "shim"));
    let changed = lab.runtime().changed("lost-0", &running);
    let changed = tokio::time::timeout(Duration::from_secs(10), changed).await;
    assert!(matches!(changed, Ok(Condition::Failed(why)) if why.contains("supervisor was killed")));
    lab.runtime().start(&sleeper).await.unwrap();
    assert!(lab.runtime().list()[0].is_running);
    lab.runtime().stop("lost-0").await.unwrap();
    assert_eq!(lab.left(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_at_once_start_and_stop_without_a_trace() {
    let lab = Lab::new().await;
    let image = lab.registry.put("web", &packing::web());
    let one = async |at: usize| {
        let name = format!("many-{at}");
        let web = Container { ports: vec![8080], ..container(&name, &image) };
        let endpoint = lab.runtime().start(&web).await.unwrap().remove(0);
        let answer = tokio::task::spawn_blocking(move || get(&endpoint, "/")).await.unwrap();
        assert!(answer.contains("hello"));
        lab.runtime().stop(&name).await.unwrap();
    };
    futures_util::future::join_all((0..20).map(one)).await;
    assert_eq!(lab.left(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_nobody_waits_for_any_more_leaves_nothing() {
    let lab = Lab::new().await;
    let sleeper = Container { ports: vec![8080], ..lab.shell("gone-0", "sleep 1000") };
    lab.runtime().start(&sleeper).await.unwrap();
    lab.runtime().stop("gone-0").await.unwrap();
    for ms in [1, 5, 20, 40, 60, 80, 120, 160, 200, 250, 300, 400] {
        let start = lab.runtime().start(&sleeper);
        let _ = tokio::time::timeout(Duration::from_millis(ms), start).await;
        lab.runtime().stop("gone-0").await.unwrap();
        // What was killed on its way is gone a moment later.
        let until = base::monotonic() + Duration::from_secs(5);
        while !lab.left().is_empty() && base::monotonic() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(lab.left(), Vec::<String>::new(), "after {ms} ms");
    }
}
