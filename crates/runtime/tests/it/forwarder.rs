//! Port forwarders: lifetime, restarts and isolation.

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

fn forwarder(lab: &Lab) -> i32 {
    number(lab, PORTS, "porter")
}

fn lives(pid: i32) -> bool {
    // A zombie has an empty command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

/// Kills the forwarder and waits until its lock is released.
async fn kill_forwarder(lab: &Lab) -> i32 {
    let killed = forwarder(lab);
    kill(killed);
    let lock = lab.options.dir.join("containers/web-0/porter.json");
    let is_free = || std::fs::File::open(&lock).unwrap().try_lock_shared().is_ok();
    until("the forwarder is killed", is_free).await;
    killed
}

/// Waits until a condition holds and returns how long that took.
async fn until(what: &str, is_so: impl Fn() -> bool) -> Duration {
    let began = base::monotonic();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    began.elapsed()
}

async fn stop(lab: &Lab) {
    lab.runtime().stop("web-0").await.unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_forwarder_is_replaced_by_a_watcher() {
    let lab = Lab::new().await;
    let endpoints = lab.runtime().start(&web(&lab)).await.unwrap();
    assert!(get(&endpoints[0], "/").contains("hello"));
    let running = Condition::Running { endpoints: endpoints.clone() };
    let watch = lab.runtime().changed("web-0", &running);
    let work = async {
        for _ in 0..3 {
            let before = forwarder(&lab);
            kill(before);
            let is_written =
                || std::fs::read(lab.options.dir.join("containers").join(PORTS)).is_ok();
            until("another forwarder", || is_written() && forwarder(&lab) != before).await;
            assert!(get(&endpoints[0], "/").contains("hello"));
        }
    };
    tokio::select! {
        now = watch => panic!("unexpected change: {now:?}"),
        () = work => {}
    }
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_forwarder_is_replaced_by_a_start_and_by_a_new_server() {
    let mut lab = Lab::new().await;
    let web = web(&lab);
    let endpoints = lab.runtime().start(&web).await.unwrap();
    let first = kill_forwarder(&lab).await;
    assert_eq!(lab.runtime().start(&web).await.unwrap(), endpoints);
    assert!(get(&endpoints[0], "/").contains("hello"));
    assert_ne!(forwarder(&lab), first);

    lab.runtime = None;
    kill_forwarder(&lab).await;
    lab.runtime = Some(Embedded::probe(lab.options.clone()).await.unwrap());
    assert!(get(&endpoints[0], "/").contains("hello"));
    assert_eq!(lab.runtime().list()[0].endpoints, endpoints);

    // As left by a version without forwarders.
    lab.runtime = None;
    kill_forwarder(&lab).await;
    for file in ["porter.json", "porter.err", "ports.json"] {
        std::fs::remove_file(lab.options.dir.join("containers/web-0").join(file)).unwrap();
    }
    lab.runtime = Some(Embedded::probe(lab.options.clone()).await.unwrap());
    assert!(get(&endpoints[0], "/").contains("hello"));
    assert_eq!(lab.runtime().list()[0].endpoints, endpoints);
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn published_port_in_use_is_replaced() {
    let mut lab = Lab::new().await;
    let web = web(&lab);
    let before = lab.runtime().start(&web).await.unwrap();
    lab.runtime = None;
    kill_forwarder(&lab).await;
    let other = std::net::TcpListener::bind(&before[0]).unwrap();
    lab.runtime = Some(Embedded::probe(lab.options.clone()).await.unwrap());
    let after = lab.runtime().start(&web).await.unwrap();
    assert_ne!(before, after);
    assert!(get(&after[0], "/").contains("hello"));
    assert_eq!(lab.runtime().list()[0].endpoints, after);
    drop(other);
    assert_eq!(lab.runtime().start(&web).await.unwrap(), after, "the port does not change again");
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_to_open_ports_is_reported() {
    let lab = Lab::new().await;
    let web = web(&lab);
    lab.runtime().start(&web).await.unwrap();
    kill_forwarder(&lab).await;
    // Makes writing of the report fail.
    let file = lab.options.dir.join("containers").join(PORTS);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir_all(file.with_extension("new").join("x")).unwrap();
    let why = lab.runtime().start(&web).await.unwrap_err().to_string();
    assert_eq!(why, "Publishing ports failed: Is a directory (os error 21).");
    std::fs::remove_dir_all(file.with_extension("new")).unwrap();
    let endpoints = lab.runtime().start(&web).await.unwrap();
    assert!(get(&endpoints[0], "/").contains("hello"));
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn container_waiting_for_its_restart_keeps_its_ports() {
    let lab = Lab::with(|options| options.restart_backoff = Duration::from_secs(2)).await;
    let script = "ls /www/again && exec httpd -f -p 8080 -h /www; touch /www/again; exit 3";
    let web =
        Container { ports: vec![8080], restart: Restart::OnFailure, ..lab.shell("web-0", script) };
    let endpoints = lab.runtime().start(&web).await.unwrap();
    let first = forwarder(&lab);
    let running = Condition::Running { endpoints: endpoints.clone() };
    let now = lab.runtime().changed("web-0", &running).await;
    assert!(matches!(now, Condition::Restarting { .. }), "{now:?}");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(lives(first));
    assert!(get(&endpoints[0], "/").contains("hello"));
    assert_eq!(forwarder(&lab), first);
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarder_ends_soon_after_its_container() {
    let lab = Lab::new().await;
    let script = "(sleep 1; kill -TERM 1) & exec httpd -f -p 8080 -h /www";
    let web = Container { ports: vec![8080], ..lab.shell("web-0", script) };
    // By itself, and because its shim was killed.
    for kills_shim in [false, true] {
        let endpoints = lab.runtime().start(&web).await.unwrap();
        let forwarder = forwarder(&lab);
        let shim = number(&lab, "web-0/state.json", "shim");
        // An idle connection must not delay it.
        let _idle = std::net::TcpStream::connect(&endpoints[0]).unwrap();
        if kills_shim {
            kill(shim);
        }
        until("the shim ends", || !lives(shim)).await;
        let took = until("the forwarder ends", || !lives(forwarder)).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert!(std::net::TcpStream::connect(&endpoints[0]).is_err());
        if !kills_shim {
            assert_eq!(lab.runtime().start(&web).await.unwrap(), endpoints, "it is adopted");
            assert!(!lives(self::forwarder(&lab)), "a completed container needs none");
        }
        stop(&lab).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarder_has_no_secrets_and_no_other_descriptors() {
    let lab = Lab::new().await;
    let mut web = web(&lab);
    web.env.insert("PASSWORD".to_owned(), "hunter2".to_owned());
    let endpoints = lab.runtime().start(&web).await.unwrap();
    assert!(get(&endpoints[0], "/").contains("hello"));
    let forwarder = forwarder(&lab);
    let read = |file: &str| {
        let bytes = std::fs::read(format!("/proc/{forwarder}/{file}")).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let bundle = lab.options.dir.join("containers/web-0");
    let program = format!("{}\0runtime:forwarder\0", lab.options.program.display());
    assert_eq!(read("cmdline"), format!("{program}{}\0", bundle.display()));
    // Not compared: a secret must not be shown in a test log either.
    assert!(read("environ").is_empty(), "the environment is not empty");
    for file in ["porter.json", "ports.json", "porter.err"] {
        let text = std::fs::read_to_string(bundle.join(file)).unwrap();
        assert!(!text.contains("hunter2"), "{file}");
    }
    let arguments = format!("runtime:forwarder\0{}", bundle.display());
    assert_eq!(processes(&arguments), [forwarder], "there is one");
    let stat = read("stat");
    let session = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap().to_owned();
    assert_eq!(session, forwarder.to_string(), "it leads a session");
    let held: Vec<_> = std::fs::read_dir(format!("/proc/{forwarder}/fd"))
        .unwrap()
        .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap())
        .filter(|file| !file.starts_with(&bundle) && file != Path::new("/dev/null"))
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
async fn container_without_ports_has_no_forwarder() {
    let lab = Lab::new().await;
    lab.runtime().start(&lab.shell("web-0", "sleep 100")).await.unwrap();
    let bundle = lab.options.dir.join("containers/web-0");
    assert!(!bundle.join("porter.json").exists());
    let arguments = format!("runtime:forwarder\0{}", bundle.display());
    assert_eq!(processes(&arguments), Vec::<i32>::new());
    stop(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_containers_do_not_change_the_address_of_the_bridge() {
    let lab = Lab::new().await;
    lab.runtime().start(&lab.shell("web-0", "sleep 100")).await.unwrap();
    let address = lab.bridge_address();
    // Its own: the address of a port, or one that the kernel chose, changes with the ports.
    assert!(address.starts_with("02:70:"), "{address}");
    lab.runtime().start(&lab.shell("web-1", "sleep 100")).await.unwrap();
    assert_eq!(lab.bridge_address(), address);
    lab.runtime().stop("web-1").await.unwrap();
    assert_eq!(lab.bridge_address(), address);
    stop(&lab).await;
}
