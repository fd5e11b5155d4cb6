//! Published ports: who holds them, for how long, and what happens when that one is killed.

use std::path::Path;
use std::time::Duration;

use model::deployment::Restart;
use runtime::{Condition, Container, Embedded};

use crate::lab::{Lab, container, get, kill, number, processes};
use crate::packing;

const PORTS: &str = "web-0/ports.json";

fn web(lab: &Lab) -> Container {
    let image = lab.registry.put("web", &packing::web());
    Container { ports: vec![8080], ..container("web-0", &image) }
}

fn porter(lab: &Lab) -> i32 {
    number(lab, PORTS, "porter")
}

fn lives(pid: i32) -> bool {
    // A zombie has no words.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.is_empty())
}

/// Kills a porter that nobody watches; returns when it has let go of all that it had.
async fn kill_porter(lab: &Lab) -> i32 {
    let killed = porter(lab);
    kill(killed);
    let lock = lab.options.dir.join("containers/web-0/porter.json");
    let is_free = || std::fs::File::open(&lock).unwrap().try_lock_shared().is_ok();
    soon("it is killed", is_free).await;
    killed
}

/// Waits for something that must become true soon; how long it took.
async fn soon(what: &str, is_so: impl Fn() -> bool) -> Duration {
    let began = base::monotonic();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    began.elapsed()
}

async fn stop(lab: &Lab) {
    lab.runtime().stop("web-0").await.unwrap();
    assert_eq!(lab.left(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_porter_is_replaced_with_the_same_ports_by_who_watches() {
    let lab = Lab::new().await;
    let endpoints = lab.runtime().start(&web(&lab)).await.unwrap();
    assert!(get(&endpoints[0], "/").contains("hello"));
    let running = Condition::Running { endpoints: endpoints.clone() };
    let watch = lab.runtime().changed("web-0", &running);
    let work = async {
        for _ in 0..3 {
            let before = porter(&lab);
            kill(before);
            let other = || std::fs::read(lab.options.dir.join("containers").join(PORTS)).is_ok();
            soon("another porter", || other() && porter(&lab) != before).await;
            assert!(get(&endpoints[0], "/").contains("hello"));
        }
    };
    tokio::select! {
        now = watch => panic!("nothing has changed, but: {now:?}"),
        () = work => {}
    }
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_porter_is_replaced_with_the_same_ports_by_a_start_and_by_a_new_server() {
    let mut lab = Lab::new().await;
    let web = web(&lab);
    let endpoints = lab.runtime().start(&web).await.unwrap();
    let first = kill_porter(&lab).await;
    assert_eq!(lab.runtime().start(&web).await.unwrap(), endpoints);
    assert!(get(&endpoints[0], "/").contains("hello"));
    assert_ne!(porter(&lab), first);

    lab.runtime = None;
    kill_porter(&lab).await;
    lab.runtime = Some(Embedded::probe(lab.options.clone()).await.unwrap());
    assert!(get(&endpoints[0], "/").contains("hello"));
    assert_eq!(lab.runtime().list()[0].endpoints, endpoints);

    // As a server from before there were porters leaves it.
    lab.runtime = None;
    kill_porter(&lab).await;
    for file in ["porter.json", "porter.err", "ports.json"] {
        std::fs::remove_file(lab.options.dir.join("containers/web-0").join(file)).unwrap();
    }
    lab.runtime = Some(Embedded::probe(lab.options.clone()).await.unwrap());
    assert!(get(&endpoints[0], "/").contains("hello"));
    assert_eq!(lab.runtime().list()[0].endpoints, endpoints);
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_published_port_that_was_taken_meanwhile_is_replaced() {
    let mut lab = Lab::new().await;
    let web = web(&lab);
    let before = lab.runtime().start(&web).await.unwrap();
    lab.runtime = None;
    kill_porter(&lab).await;
    let thief = std::net::TcpListener::bind(&before[0]).unwrap();
    lab.runtime = Some(Embedded::probe(lab.options.clone()).await.unwrap());
    let after = lab.runtime().start(&web).await.unwrap();
    assert_ne!(before, after);
    assert!(get(&after[0], "/").contains("hello"));
    assert_eq!(lab.runtime().list()[0].endpoints, after);
    drop(thief);
    assert_eq!(lab.runtime().start(&web).await.unwrap(), after, "it stays where it is");
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_that_can_not_be_opened_are_a_clear_failure() {
    let lab = Lab::new().await;
    let web = web(&lab);
    lab.runtime().start(&web).await.unwrap();
    kill_porter(&lab).await;
    // The file that it would have to write can't be written.
    let file = lab.options.dir.join("containers").join(PORTS);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir_all(file.with_extension("new").join("x")).unwrap();
    let why = lab.runtime().start(&web).await.unwrap_err().to_string();
    assert_eq!(why, "No port could be opened: Is a directory (os error 21).");
    std::fs::remove_dir_all(file.with_extension("new")).unwrap();
    let endpoints = lab.runtime().start(&web).await.unwrap();
    assert!(get(&endpoints[0], "/").contains("hello"));
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_waits_for_its_restart_keeps_its_ports() {
    let lab = Lab::with(|options| options.restart_first = Duration::from_secs(2)).await;
    let script = "ls /www/again && exec httpd -f -p 8080 -h /www; touch /www/again; exit 3";
    let web =
        Container { ports: vec![8080], restart: Restart::OnFailure, ..lab.shell("web-0", script) };
    let endpoints = lab.runtime().start(&web).await.unwrap();
    let first = porter(&lab);
    let running = Condition::Running { endpoints: endpoints.clone() };
    let now = lab.runtime().changed("web-0", &running).await;
    assert!(matches!(now, Condition::Restarting { .. }), "{now:?}");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(lives(first));
    assert!(get(&endpoints[0], "/").contains("hello"));
    assert_eq!(porter(&lab), first);
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_porter_ends_soon_after_its_container_has_ended_for_good() {
    let lab = Lab::new().await;
    let script = "(sleep 1; kill -TERM 1) & exec httpd -f -p 8080 -h /www";
    let web = Container { ports: vec![8080], ..lab.shell("web-0", script) };
    // By itself, and because its shim was killed.
    for by_hand in [false, true] {
        let endpoints = lab.runtime().start(&web).await.unwrap();
        let porter = porter(&lab);
        let shim = number(&lab, "web-0/state.json", "shim");
        // One who never says anything must not keep it.
        let _silent = std::net::TcpStream::connect(&endpoints[0]).unwrap();
        if by_hand {
            kill(shim);
        }
        soon("the shim ends", || !lives(shim)).await;
        let took = soon("the porter ends", || !lives(porter)).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert!(std::net::TcpStream::connect(&endpoints[0]).is_err());
        if !by_hand {
            assert_eq!(lab.runtime().start(&web).await.unwrap(), endpoints, "it is taken as it is");
            assert!(!lives(self::porter(&lab)), "what has ended needs none");
        }
        stop(&lab).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_porter_knows_no_secrets_and_holds_nothing_but_its_ports() {
    let lab = Lab::new().await;
    let mut web = web(&lab);
    web.env.insert("PASSWORD".to_owned(), "hunter2".to_owned());
    let endpoints = lab.runtime().start(&web).await.unwrap();
    assert!(get(&endpoints[0], "/").contains("hello"));
    let porter = porter(&lab);
    let read = |file: &str| {
        let bytes = std::fs::read(format!("/proc/{porter}/{file}")).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let place = lab.options.dir.join("containers/web-0");
    let words = format!("{}\0runtime:porter\0", lab.options.program.display());
    assert_eq!(read("cmdline"), format!("{words}{}\0", place.display()));
    // Not compared: what it must not have must not be shown in a log either.
    assert!(read("environ").is_empty(), "it has an environment");
    for file in ["porter.json", "ports.json", "porter.err"] {
        let text = std::fs::read_to_string(place.join(file)).unwrap();
        assert!(!text.contains("hunter2"), "{file}");
    }
    let words = format!("runtime:porter\0{}", place.display());
    assert_eq!(processes(&words), [porter], "there is one");
    let stat = read("stat");
    let session = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap().to_owned();
    assert_eq!(session, porter.to_string(), "a session of its own");
    let held: Vec<_> = std::fs::read_dir(format!("/proc/{porter}/fd"))
        .unwrap()
        .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap())
        .filter(|file| !file.starts_with(&place) && file != Path::new("/dev/null"))
        .map(|file| file.display().to_string())
        .filter(|file| !file.starts_with("anon_inode:") && !file.starts_with("socket:"))
        .collect();
    assert_eq!(held, Vec::<String>::new());
    let status = read("status");
    let kib = |field: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    assert!(kib("RssAnon:") < 4096, "{status}");
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_without_ports_has_no_porter() {
    let lab = Lab::new().await;
    lab.runtime().start(&lab.shell("web-0", "sleep 100")).await.unwrap();
    let place = lab.options.dir.join("containers/web-0");
    assert!(!place.join("porter.json").exists());
    let words = format!("runtime:porter\0{}", place.display());
    assert_eq!(processes(&words), Vec::<i32>::new());
    stop(&lab).await;
}
