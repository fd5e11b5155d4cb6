//! Survival of containers across restarts of the server, and concurrent starts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use model::deployment::Restart;
use runtime::{Condition, Container, Embedded};

use crate::lab::{Lab, container, get, kill, number};
use crate::packing;

#[tokio::test(flavor = "multi_thread")]
async fn containers_survive_a_killed_server_and_are_adopted() {
    let mut lab = Lab::new().await;
    let image = lab.registry.put("web", &packing::web());
    lab.runtime = None;
    // Its own program, deleted before adoption: as after an upgrade.
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
    let forwarder = number(&lab, "web-0/ports.json", "porter");
    assert!(get(&endpoint, "/").contains("hello"), "it is served without a server");

    let runtime = Embedded::probe(lab.options.clone()).await.unwrap();
    assert!(get(&endpoint, "/").contains("hello"), "the port is open before a start");
    let listed = runtime.list();
    assert_eq!(listed[0].pid, Some(before));
    let web =
        Container { ports: vec![8080], restart: Restart::Always, ..container("web-0", &image) };
    assert_eq!(runtime.start(&web).await.unwrap(), std::slice::from_ref(&endpoint));
    assert_eq!(runtime.list()[0].pid, Some(before));
    assert_eq!(number(&lab, "web-0/ports.json", "porter"), forwarder);
    begun.write_all(b"TP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    begun.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("hello"), "an open connection survives: {answer:?}");

    let second = Embedded::probe(lab.options.clone()).await.err().unwrap();
    assert!(second.to_string().contains("is in use by another process"), "{second}");
    runtime.stop("web-0").await.unwrap();
    drop(runtime);
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_shim_is_detected_and_cleaned_up() {
    let lab = Lab::new().await;
    let sleeper = lab.shell("lost-0", "sleep 1000");
    let endpoints = lab.runtime().start(&sleeper).await.unwrap();
    let running = Condition::Running { endpoints };
    kill(number(&lab, "lost-0/state.json", "shim"));
    let changed = lab.runtime().changed("lost-0", &running);
    let changed = tokio::time::timeout(Duration::from_secs(10), changed).await;
    assert!(matches!(changed, Ok(Condition::Failed(why)) if why.contains("Shim was killed")));
    lab.runtime().start(&sleeper).await.unwrap();
    assert!(lab.runtime().list()[0].is_running);
    lab.runtime().stop("lost-0").await.unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_starts_and_stops_leave_nothing() {
    let lab = Lab::new().await;
    let image = lab.registry.put("web", &packing::web());
    let start_and_stop = async |at: usize| {
        let name = format!("many-{at}");
        let web = Container { ports: vec![8080], ..container(&name, &image) };
        let endpoint = lab.runtime().start(&web).await.unwrap().remove(0);
        let answer = tokio::task::spawn_blocking(move || get(&endpoint, "/")).await.unwrap();
        assert!(answer.contains("hello"));
        lab.runtime().stop(&name).await.unwrap();
    };
    futures_util::future::join_all((0..20).map(start_and_stop)).await;
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_start_leaves_nothing() {
    let lab = Lab::new().await;
    let sleeper = Container { ports: vec![8080], ..lab.shell("gone-0", "sleep 1000") };
    lab.runtime().start(&sleeper).await.unwrap();
    lab.runtime().stop("gone-0").await.unwrap();
    for ms in [1, 5, 20, 40, 60, 80, 120, 160, 200, 250, 300, 400] {
        let start = lab.runtime().start(&sleeper);
        let _ = tokio::time::timeout(Duration::from_millis(ms), start).await;
        lab.runtime().stop("gone-0").await.unwrap();
        // Killed processes end a moment later.
        let until = base::monotonic() + Duration::from_secs(5);
        while !lab.leftovers().is_empty() && base::monotonic() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(lab.leftovers(), Vec::<String>::new(), "after {ms} ms");
    }
}
