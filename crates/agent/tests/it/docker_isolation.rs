//! Isolation of organizations with real engines.

use agent::docker::Engine;
use agent::{Docker, Runtime};
use futures_util::StreamExt;
use model::agent::{Observed, ReplicaId};
use model::cluster::ONLY_NODE;
use model::deployment::Spec;
use model::log::LogsFrom;
use model::{OrganizationId, Quantity, Resources, Xid};

use crate::contract::{replica, shell};
use crate::engine::EngineLab;

#[tokio::test(flavor = "multi_thread")]
async fn docker_containers_of_two_organizations_do_not_reach_each_other() {
    check_networks(Engine::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_containers_of_two_organizations_do_not_reach_each_other() {
    check_networks(Engine::Podman).await;
}

fn organization(n: u32) -> OrganizationId {
    OrganizationId(Xid::new(1, [9; 5], n))
}

async fn run(runtime: &Docker, id: ReplicaId, owner: OrganizationId, spec: &Spec) -> Vec<String> {
    match runtime.start(id, ONLY_NODE, Some(owner), spec).await {
        Observed::Running { endpoints } => endpoints,
        other => panic!("{other:?}"),
    }
}

/// Runs a script to its end and returns its log.
async fn log(runtime: &Docker, owner: OrganizationId, spec: &Spec) -> Vec<String> {
    let id = replica(9);
    run(runtime, id, owner, spec).await;
    let lines = runtime.logs(id, LogsFrom::Start, true).map(|line| line.text);
    let lines = tokio::time::timeout(std::time::Duration::from_mins(1), lines.collect()).await;
    runtime.stop(id).await.unwrap();
    lines.unwrap()
}

async fn check_networks(engine: Engine) {
    let (lab, runtime) = EngineLab::new(engine).await;
    let (ann, bob) = (organization(1), organization(2));
    let script = "ip -4 -o addr show eth0; exec httpd -f -p 8080 -h /www";
    let web = Spec { ports: vec![8080], ..shell(&lab.image, script) };
    let endpoints = run(&runtime, replica(1), ann, &web).await;
    assert!(lab.get(&endpoints[0]).contains("hello"), "published ports work");
    let first: Vec<_> = runtime.logs(replica(1), LogsFrom::Start, false).collect().await;
    let address = first[0].text.split(" inet ").nth(1).unwrap().split('/').next().unwrap();

    let request = r"printf 'GET / HTTP/1.0\r\n\r\n'";
    let ask =
        shell(&lab.image, &format!("{request} | nc -w 3 {address} 8080 2>/dev/null; echo done"));
    let is_answered = |lines: &[String]| {
        assert_eq!(lines.last().map(String::as_str), Some("done"), "{lines:?}");
        lines.iter().any(|line| line == "hello from the container")
    };
    assert!(!is_answered(&log(&runtime, bob, &ask).await), "another organization");
    assert!(is_answered(&log(&runtime, ann, &ask).await), "the same organization");

    runtime.stop(replica(1)).await.unwrap();
    assert_eq!(lab.leftovers().await, Vec::<String>::new(), "networks are removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_containers_have_few_privileges() {
    check_privileges(Engine::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_containers_have_few_privileges() {
    check_privileges(Engine::Podman).await;
}

async fn check_privileges(engine: Engine) {
    let (lab, runtime) = EngineLab::new(engine).await;
    let mut resources = Resources::default();
    resources.set("ram", Quantity::whole(64 << 20));
    let script = "grep -E '^(NoNewPrivs|CapBnd|CapEff):' /proc/self/status; \
                  cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max; \
                  cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max; \
                  cat /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes /sys/fs/cgroup/memory.swap.max";
    let spec = Spec { resources, ..shell(&lab.image, &format!("({script}) 2>/dev/null; true")) };
    let lines = log(&runtime, organization(1), &spec).await;
    for expected in [
        "NoNewPrivs:\t1",
        "CapBnd:\t00000000800405fb",
        "CapEff:\t00000000800405fb",
        "1024",
        "67108864",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected}: {lines:?}");
    }
    assert_eq!(lab.leftovers().await, Vec::<String>::new());
}
