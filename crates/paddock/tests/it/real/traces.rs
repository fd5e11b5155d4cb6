//! Finds and removes traces of containers on the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Mounts, cgroups, files and processes of containers of the server with this data directory.
pub(crate) fn find(data: &Path) -> Vec<String> {
    let runtime = data.join("runtime");
    let instance = fs::read_to_string(runtime.join("instance")).unwrap();
    let mut left = Vec::new();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let inside = runtime.display().to_string();
    left.extend(mounts.lines().filter(|line| line.contains(&inside)).map(str::to_owned));
    left.extend(groups(instance.trim()).iter().map(|path| format!("cgroup {}", path.display())));
    left.extend(namespaces().into_iter().filter(|mounts| mounts.contains(&inside)));
    for part in ["containers", "tmp"] {
        left.extend(entries(&runtime.join(part)).iter().map(|path| path.display().to_string()));
    }
    left.extend(started_for(&inside).iter().map(|pid| format!("process {}", pid.display())));
    left
}

/// Removes all traces. The server must not be running.
pub(crate) fn clean_up(data: &Path) {
    let runtime = data.join("runtime");
    let Ok(instance) = fs::read_to_string(runtime.join("instance")) else { return };
    let started: Vec<PathBuf> = started_for(&runtime.display().to_string());
    let pids = started.iter().filter_map(|pid| pid.file_name()?.to_str());
    run("kill", &["-9"], pids.collect());
    let bridge = HEXLOWER.encode(&Sha256::digest(instance.trim()))[..8].to_owned();
    run("ip", &["link", "del"], vec![&format!("pd-{bridge}")]);
    run("nft", &["delete", "table", "inet"], vec![&format!("paddock_{bridge}")]);
    for group in groups(instance.trim()) {
        // A cgroup can be removed after its last process has exited.
        for _ in 0..100 {
            if fs::remove_dir(&group).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn run(program: &str, before: &[&str], after: Vec<&str>) {
    if !after.is_empty() {
        let _ = Command::new(program).args(before).args(after).output();
    }
}

/// Mounts of all mount namespaces.
fn namespaces() -> Vec<String> {
    let pids = entries(Path::new("/proc"));
    pids.iter().filter_map(|pid| fs::read_to_string(pid.join("mountinfo")).ok()).collect()
}

/// Processes whose command line contains this directory.
fn started_for(dir: &str) -> Vec<PathBuf> {
    let is_ours = |pid: &PathBuf| {
        fs::read(pid.join("cmdline"))
            .is_ok_and(|words| String::from_utf8_lossy(&words).contains(dir))
    };
    entries(Path::new("/proc")).into_iter().filter(is_ours).collect()
}

/// Cgroups of a runtime instance, in every hierarchy.
fn groups(instance: &str) -> Vec<PathBuf> {
    let name = format!("paddock-{instance}");
    let root = Path::new("/sys/fs/cgroup");
    let roots = entries(root).into_iter().filter(|path| path.is_dir());
    let roots: Vec<PathBuf> = roots.chain([root.to_owned()]).collect();
    let below = roots.iter().map(|root| root.join(&name));
    below.flat_map(|group| entries(&group)).filter(|path| path.is_dir()).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
