//! Cgroups of containers: checks, statistics and removal.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;

/// How long processes of a cgroup may take to exit after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// A mounted cgroup hierarchy.
#[derive(Debug, Clone)]
struct Hierarchy {
    mount: PathBuf,
    /// Controllers of a version 1 hierarchy; none: version 2.
    controllers: Option<String>,
}

/// The cgroup hierarchies of this host.
fn hierarchies() -> Vec<Hierarchy> {
    let Ok(file) = fs::File::open("/proc/self/mountinfo") else { return Vec::new() };
    BufReader::new(file).lines().map_while(Result::ok).filter_map(|line| hierarchy(&line)).collect()
}

fn hierarchy(line: &str) -> Option<Hierarchy> {
    let (mount, kind) = line.split_once(" - ")?;
    let mount = PathBuf::from(mount.split(' ').nth(4)?);
    let mut kind = kind.split(' ');
    match kind.next()? {
        "cgroup" => Some(Hierarchy { mount, controllers: kind.nth(1).map(str::to_owned) }),
        "cgroup2" => Some(Hierarchy { mount, controllers: None }),
        _ => None,
    }
}

impl Hierarchy {
    fn has(&self, controller: &str) -> bool {
        match &self.controllers {
            Some(options) => options.split(',').any(|option| option == controller),
            None => fs::read_to_string(self.mount.join("cgroup.controllers"))
                .is_ok_and(|names| names.split_whitespace().any(|name| name == controller)),
        }
    }

    fn group(&self, path: &str) -> PathBuf {
        self.mount.join(path.trim_start_matches('/'))
    }
}

/// The hierarchy of a controller. Version 1 first: version 2 lacks the controllers it has.
fn hierarchy_with(controller: &str) -> Option<Hierarchy> {
    let mut found: Vec<_> = hierarchies().into_iter().filter(|it| it.has(controller)).collect();
    found.sort_by_key(|it| it.controllers.is_none());
    found.into_iter().next()
}

/// Checks that cgroups can be created. The error says what is missing and how to provide it.
pub(crate) fn check(instance: &str) -> Result<(), Error> {
    for controller in ["memory", "cpu", "pids"] {
        let hierarchy = hierarchy_with(controller).ok_or_else(|| {
            Error::Unsupported(format!(
                "Cgroup controller `{controller}` is missing: mount cgroups at /sys/fs/cgroup. Inside \
                 a container, run privileged."
            ))
        })?;
        let group = hierarchy.group(&format!("paddock-{instance}-probe"));
        fs::create_dir_all(&group).and_then(|()| fs::remove_dir(&group)).map_err(|error| {
            Error::NotPermitted(format!(
                "Cannot create cgroups in {}: {error}. Run where cgroups are writable; inside a \
                 container, run privileged.",
                hierarchy.mount.display()
            ))
        })?;
    }
    Ok(())
}

/// Whether swap accounting is available. Setting a swap limit without it is an error.
pub(crate) fn limits_swap() -> bool {
    match hierarchy_with("memory") {
        Some(Hierarchy { mount, controllers: Some(_) }) => {
            mount.join("memory.memsw.limit_in_bytes").exists()
        }
        Some(_) => Path::new("/proc/swaps").exists(),
        None => false,
    }
}

/// Number of processes in a cgroup that were OOM-killed.
pub(crate) fn oom_kills(path: &str) -> u64 {
    let Some(hierarchy) = hierarchy_with("memory") else { return 0 };
    let group = hierarchy.group(path);
    let file = if hierarchy.controllers.is_some() { "memory.oom_control" } else { "memory.events" };
    let text = fs::read_to_string(group.join(file)).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Kills every process of a cgroup and removes it. A missing cgroup is not an error.
pub(crate) fn remove(path: &str) {
    // An empty path would be the root cgroup.
    if path.trim_matches('/').is_empty() {
        return;
    }
    let until = base::monotonic() + KILL_TIMEOUT;
    for hierarchy in hierarchies() {
        let group = hierarchy.group(path);
        while group.exists() {
            kill_all(&group);
            match fs::remove_dir(&group) {
                Ok(()) => break,
                Err(_) if base::monotonic() > until => break,
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

/// Removes a cgroup without children.
pub(crate) fn remove_if_empty(path: &str) {
    for hierarchy in hierarchies() {
        let _ = fs::remove_dir(hierarchy.group(path));
    }
}

/// Whether the cgroup exists in any hierarchy.
pub(crate) fn exists(path: &str) -> bool {
    hierarchies().iter().any(|hierarchy| hierarchy.group(path).exists())
}

fn kill_all(group: &Path) {
    let procs = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    for pid in procs.lines().filter_map(|line| line.parse().ok()) {
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}
