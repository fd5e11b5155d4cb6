//! Limits on memory, CPU and processes.

use std::time::Duration;

use model::Quantity;
use runtime::{Condition, Container};

use crate::lab::{Lab, groups};

#[tokio::test(flavor = "multi_thread")]
async fn process_beyond_its_memory_limit_is_oom_killed() {
    let lab = Lab::new().await;
    let hog = lab.shell("hog-0", "exec dd if=/dev/zero of=/dev/null bs=200M count=1");
    let hog = Container { ram: Some(Quantity::whole(32 << 20)), ..hog };
    let (ending, _) = lab.run(&hog).await;
    let expected = "OOM-killed: exceeded its memory limit of 32 MiB.";
    assert_eq!(ending, Condition::Failed(expected.to_owned()));

    let child =
        lab.shell("child-0", "dd if=/dev/zero of=/dev/null bs=200M count=1; echo $?; exit 5");
    let child = Container { ram: Some(Quantity::whole(32 << 20)), ..child };
    let (ending, lines) = lab.run(&child).await;
    assert!(lines.contains(&"137".to_owned()), "{lines:?}");
    let Condition::Failed(why) = ending else { panic!("it should have failed") };
    assert!(why.starts_with("Exited with code 5. One of its processes exceeded"), "{why}");

    let tiny = Container { ram: Some(Quantity::whole(1)), ..lab.shell("tiny-0", "true") };
    let why = lab.runtime().start(&tiny).await.unwrap_err().to_string();
    assert!(why.starts_with("Memory limit of 1 byte is below the minimum"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cpu_limit_is_enforced() {
    let lab = Lab::new().await;
    let busy = lab.shell("busy-0", "while :; do :; done");
    let busy = Container { cpu: Some(Quantity::from_milli(200)), ..busy };
    lab.runtime().start(&busy).await.unwrap();
    let pid = lab.runtime().list()[0].pid.unwrap();
    let used = || {
        let procs = groups(&lab.options.instance)
            .iter()
            .find_map(|group| std::fs::read_to_string(group.join("busy-0/cgroup.procs")).ok())
            .unwrap();
        let ticks = |pid: &str| -> u64 {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let fields: Vec<&str> =
                stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
            fields.get(11).map_or(0, |t| t.parse().unwrap())
                + fields.get(12).map_or(0, |t| t.parse::<u64>().unwrap())
        };
        procs.lines().map(ticks).sum::<u64>()
    };
    let before = used();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let ticks = u32::try_from(used() - before).unwrap();
    let share = f64::from(ticks) / 100.0 / 3.0;
    assert!(share < 0.27, "{share} of a CPU (pid {pid})");
    assert!(share > 0.02, "{share} of a CPU (pid {pid})");
    lab.runtime().stop("busy-0").await.unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn fork_fails_at_the_process_limit() {
    let lab = Lab::with(|options| options.max_pids = 10).await;
    let script = "for i in $(seq 1 20); do sleep 5 & done; wait";
    let (_, lines) = lab.run(&lab.shell("fork-0", script)).await;
    assert!(lines.iter().any(|line| line.contains("can't fork")), "{lines:?}");
}

/// A number in a control file of a cgroup, of either version.
fn control(lab: &Lab, container: &str, names: [&str; 2]) -> String {
    let files = groups(&lab.options.instance).into_iter().flat_map(|group| {
        names.map(|name| std::fs::read_to_string(group.join(container).join(name)).ok())
    });
    files.flatten().next().unwrap().split_whitespace().next().unwrap().to_owned()
}

const RAM: [&str; 2] = ["memory.limit_in_bytes", "memory.max"];
const CPU: [&str; 2] = ["cpu.cfs_quota_us", "cpu.max"];

#[tokio::test(flavor = "multi_thread")]
async fn container_without_limits_has_the_defaults() {
    let lab = Lab::with(|options| {
        let defaults = runtime::Options::new("/x", "x");
        options.default_cpu_milli = defaults.default_cpu_milli;
        options.default_ram_bytes = defaults.default_ram_bytes;
    })
    .await;
    lab.runtime().start(&lab.shell("plain-0", "sleep 100")).await.unwrap();
    assert_eq!(control(&lab, "plain-0", RAM), (64 << 20).to_string());
    assert_eq!(control(&lab, "plain-0", CPU), "10000");
    assert_eq!(lab.runtime().get("plain-0").unwrap().ram_bytes, Some(64 << 20));
    let hog = lab.shell("hog-0", "exec dd if=/dev/zero of=/dev/null bs=200M count=1");
    let (ended, _) = lab.run(&hog).await;
    let expected = "OOM-killed: exceeded its memory limit of 64 MiB.";
    assert_eq!(ended, Condition::Failed(expected.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn container_starts_with_the_minimum_of_memory() {
    let lab = Lab::new().await;
    let ram = Some(Quantity::whole(4 << 20));
    let (ended, _) = lab.run(&Container { ram, ..lab.shell("least-0", "true") }).await;
    assert_eq!(ended, Condition::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_together_are_limited() {
    let change = |options: &mut runtime::Options| {
        (options.max_cpu_milli, options.max_ram_bytes) = (Some(500), Some(100 << 20));
    };
    let mut lab = Lab::with(change).await;
    // Each within its own limit, together beyond that of all.
    let fill = "dd if=/dev/zero of=/dev/shm/fill bs=1M count=60; sleep 100";
    for name in ["one-0", "two-0", "three-0"] {
        let ram = Some(Quantity::whole(90 << 20));
        let cpu = Some(Quantity::whole(4));
        let container = Container { ram, cpu, ..lab.shell(name, fill) };
        lab.runtime().start(&container).await.unwrap();
        assert_eq!(control(&lab, name, CPU), "50000", "at most what all have together");
    }
    let killed = async {
        loop {
            let listed = lab.runtime().list();
            if listed.iter().any(|container| !container.is_running) || logs_of(&lab).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), killed).await.unwrap();
    let limits = |lab: &Lab| (control(lab, ".", RAM), control(lab, ".", CPU));
    assert_eq!(limits(&lab), ((100 << 20).to_string(), "50000".to_owned()));
    // A new server with other settings.
    lab.runtime = None;
    (lab.options.max_cpu_milli, lab.options.max_ram_bytes) = (Some(600), Some(200 << 20));
    lab.runtime = Some(runtime::Embedded::probe(lab.options.clone()).await.unwrap());
    assert_eq!(limits(&lab), ((200 << 20).to_string(), "60000".to_owned()));
    for name in ["one-0", "two-0", "three-0"] {
        lab.runtime().stop(name).await.unwrap();
    }
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

/// Whether the kernel killed a process of one of the containers.
async fn logs_of(lab: &Lab) -> bool {
    for name in ["one-0", "two-0", "three-0"] {
        if lab.lines(name).await.iter().any(|line| line.contains("Killed")) {
            return true;
        }
    }
    false
}
