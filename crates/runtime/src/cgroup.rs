//! Cgroups of containers: checks, statistics and removal.

pub(crate) mod parent;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;

/// How long processes of a cgroup may take to exit after SIGKILL, before the caller must retry.
const KILL_TIMEOUT: Duration = Duration::from_secs(20);

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
///
/// Returns false if it still exists: the caller must retain everything that identifies it.
pub(crate) fn remove(path: &str) -> bool {
    // An empty path would be the root cgroup.
    if path.trim_matches('/').is_empty() {
        return true;
    }
    let until = base::monotonic() + KILL_TIMEOUT;
    let mut groups: Vec<PathBuf> = hierarchies().iter().map(|it| it.group(path)).collect();
    loop {
        groups.retain(|group| !remove_empty(group));
        if groups.is_empty() {
            return true;
        }
        if base::monotonic() > until {
            return false;
        }
        kill_all(&groups);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills every process of a cgroup.
pub(crate) fn kill(path: &str) {
    if !path.trim_matches('/').is_empty() {
        kill_all(&hierarchies().iter().map(|it| it.group(path)).collect::<Vec<_>>());
    }
}

/// Whether a cgroup exists.
pub(crate) fn exists(path: &str) -> bool {
    hierarchy_with("memory").is_some_and(|hierarchy| hierarchy.group(path).exists())
}

/// Removes a cgroup without children.
pub(crate) fn remove_if_empty(path: &str) {
    for hierarchy in hierarchies() {
        let _ = fs::remove_dir(hierarchy.group(path));
    }
}

/// A cgroup and its descendants, parents first.
fn descendants(group: &Path) -> Vec<PathBuf> {
    let mut groups = vec![group.to_owned()];
    let mut next = 0;
    while next < groups.len() {
        let entries = fs::read_dir(&groups[next]).into_iter().flatten().flatten();
        let children = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        groups.extend(children.map(|entry| entry.path()));
        next += 1;
    }
    groups
}

/// Removes a cgroup and its descendants, if they have no processes. Returns whether it is gone.
fn remove_empty(group: &Path) -> bool {
    for group in descendants(group).iter().rev() {
        let _ = fs::remove_dir(group);
    }
    !group.exists()
}

/// Kills all processes of the same cgroup in several hierarchies.
///
/// Processes that fork faster than they are killed are stopped first: no process can be added, and
/// the freezer of version 1 holds those that exist. Version 2 has an atomic kill.
fn kill_all(groups: &[PathBuf]) {
    for group in groups {
        // Writing a missing file fails: only some hierarchies have it. Exiting takes CPU time.
        let _ = write_existing(&group.join("cpu.cfs_quota_us"), "-1");
        let _ = write_existing(&group.join("cpu.max"), "max");
        let _ = write_existing(&group.join("pids.max"), "0");
        let _ = write_existing(&group.join("cgroup.kill"), "1");
        let _ = write_existing(&group.join("freezer.state"), "FROZEN");
    }
    for group in groups.iter().flat_map(|group| descendants(group)) {
        let procs = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        for pid in procs.lines().filter_map(|line| line.parse().ok()) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
    // Frozen processes exit only when they are thawed.
    for group in groups {
        let _ = write_existing(&group.join("freezer.state"), "THAWED");
    }
}

/// Writes a control file. Never creates one.
fn write_existing(file: &Path, text: &str) -> std::io::Result<()> {
    fs::OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}
