//! The cgroup of all containers together, limited so that they leave the host enough to work.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Hierarchy, hierarchy_with, write_existing};
use crate::options::Options;

/// Period of CPU quotas.
pub(crate) const CPU_PERIOD_US: i64 = 100_000;
/// Attempts to create a cgroup in a parent that the end of another container may remove.
const ATTEMPTS: usize = 100;
/// Least memory that is left to the host, if it has four times as much.
const MIN_RESERVE: i64 = 128 << 20;

/// Limits of all containers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParentLimits {
    pub(crate) cpu_milli: i64,
    pub(crate) ram_bytes: i64,
    /// Number of processes and threads.
    pub(crate) pids: i64,
}

impl ParentLimits {
    /// What the options allow, and at most what the host has, less a reserve.
    pub(crate) fn new(options: &Options) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let cpus = i64::try_from(cpus).unwrap_or(1);
        let most = Self::of_host(cpus, total_memory(), max_processes());
        let limit = |wanted: Option<i64>, most: i64| wanted.map_or(most, |limit| limit.min(most));
        Self {
            cpu_milli: limit(options.max_cpu_milli, most.cpu_milli).max(10),
            ram_bytes: limit(options.max_ram_bytes, most.ram_bytes),
            ..most
        }
    }

    /// What containers may use of a host: 95 % of its CPUs, 15/16 of its memory, half of its processes.
    fn of_host(cpus: i64, ram_bytes: i64, pids: i64) -> Self {
        let reserve = (ram_bytes / 16).max(MIN_RESERVE).min(ram_bytes / 4);
        Self { cpu_milli: cpus.saturating_mul(950), ram_bytes: ram_bytes - reserve, pids: pids / 2 }
    }

    /// The CPU quota in microseconds per period.
    pub(crate) fn cpu_quota(&self) -> i64 {
        (self.cpu_milli.saturating_mul(CPU_PERIOD_US) / 1000).max(1000)
    }

    /// Creates a container's cgroup below a parent with these limits.
    pub(crate) fn create_below(&self, path: &str) -> io::Result<()> {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        if parent.trim_matches('/').is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut last = io::Error::other("its parent is being removed");
        for _ in 0..ATTEMPTS {
            // The limits last: with its child, the parent can no longer be removed.
            match create(parent).and_then(|()| create(path)).and_then(|()| self.apply(parent)) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Limits a cgroup.
    pub(crate) fn apply(&self, path: &str) -> io::Result<()> {
        let ram = self.ram_bytes.to_string();
        let quota = self.cpu_quota().to_string();
        let (cpu, memory) = (hierarchy_with("cpu"), hierarchy_with("memory"));
        if let Some(hierarchy) = cpu {
            let group = hierarchy.group(path);
            match hierarchy.controllers {
                Some(_) => {
                    set(&group.join("cpu.cfs_period_us"), &CPU_PERIOD_US.to_string())?;
                    set(&group.join("cpu.cfs_quota_us"), &quota)?;
                }
                None => set(&group.join("cpu.max"), &format!("{quota} {CPU_PERIOD_US}"))?,
            }
        }
        if let Some(hierarchy) = memory {
            let group = hierarchy.group(path);
            match hierarchy.controllers {
                Some(_) => {
                    // Memory and swap together, never less than memory: before it to raise both, after
                    // it to lower both. Missing without swap accounting.
                    let swap = group.join("memory.memsw.limit_in_bytes");
                    let _ = write_existing(&swap, &ram);
                    set(&group.join("memory.limit_in_bytes"), &ram)?;
                    let _ = write_existing(&swap, &ram);
                }
                None => {
                    set(&group.join("memory.max"), &ram)?;
                    let _ = write_existing(&group.join("memory.swap.max"), "0");
                }
            }
        }
        if let Some(hierarchy) = hierarchy_with("pids") {
            set(&hierarchy.group(path).join("pids.max"), &self.pids.to_string())?;
        }
        Ok(())
    }
}

/// Sets a limit. One that is in force and can't be changed, because containers use more, is retained.
fn set(file: &Path, value: &str) -> io::Result<()> {
    let found = fs::read_to_string(file)?;
    if found.trim() == value {
        return Ok(());
    }
    let is_limited = !matches!(found.split_whitespace().next(), None | Some("max" | "-1"))
        && found.trim().parse::<u64>().is_ok_and(|limit| limit < 1 << 62);
    write_existing(file, value).or_else(|error| {
        let file = file.display();
        if is_limited {
            Ok(())
        } else {
            Err(io::Error::new(error.kind(), format!("{file}: {error}")))
        }
    })
}

/// Creates a cgroup in each hierarchy with a limit; an existing one is not an error.
fn create(path: &str) -> io::Result<()> {
    for hierarchy in ["cpu", "memory", "pids"].into_iter().filter_map(hierarchy_with) {
        if hierarchy.controllers.is_none() {
            delegate(&hierarchy, path);
        }
        match fs::create_dir(hierarchy.group(path)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Version 2: children have a controller only if their parent enables it. Where that fails, setting
/// the limit does, too.
fn delegate(hierarchy: &Hierarchy, path: &str) {
    let group = hierarchy.group(path);
    let Some(parent) = group.parent() else { return };
    for controller in ["+cpu", "+memory", "+pids"] {
        let _ = write_existing(&parent.join("cgroup.subtree_control"), controller);
    }
}

/// Memory of the host in bytes.
fn total_memory() -> i64 {
    let info = rustix::system::sysinfo();
    let bytes = info.totalram.saturating_mul(u64::from(info.mem_unit));
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Maximum number of processes and threads of the host.
fn max_processes() -> i64 {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim().parse::<i64>().ok()
    };
    [read("pid_max"), read("threads-max")].into_iter().flatten().min().unwrap_or(32_768)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_leave_the_host_a_reserve() {
        let large = ParentLimits::of_host(4, 16 << 30, 32_768);
        assert_eq!((large.cpu_milli, large.ram_bytes, large.pids), (3800, 15 << 30, 16_384));
        assert_eq!(ParentLimits::of_host(1, 1 << 30, 100).ram_bytes, (1 << 30) - MIN_RESERVE);
        assert_eq!(ParentLimits::of_host(1, 256 << 20, 100).ram_bytes, 192 << 20);
        assert_eq!(large.cpu_quota(), 380_000);
    }

    #[test]
    fn options_lower_the_limits_but_never_raise_them() {
        let most = ParentLimits::new(&Options::new("/x", "x"));
        let options = |cpu, ram| Options {
            max_cpu_milli: Some(cpu),
            max_ram_bytes: Some(ram),
            ..Options::new("/x", "x")
        };
        assert_eq!(ParentLimits::new(&options(i64::MAX, i64::MAX)), most);
        let low = ParentLimits::new(&options(100, 64 << 20));
        assert_eq!((low.cpu_milli, low.ram_bytes), (100, 64 << 20));
    }
}
