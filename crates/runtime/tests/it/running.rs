//! Running containers: isolation, logs, exits and cleanup.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use model::deployment::Restart;
use model::log::{LogsFrom, Source};
use runtime::{Condition, Container, Embedded, Options};

use crate::lab::{Lab, container, get};
use crate::packing;
use crate::registry::Debian;

#[tokio::test(flavor = "multi_thread")]
async fn image_from_debians_registry_is_served_through_its_published_port() {
    let lab = Lab::new().await;
    let registry = Debian::start(lab.dir.path());
    let image = registry.push(lab.dir.path(), "demo", &packing::web());
    let web = Container { ports: vec![8080], ..container("web-0", &image) };
    let endpoints = lab.runtime().start(&web).await.unwrap();
    assert_eq!(endpoints.len(), 1);
    assert!(get(&endpoints[0], "/").ends_with("hello from the container\n"));
    assert!(get(&endpoints[0], "/second").ends_with("2\n"));
    assert_eq!(lab.runtime().start(&web).await.unwrap(), endpoints, "a second start adopts it");
    let listed = lab.runtime().list();
    assert!(listed.len() == 1 && listed[0].is_running && listed[0].container == web);

    lab.runtime().stop("web-0").await.unwrap();
    lab.runtime().stop("web-0").await.unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
    assert!(!lab.stored().is_empty());
    lab.runtime().gc(Duration::ZERO).await;
    assert_eq!(lab.stored(), Vec::<std::path::PathBuf>::new());
}

/// The host's ARP cache outlives a container as long as another one keeps the bridge.
#[tokio::test(flavor = "multi_thread")]
async fn reused_ip_address_has_the_same_mac_address() {
    let lab = Lab::new().await;
    lab.registry.put("web", &packing::web());
    let image = lab.registry.name("web");
    let web = |name: &str| Container { ports: vec![8080], ..container(name, &image) };
    let endpoints = lab.runtime().start(&web("stays-0")).await.unwrap();
    get(&endpoints[0], "/");
    let mut caches = Vec::new();
    for name in ["one-0", "two-0"] {
        let endpoints = lab.runtime().start(&web(name)).await.unwrap();
        assert!(get(&endpoints[0], "/").ends_with("hello from the container\n"), "{name}");
        caches.push(lab.neighbours());
        lab.runtime().stop(name).await.unwrap();
    }
    assert!(caches.iter().all(|cache| !cache.is_empty()));
    let pairs: BTreeSet<_> = caches.iter().flatten().collect();
    let addresses: BTreeSet<_> = pairs.iter().map(|(address, _)| address).collect();
    assert_eq!(addresses.len(), pairs.len(), "{pairs:?}");
    lab.runtime().stop("stays-0").await.unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn container_has_its_environment_and_restricted_privileges() {
    let lab = Lab::new().await;
    let script = "echo $FROM_IMAGE $MINE $PWD $HOSTNAME $(hostname); id -u; cat /etc/hosts | grep all-0; \
        grep -E '^(Seccomp|NoNewPrivs|CapBnd|SigIgn):' /proc/self/status; ls /etc/only-below; \
        mount -t tmpfs x /tmp; mknod /tmp/d b 8 0; echo x > /proc/sys/kernel/hostname; unshare -m true; \
        cat /proc/1/environ; ls /proc/1/fd; ls / ; echo done";
    let mut all = lab.shell("all-0", script);
    all.env.insert("MINE".to_owned(), "it is".to_owned());
    let (ending, lines) = lab.run(&all).await;
    let text = lines.join("\n");
    assert_eq!(ending, Condition::Completed, "{text}");
    for expected in [
        "yes it is /www all-0 all-0",
        "\tall-0",
        "Seccomp:\t2",
        "NoNewPrivs:\t1",
        "CapBnd:\t00000000800405fb",
        // 32 and 33 are set by the C library in every program that it starts.
        "SigIgn:\t0000000180000000",
        "/etc/only-below: No such file",
        "mount: permission denied",
        "mknod: /tmp/d: Operation not permitted",
        "can't create /proc/sys/kernel/hostname: Read-only file system",
        "unshare: unshare(0x20000): Operation not permitted",
        "done",
    ] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    lab.runtime().stop("all-0").await.unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_code_and_signal_are_reported() {
    let lab = Lab::new().await;
    for (name, script, expected) in [
        ("ok-0", "exit 0", Condition::Completed),
        ("seven-0", "exit 7", Condition::Failed("Exited with code 7.".to_owned())),
        (
            "sig-0",
            "kill -SEGV $$",
            Condition::Failed("Exited with code 139: signal 11 (SIGSEGV).".to_owned()),
        ),
    ] {
        assert_eq!(lab.run(&lab.shell(name, script)).await.0, expected);
        lab.runtime().stop(name).await.unwrap();
    }
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_command_is_reported_without_leftovers() {
    let lab = Lab::new().await;
    for (command, expected) in [
        ("nonsense", "Command nonsense not found in the image (searched /usr/local"),
        ("/bin/nonsense", "Command /bin/nonsense not found in the image."),
        ("/www", "Command /www cannot run: /www is a directory."),
        ("/www/index.html", "Command /www/index.html cannot run: /www/index.html is not exec"),
    ] {
        let container = Container { command: vec![command.to_owned()], ..lab.shell("x-0", "") };
        let why = lab.runtime().start(&container).await.unwrap_err().to_string();
        assert!(why.starts_with(expected), "{why}");
        assert_eq!(lab.leftovers(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_have_sources_and_are_rotated() {
    let lab = Lab::with(|options| {
        options.max_log_bytes = 4096;
        options.log_files = 2;
    })
    .await;
    let talker = lab.shell("talk-0", "echo out; echo err >&2; printf 'no end'");
    lab.run(&talker).await;
    let lines: Vec<_> = lab.runtime().logs("talk-0", &LogsFrom::Start, true).collect().await;
    let texts: Vec<_> = lines.iter().map(|line| (line.source, line.text.as_str())).collect();
    assert!(texts.contains(&(Source::Stdout, "out")) && texts.contains(&(Source::Stderr, "err")));
    assert!(texts.contains(&(Source::Stdout, "no end")) && lines.len() == 3, "{texts:?}");
    let rest: Vec<_> = lab
        .runtime()
        .logs("talk-0", &LogsFrom::After(lines[0].next.clone()), false)
        .collect()
        .await;
    assert_eq!(rest, lines[1..]);

    lab.run(&lab.shell("many-0", "seq 1 5000")).await;
    let many = lab.lines("many-0").await;
    assert_eq!(many.last().unwrap(), "5000");
    assert!(many.len() < 200, "{} lines are retained", many.len());
    let last: Vec<_> = lab.runtime().logs("many-0", &LogsFrom::Last(2), false).collect().await;
    assert_eq!(last.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["4999", "5000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn followed_log_ends_with_the_container() {
    let lab = Lab::new().await;
    let ticker = lab.shell("tick-0", "for i in 1 2 3 4 5; do echo $i; sleep 0.2; done");
    lab.runtime().start(&ticker).await.unwrap();
    let lines: Vec<_> = lab.runtime().logs("tick-0", &LogsFrom::Start, true).collect().await;
    let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["1", "2", "3", "4", "5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_is_restarted_with_backoff() {
    let lab = Lab::new().await;
    let crash =
        Container { restart: Restart::OnFailure, ..lab.shell("crash-0", "echo up; exit 3") };
    lab.runtime().start(&crash).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let listed = lab.runtime().list();
    // After 0.1, 0.3, 0.7, 1.5 seconds and so on.
    assert!((2..=5).contains(&listed[0].restarts), "{listed:?}");
    assert_eq!(listed[0].last_reason.as_deref(), Some("Exited with code 3."));
    assert!(lab.lines("crash-0").await.len() >= 3);
    lab.runtime().stop("crash-0").await.unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn container_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let lab = Lab::new().await;
    let deaf = lab.shell("deaf-0", "trap '' TERM; while :; do sleep 0.1; done");
    lab.runtime().start(&deaf).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let began = base::monotonic();
    lab.runtime().stop("deaf-0").await.unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(7), "{took:?}");
    lab.runtime().start(&lab.shell("kind-0", "sleep 100")).await.unwrap();
    let began = base::monotonic();
    lab.runtime().stop("kind-0").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

/// The agent runs these in tasks, so their futures must be `Send`.
#[allow(dead_code, reason = "that it compiles is the test")]
fn futures_are_send(runtime: &Embedded, container: &Container) {
    fn check(_: impl Send) {}
    check(runtime.start(container));
    check(runtime.changed("x", &Condition::Completed));
    check(runtime.stop("x"));
    check(runtime.gc(Duration::ZERO));
    check(runtime.logs("x", &LogsFrom::Start, true));
    check(Embedded::probe(Options::new("", "")));
}
