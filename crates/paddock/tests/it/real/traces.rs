//! A search for what containers leave on a machine.

use std::fs;
use std::path::{Path, PathBuf};

/// All that there is of the containers of a server with this data directory.
pub(crate) fn of(data: &Path) -> Vec<String> {
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
    left.extend(processes(&inside));
    left
}

/// The mounts of all processes' namespaces.
fn namespaces() -> Vec<String> {
    let pids = entries(Path::new("/proc"));
    pids.iter().filter_map(|pid| fs::read_to_string(pid.join("mountinfo")).ok()).collect()
}

/// Processes that were started for something in this directory.
fn processes(dir: &str) -> Vec<String> {
    let line = |pid: &PathBuf| {
        let bytes = fs::read(pid.join("cmdline")).ok()?;
        let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
        text.contains(dir).then(|| format!("process {}: {text}", pid.display()))
    };
    entries(Path::new("/proc")).iter().filter_map(line).collect()
}

/// The cgroups of an installation, in every hierarchy.
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
