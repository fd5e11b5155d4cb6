//! What containers reach: public addresses with egress, and nothing else.

use std::process::Command;

use runtime::{Container, Firewall, Options};

use crate::lab::{Lab, container, get};
use crate::namespace::{HOST, METADATA, PORT, PRIVATE, PUBLIC, ip, on_a_host};
use crate::packing;
use crate::registry::Fake;

const FIREWALLS: [Firewall; 2] = [Firewall::Nft, Firewall::Iptables];

/// Which of the targets a container reaches by TCP. `gateway` is the host's end of the bridge.
async fn reached(lab: &Lab, targets: &[String]) -> Vec<String> {
    let script = format!(
        "gateway=$(ip route | sed -n 's/default via \\([^ ]*\\).*/\\1/p'); \
         for target in {}; do \
         case $target in gateway:*) at=$gateway;; *) at=${{target%:*}};; esac; \
         nc -w 1 $at ${{target##*:}} </dev/null 2>/dev/null | grep -q hello && echo $target; done; echo done",
        targets.join(" ")
    );
    let (_, mut lines) = lab.run(&lab.shell("probe-0", &script)).await;
    assert_eq!(lines.pop().as_deref(), Some("done"), "{lines:?}");
    lab.runtime().stop("probe-0").await.unwrap();
    lines
}

fn at(address: &str) -> String {
    format!("{address}:{PORT}")
}

/// Everything that a container must not reach.
fn forbidden() -> Vec<String> {
    ["gateway", HOST, METADATA].into_iter().chain(PRIVATE).map(at).collect()
}

fn web(lab: &Lab, name: &str) -> Container {
    let image = lab.registry.put("web", &packing::web());
    Container { ports: vec![8080], ..container(name, &image) }
}

async fn with_egress(firewall: Firewall, change: impl FnOnce(&mut Options)) -> Lab {
    Lab::with(|options| {
        (options.firewall, options.egress) = (firewall, true);
        change(options);
    })
    .await
}

#[test]
fn containers_reach_public_addresses_but_neither_the_host_nor_private_networks() {
    for firewall in FIREWALLS {
        on_a_host(move || async move {
            let lab = with_egress(firewall, |_| {}).await;
            let endpoint = lab.runtime().start(&web(&lab, "web-0")).await.unwrap().remove(0);
            assert!(get(&endpoint, "/").contains("hello"), "published ports work");
            let mut targets = forbidden();
            targets.push(at(PUBLIC));
            assert_eq!(reached(&lab, &targets).await, [at(PUBLIC)], "{firewall:?}");
            // The host itself reaches all of it: the policy is for containers only.
            for target in [HOST, METADATA, PRIVATE[1]] {
                std::net::TcpStream::connect(at(target)).unwrap();
            }
            let lookup = lab.shell("dns-0", "nslookup shop.test");
            let (_, lines) = lab.run(&lookup).await;
            assert!(lines.iter().any(|line| line.contains(PUBLIC)), "DNS works: {lines:?}");
            for name in ["web-0", "dns-0"] {
                lab.runtime().stop(name).await.unwrap();
            }
            assert_eq!((lab.leftovers(), rules()), (Vec::new(), Vec::new()));
        });
    }
}

#[test]
fn containers_without_egress_reach_nothing() {
    for firewall in FIREWALLS {
        on_a_host(move || async move {
            // As another program may have set it.
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
            let lab = Lab::with(|options| options.firewall = firewall).await;
            let endpoint = lab.runtime().start(&web(&lab, "web-0")).await.unwrap().remove(0);
            assert!(get(&endpoint, "/").contains("hello"));
            let mut targets = forbidden();
            targets.push(at(PUBLIC));
            assert_eq!(reached(&lab, &targets).await, Vec::<String>::new(), "{firewall:?}");
            lab.runtime().stop("web-0").await.unwrap();
            assert_eq!((lab.leftovers(), rules()), (Vec::new(), Vec::new()));
        });
    }
}

#[test]
fn allowed_private_network_is_reached_and_others_are_not() {
    for firewall in FIREWALLS {
        on_a_host(move || async move {
            let allow =
                |options: &mut Options| options.egress_allow = vec!["10.9.9.0/24".parse().unwrap()];
            let lab = with_egress(firewall, allow).await;
            assert_eq!(reached(&lab, &forbidden()).await, [at("10.9.9.9")], "{firewall:?}");
        });
    }
}

#[test]
fn containers_do_not_reach_each_other() {
    for firewall in FIREWALLS {
        on_a_host(move || async move {
            let lab = with_egress(firewall, |_| {}).await;
            let endpoint = lab.runtime().start(&web(&lab, "web-0")).await.unwrap().remove(0);
            get(&endpoint, "/");
            let hosts = lab.options.dir.join("containers/web-0/hosts");
            let hosts = std::fs::read_to_string(hosts).unwrap();
            let address = hosts.lines().find(|line| line.ends_with("web-0")).unwrap();
            let address = address.split('\t').next().unwrap();
            assert!(get(&format!("{address}:8080"), "/").contains("hello"), "the host reaches it");
            let ask = r"printf 'GET / HTTP/1.0\r\n\r\n'";
            let script = format!("{ask} | nc -w 2 {address} 8080; echo done");
            let (_, lines) = lab.run(&lab.shell("other-0", &script)).await;
            assert!(!lines.iter().any(|line| line.contains("hello")), "{lines:?}");
            for name in ["web-0", "other-0"] {
                lab.runtime().stop(name).await.unwrap();
            }
        });
    }
}

#[test]
fn containers_have_no_ipv6() {
    on_a_host(|| async {
        let lab = with_egress(Firewall::Auto, |_| {}).await;
        let (_, lines) = lab.run(&lab.shell("six-0", "cat /proc/net/if_inet6; echo done")).await;
        let with_ipv6: Vec<_> =
            lines.iter().filter_map(|line| line.split_whitespace().nth(5)).collect();
        assert_eq!(with_ipv6, ["lo"], "{lines:?}");
        let host = ip("-6 -o address show");
        assert!(host.contains("up0") && !host.contains("pd-"), "the bridge has IPv6: {host}");
        lab.runtime().stop("six-0").await.unwrap();
    });
}

#[test]
fn flushed_rules_are_restored_by_the_next_start() {
    for (firewall, flush) in [
        (Firewall::Nft, "nft flush ruleset"),
        (Firewall::Iptables, "iptables -t mangle -F; iptables -t mangle -X; iptables -t nat -F"),
    ] {
        on_a_host(move || async move {
            let lab = with_egress(firewall, |_| {}).await;
            lab.runtime().start(&web(&lab, "web-0")).await.unwrap();
            let flushed = Command::new("sh").args(["-c", flush]).status().unwrap();
            assert!(flushed.success());
            let mut targets = forbidden();
            targets.push(at(PUBLIC));
            assert_eq!(reached(&lab, &targets).await, [at(PUBLIC)], "{firewall:?}");
        });
    }
}

/// No fallback to the host network: the error says what to install.
#[test]
fn container_that_cannot_be_isolated_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Fake::start();
    let image = registry.put("web", &packing::web());
    // Bounded: a server that starts the container does not end.
    let output = Command::new("timeout")
        .args(["20", "env", "PATH=/nowhere", crate::HELPER])
        .args([dir.path().to_str().unwrap(), "t-nofirewall", &image])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "Containers can't be isolated from the host's network: nft not found; iptables-restore not \
         found. Install nftables or iptables and retry."
    );
}

/// All rules of this namespace that are ours.
fn rules() -> Vec<String> {
    let list = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let all = list("nft", &["list", "ruleset"]) + &list("iptables-save", &[]);
    all.lines().filter(|line| line.contains("paddock")).map(str::to_owned).collect()
}
