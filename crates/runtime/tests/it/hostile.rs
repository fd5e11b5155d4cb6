//! Containers that try to exhaust the host: deep trees, fork bombs, full disks, endless logs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use model::Quantity;
use model::log::LogsFrom;
use runtime::{Condition, Container, Embedded};
use rustix::fs::{CWD, Mode, OFlags};

use crate::lab::{Lab, get, groups};

/// Deeper than a recursive removal survives with a stack of 2 MiB, or with 20,000 descriptors.
const DEPTH: usize = 25_000;

/// Creates nested directories below a directory, with a file in the innermost.
fn dig(directory: &Path, name: &OsStr, depth: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut current = rustix::fs::openat(CWD, directory, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&current, name, Mode::from_raw_mode(0)).unwrap();
        current = rustix::fs::openat(&current, name, flags, Mode::empty()).unwrap();
    }
    let flags = OFlags::CREATE | OFlags::WRONLY;
    rustix::fs::openat(&current, "innermost", flags, Mode::empty()).unwrap();
}

/// Creates 30 times 512 nested directories.
pub(crate) const DEEP_TREE: &str = "cd /tmp; p=d; for i in $(seq 9); do p=$p/$p; done; \
                         for i in $(seq 30); do mkdir -p $p && cd -P $p || exit 1; done; echo dug";

/// Forks without end and ignores SIGTERM. A shell that can't fork exits, so the first one doesn't.
pub(crate) const FORK_BOMB: &str = "trap '' TERM; echo 'while :; do sh /tmp/bomb & done' > /tmp/bomb; \
                         sh /tmp/bomb & exec sleep 1000";

#[tokio::test(flavor = "multi_thread")]
async fn container_with_a_deep_tree_is_removed() {
    let lab = Lab::new().await;
    let (ended, lines) = lab.run(&lab.shell("deep-0", DEEP_TREE)).await;
    assert_eq!((ended, lines.last().map(String::as_str)), (Condition::Completed, Some("dug")));
    lab.runtime().stop("deep-0").await.unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_trees_of_a_killed_server_do_not_prevent_a_start() {
    let mut lab = Lab::new().await;
    lab.runtime = None;
    let newline = OsStr::from_bytes(b"-rf \n\xff");
    let long = OsStr::from_bytes(&[b'x'; 255]);
    for (part, name) in [("tmp/1-x", newline), ("containers/half-0", long), ("layers/old", long)] {
        let dir = lab.options.dir.join(part);
        std::fs::create_dir_all(&dir).unwrap();
        dig(&dir, name, DEPTH);
    }
    let began = base::monotonic();
    lab.runtime = Some(Embedded::probe(lab.options.clone()).await.unwrap());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    lab.runtime().start(&lab.shell("good-0", "sleep 100")).await.unwrap();
    lab.runtime().gc(Duration::ZERO).await;
    lab.runtime().stop("good-0").await.unwrap();
    lab.until_no_leftovers(Duration::from_secs(30)).await;
    assert!(!lab.options.dir.join("layers/old").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn fork_bomb_is_removed_while_others_are_served() {
    let lab = Lab::new().await;
    let web = lab.web("web-0").await;
    lab.runtime().start(&lab.shell("bomb-0", FORK_BOMB)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    // Processes need CPU time even to exit, and these have next to none.
    for group in groups(&lab.options.instance) {
        for (file, quota) in [
            ("cpu.cfs_period_us", "1000000"),
            ("cpu.cfs_quota_us", "1000"),
            ("cpu.max", "1000 1000000"),
        ] {
            let file = group.join("bomb-0").join(file);
            if file.exists() {
                std::fs::write(file, quota).unwrap();
            }
        }
    }
    let stopped = tokio::time::timeout(Duration::from_mins(1), lab.runtime().stop("bomb-0")).await;
    assert_eq!(stopped, Ok(Ok(())));
    assert!(get(&web, "/").contains("hello"));
    assert!(groups(&lab.options.instance).iter().all(|group| !group.join("bomb-0").exists()));
    lab.runtime().stop("web-0").await.unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_in_child_cgroups_are_killed() {
    let lab = Lab::new().await;
    lab.runtime().start(&lab.shell("stuck-0", "sleep 100")).await.unwrap();
    // The cgroup can't be removed before its child.
    let groups = groups(&lab.options.instance);
    let memory = groups.iter().find(|group| group.starts_with("/sys/fs/cgroup/memory"));
    let group = memory.unwrap_or(&groups[0]).join("stuck-0/held");
    std::fs::create_dir(&group).unwrap();
    let mut held = std::process::Command::new("sleep").arg("100").spawn().unwrap();
    let pid = held.id().to_string();
    std::fs::write(group.join("cgroup.procs"), &pid).unwrap();
    // The pid stays in the cgroup until this test has reaped it.
    let reaper = std::thread::spawn(move || held.wait().unwrap());
    lab.runtime().stop("stuck-0").await.unwrap();
    reaper.join().unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn cgroup_that_outlived_its_files_is_removed() {
    let lab = Lab::new().await;
    lab.runtime().start(&lab.shell("lost-0", "sleep 100")).await.unwrap();
    crate::lab::kill(crate::lab::number(&lab, "lost-0/state.json", "shim"));
    std::fs::remove_dir_all(lab.options.dir.join("containers/lost-0")).unwrap();
    lab.runtime().stop("lost-0").await.unwrap();
    assert!(groups(&lab.options.instance).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn disk_filler_meets_its_limit() {
    let lab = Lab::new().await;
    let fill = "dd if=/dev/zero of=/tmp/big bs=1M count=1200 2>&1; ls -l /tmp/big";
    let is_full = |lines: &[String]| lines.iter().any(|line| line.contains("No space left"));
    let default = lab.shell("fill-0", fill);
    let small = lab.shell("fill-1", fill);
    let (disk, ram) = (Some(Quantity::whole(64 << 20)), Some(Quantity::whole(32 << 20)));
    let small = Container { disk, ram, ..small };
    let many = "i=0; while mkdir /tmp/$i; do i=$((i+1)); done 2>&1 | head -n 1";
    let many = Container { disk, ..lab.shell("fill-2", many) };
    for container in [default, small, many] {
        let (_, lines) = lab.run(&container).await;
        assert!(is_full(&lines), "{lines:?}");
        let disk = container.disk.map_or(1 << 30, |disk| disk.milli() / 1000);
        let image = lab.options.dir.join("containers").join(&container.name).join("disk.img");
        let used = std::fs::metadata(image).unwrap();
        assert!(i64::try_from(used.blocks() * 512).unwrap() <= disk + (1 << 20), "{used:?}");
        lab.runtime().stop(&container.name).await.unwrap();
    }
    let tiny = Container { disk: Some(Quantity::whole(5)), ..lab.shell("tiny-0", "true") };
    let why = lab.runtime().start(&tiny).await.unwrap_err().to_string();
    assert!(why.starts_with("Disk limit of 5 bytes is below the minimum of 4 MiB."), "{why}");
    assert_eq!(lab.leftovers(), Vec::<String>::new());
    // The kernel detaches them a moment after the last process has ended.
    let until = base::monotonic() + Duration::from_secs(10);
    while !lab.loop_devices().is_empty() && base::monotonic() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(lab.loop_devices(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn log_of_a_flooding_container_ends_at_the_position_of_the_request() {
    let lab = Lab::with(|options| options.max_log_bytes = 1 << 20).await;
    lab.runtime().start(&lab.shell("flood-0", "exec yes")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let lines = lab.runtime().logs("flood-0", &LogsFrom::Start, false).count();
    let lines = tokio::time::timeout(Duration::from_secs(20), lines).await;
    // Four files of 1 MiB with at least 40 bytes per line.
    assert!(lines.as_ref().is_ok_and(|lines| (1..(4 << 20) / 40).contains(lines)), "{lines:?}");
    let last = lab.runtime().logs("flood-0", &LogsFrom::Last(3), false).count();
    let last = tokio::time::timeout(Duration::from_secs(20), last).await;
    assert_eq!(last, Ok(3));
    lab.runtime().stop("flood-0").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn followed_log_is_limited_in_rate() {
    let lab = Lab::new().await;
    lab.runtime().start(&lab.shell("flood-0", "exec yes")).await.unwrap();
    let mut bytes = 0;
    let follow = async {
        let mut lines = lab.runtime().logs("flood-0", &LogsFrom::Start, true);
        while let Some(line) = lines.next().await {
            bytes += line.text.len() + 40;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(10), follow).await;
    // 1 MiB per second, and as much as a burst.
    assert!(bytes > 1 << 20, "{bytes}");
    assert!(bytes < 16 << 20, "{bytes}");
    lab.runtime().stop("flood-0").await.unwrap();
}
