//! Control groups: where a container's are, what they counted, and how they go away.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;

/// How long the processes of a group may take to vanish after SIGKILL.
const PATIENCE: Duration = Duration::from_secs(5);

/// A place where groups are: one per hierarchy.
#[derive(Debug, Clone)]
struct Hierarchy {
    mount: PathBuf,
    /// None: version 2, which has all of its controllers in one.
    controllers: Option<String>,
}

/// The hierarchies of this machine.
fn hierarchies() -> Vec<Hierarchy> {
    let Ok(file) = fs::File::open("/proc/self/mountinfo") else { return Vec::new() };
    BufReader::new(file).lines().map_while(Result::ok).filter_map(|line| hierarchy(&line)).collect()
}

fn hierarchy(line: &str) -> Option<Hierarchy> {
    let (place, kind) = line.split_once(" - ")?;
    let mount = PathBuf::from(place.split(' ').nth(4)?);
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
                .is_ok_and(|all| all.split_whitespace().any(|one| one == controller)),
        }
    }

    fn group(&self, path: &str) -> PathBuf {
        self.mount.join(path.trim_start_matches('/'))
    }
}

/// Where the groups of a controller are. Version 1 first: it has what version 2 then lacks.
fn with(controller: &str) -> Option<Hierarchy> {
    let mut all: Vec<_> = hierarchies().into_iter().filter(|one| one.has(controller)).collect();
    all.sort_by_key(|one| one.controllers.is_none());
    all.into_iter().next()
}

/// Can containers be limited here? The error says why not and what to do.
pub(crate) fn check(instance: &str) -> Result<(), Error> {
    for controller in ["memory", "cpu", "pids"] {
        let hierarchy = with(controller).ok_or_else(|| {
            Error::Unsupported(format!(
                "This machine has no cgroup controller `{controller}`: mount cgroups at \
                 /sys/fs/cgroup (inside a container, start it privileged)."
            ))
        })?;
        let group = hierarchy.group(&format!("paddock-{instance}-probe"));
        fs::create_dir_all(&group).and_then(|()| fs::remove_dir(&group)).map_err(|error| {
            Error::NotPermitted(format!(
                "Control groups can't be made in {}: {error}; run where they can be written \
                 (inside a container, start it privileged).",
                hierarchy.mount.display()
            ))
        })?;
    }
    Ok(())
}

/// Does this machine count swap? Asking it to where it does not is an error.
pub(crate) fn limits_swap() -> bool {
    match with("memory") {
        Some(Hierarchy { mount, controllers: Some(_) }) => {
            mount.join("memory.memsw.limit_in_bytes").exists()
        }
        Some(_) => Path::new("/proc/swaps").exists(),
        None => false,
    }
}

/// How many processes of a group were killed for using too much memory.
pub(crate) fn oom_kills(path: &str) -> u64 {
    let Some(hierarchy) = with("memory") else { return 0 };
    let group = hierarchy.group(path);
    let file = if hierarchy.controllers.is_some() { "memory.oom_control" } else { "memory.events" };
    let text = fs::read_to_string(group.join(file)).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Ends every process of a group and removes it everywhere. Nothing to do is fine.
pub(crate) fn remove(path: &str) {
    // An empty path would be the root of all groups.
    if path.trim_matches('/').is_empty() {
        return;
    }
    let until = base::monotonic() + PATIENCE;
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

/// Removes a group in which no other one is left.
pub(crate) fn remove_if_empty(path: &str) {
    for hierarchy in hierarchies() {
        let _ = fs::remove_dir(hierarchy.group(path));
    }
}

/// Is anything of the group left?
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
