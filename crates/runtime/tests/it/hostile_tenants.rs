//! Two organizations on one machine. One attacks with everything at once; the other's service keeps
//! answering.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::Quantity;
use model::deployment::Restart;
use runtime::{Container, Error};
use serde_json::json;

use crate::hostile::{DEEP_TREE, FORK_BOMB};
use crate::lab::{Lab, container, get, groups};
use crate::namespace::{HOST, METADATA, PORT, PRIVATE, on_a_host};
use crate::packing::{self, Image, Layer};

/// A container of an organization, with usual limits.
fn of(owner: &str, container: Container) -> Container {
    Container {
        owner: Some(owner.to_owned()),
        cpu: Some(Quantity::from_milli(300)),
        ram: Some(Quantity::whole(64 << 20)),
        disk: Some(Quantity::whole(64 << 20)),
        ..container
    }
}

/// Requests a page without pause until it is told to stop.
struct Visitor {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(usize, Vec<String>)>,
}

impl Visitor {
    fn start(endpoint: String) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (mut answered, mut failed) = (0, Vec::new());
            while !stopped.load(Ordering::Relaxed) {
                match visit(&endpoint) {
                    Ok(answer) if answer.contains("hello from the container") => answered += 1,
                    other => failed.push(format!("{other:?}")),
                }
            }
            (answered, failed)
        });
        Self { stop, thread }
    }

    /// Number of answers, and failures.
    fn end(self) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn visit(endpoint: &str) -> std::io::Result<String> {
    let address = endpoint.parse().unwrap();
    let limit = Duration::from_secs(30);
    let mut stream = std::net::TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Address of a container.
fn address(lab: &Lab, name: &str) -> String {
    let hosts = lab.options.dir.join("containers").join(name).join("hosts");
    let hosts = std::fs::read_to_string(hosts).unwrap();
    let line = hosts.lines().find(|line| line.ends_with(name)).unwrap();
    line.split('\t').next().unwrap().to_owned()
}

/// A script that prints its id maps, and which of the targets it reaches.
fn scout(other: &str) -> String {
    let greeters: Vec<_> = ["$gateway", HOST, METADATA].into_iter().chain(PRIVATE).collect();
    format!(
        "cat /proc/self/uid_map /proc/self/gid_map; \
         gateway=$(ip route | sed -n 's/default via \\([^ ]*\\).*/\\1/p'); \
         for at in {}; do nc -w 1 $at {PORT} </dev/null 2>/dev/null | grep -q hello && echo reached $at; done; \
         printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {other} 8080 2>/dev/null | grep -q hello && echo reached {other}; \
         echo done",
        greeters.join(" ")
    )
}

/// Runs a scout. Returns the first of its user ids on the host.
async fn explore(lab: &Lab, owner: &str, other: &str) -> u32 {
    let name = format!("scout-{owner}");
    let (_, lines) = lab.run(&of(owner, lab.shell(&name, &scout(other)))).await;
    assert_eq!((lines.len(), lines[2].as_str()), (3, "done"), "{lines:?}");
    let fields: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!((fields[0], fields[2]), ("0", "65536"), "{lines:?}");
    assert_eq!(lines[0], lines[1], "the same for groups");
    lab.runtime().stop(&name).await.unwrap();
    fields[1].parse().unwrap()
}

/// The attacks of one organization, by name.
fn attacks(lab: &Lab) -> Vec<Container> {
    let hog = "while :; do dd if=/dev/zero of=/dev/null bs=200M count=1; done";
    let fill = "dd if=/dev/zero of=/tmp/big bs=1M count=1200 2>&1; \
                i=0; while mkdir /tmp/$i; do i=$((i+1)); done 2>&1 | head -n 1; sleep 1000";
    let deep = format!("{DEEP_TREE}; sleep 1000");
    let attacks =
        [("bomb", FORK_BOMB), ("hog", hog), ("fill", fill), ("flood", "exec yes"), ("deep", &deep)];
    let attack = |(name, script): (&str, &str)| Container {
        restart: Restart::Always,
        ..of("evil", lab.shell(name, script))
    };
    attacks.map(attack).into()
}

/// Waits until each attack meets its limit.
async fn until_all_attacks_fail(lab: &Lab) {
    let mut open = BTreeSet::from(["bomb", "hog", "fill", "flood", "deep"]);
    let waiting = async {
        while !open.is_empty() {
            for name in open.clone() {
                if has_failed(lab, name).await {
                    open.remove(name);
                }
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(3), waiting).await;
    assert!(waited.is_ok(), "still unlimited: {open:?}");
}

async fn has_failed(lab: &Lab, name: &str) -> bool {
    let has_line = async |text: &str| lab.lines(name).await.iter().any(|line| line.contains(text));
    match name {
        "bomb" => groups(&lab.options.instance).iter().any(|group| {
            let procs = std::fs::read_to_string(group.join("bomb/cgroup.procs"));
            procs.is_ok_and(|procs| procs.lines().count() > 50)
        }),
        "hog" => has_line("Killed").await,
        "fill" => has_line("No space left").await,
        // Rotated: files beyond the first exist.
        "flood" => {
            let logs = lab.options.dir.join("containers/flood/logs");
            crate::lab::entries(&logs).len() > 1
        }
        _ => has_line("dug").await || has_line("No space left").await,
    }
}

#[test]
fn service_of_one_organization_answers_while_another_attacks() {
    on_a_host(|| async {
        let lab = Lab::with(|options| {
            options.egress = true;
            (options.max_log_bytes, options.max_image_bytes) = (1 << 20, 256 << 20);
        })
        .await;
        let image = lab.registry.put("web", &packing::web());
        let web = |name: &str| Container { ports: vec![8080], ..container(name, &image) };
        let endpoint = lab.runtime().start(&of("good", web("good"))).await.unwrap().remove(0);
        lab.runtime().start(&of("evil", web("evil"))).await.unwrap();
        assert!(get(&endpoint, "/").contains("hello"));
        let visitor = Visitor::start(endpoint);

        for attack in attacks(&lab) {
            lab.runtime().start(&attack).await.unwrap();
        }
        // 4 GiB of zeros in a few bytes.
        let sparse = Layer::new().sparse("huge", 4 << 30).tar();
        let sparse =
            Image::new(vec![packing::busybox().tar(), sparse], json!({"Cmd": ["/bin/sh"]}));
        let sparse = container("sparse", &lab.registry.put("sparse", &sparse));
        let refused = lab.runtime().start(&of("evil", sparse)).await;
        assert!(matches!(refused, Err(Error::ImageTooLarge(_))), "{refused:?}");

        // In the middle of all that.
        let evil = explore(&lab, "evil", &address(&lab, "good")).await;
        let good = explore(&lab, "good", &address(&lab, "evil")).await;
        assert!(evil.abs_diff(good) >= 65_536 && evil.min(good) > 1_000_000, "{evil} {good}");
        until_all_attacks_fail(&lab).await;
        for name in ["bomb", "hog", "fill", "flood", "deep", "evil"] {
            lab.runtime().stop(name).await.unwrap();
        }
        let (answered, failed) = visitor.end();
        assert_eq!(failed, Vec::<String>::new(), "{answered} requests were answered");
        assert!(answered > 10, "{answered}");
        lab.runtime().stop("good").await.unwrap();
        assert_eq!(lab.leftovers(), Vec::<String>::new());
    });
}
