//! Limits that hold.

use std::time::Duration;

use model::Quantity;
use runtime::{Condition, Container};

use crate::lab::{Lab, groups};

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_hog_is_killed_and_the_reason_says_so() {
    let lab = Lab::new().await;
    let hog = lab.shell("hog-0", "exec dd if=/dev/zero of=/dev/null bs=200M count=1");
    let hog = Container { ram: Some(Quantity::whole(32 << 20)), ..hog };
    let (ending, _) = lab.run(&hog).await;
    let expected = "It was killed: it used more than its 32 MiB of ram. Ask for more ram.";
    assert_eq!(ending, Condition::Failed(expected.to_owned()));

    let child =
        lab.shell("child-0", "dd if=/dev/zero of=/dev/null bs=200M count=1; echo $?; exit 5");
    let child = Container { ram: Some(Quantity::whole(32 << 20)), ..child };
    let (ending, lines) = lab.run(&child).await;
    assert!(lines.contains(&"137".to_owned()), "{lines:?}");
    let Condition::Failed(why) = ending else { panic!("it should have failed") };
    assert!(why.starts_with("It ended with code 5, after a process of it was killed"), "{why}");

    let tiny = Container { ram: Some(Quantity::whole(1)), ..lab.shell("tiny-0", "true") };
    let why = lab.runtime().start(&tiny).await.unwrap_err().to_string();
    assert!(why.starts_with("1 byte of ram is too little"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_loop_gets_its_share_of_a_cpu() {
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
    assert_eq!(lab.left(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_end_at_the_limit() {
    let lab = Lab::with(|options| options.max_pids = 10).await;
    let script = "for i in $(seq 1 20); do sleep 5 & done; wait";
    let (_, lines) = lab.run(&lab.shell("fork-0", script)).await;
    assert!(lines.iter().any(|line| line.contains("can't fork")), "{lines:?}");
}
