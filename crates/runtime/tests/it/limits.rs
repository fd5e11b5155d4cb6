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
