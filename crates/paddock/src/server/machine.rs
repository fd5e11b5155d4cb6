//! Detects the capacity of this machine.

use std::path::Path;

use model::{Quantity, Resources};

/// Number of CPUs, memory, and size of the file system of the data directory, in bytes.
pub(crate) fn capacity(data_dir: &Path) -> Resources {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut capacity = Resources::default();
    capacity.set("cpu", Quantity::whole(i64::try_from(cpus).unwrap_or(1)));
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    if let Some(bytes) = total_memory(&meminfo) {
        capacity.set("ram", Quantity::whole(bytes));
    }
    if let Some(bytes) = runtime::disk_size(data_dir) {
        capacity.set("disk", Quantity::whole(i64::try_from(bytes).unwrap_or(i64::MAX / 1000)));
    }
    capacity
}

/// The capacity multiplied by a factor in thousandths.
pub(crate) fn overcommitted(capacity: &Resources, permille: i64) -> Resources {
    let times = |amount: Quantity| {
        let product = i128::from(amount.milli()) * i128::from(permille) / 1000;
        Quantity::from_milli(i64::try_from(product).unwrap_or(Quantity::MAX.milli()))
    };
    capacity.iter().map(|(kind, amount)| (kind.to_owned(), times(amount))).collect()
}

/// What all containers together may use of a machine: less than it has if it gives less, but never
/// more, however much they may request.
pub(crate) fn usable(capacity: &Resources, permille: i64) -> Resources {
    overcommitted(capacity, permille.min(1000))
}

fn total_memory(meminfo: &str) -> Option<i64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_memory_is_parsed_from_meminfo() {
        let text = "MemTotal:       24689764 kB\nMemFree:        100 kB\n";
        assert_eq!(total_memory(text), Some(24_689_764 * 1024));
        assert_eq!(total_memory("nothing of the kind"), None);
    }

    #[test]
    fn overcommitted_capacity_is_a_multiple() {
        let two = Resources::from([("cpu", 2)]);
        assert_eq!(overcommitted(&two, 1500), Resources::from([("cpu", 3)]));
        assert_eq!(overcommitted(&two, 1000), two);
    }

    #[test]
    fn containers_may_request_but_not_use_more_than_the_machine_has() {
        let two = Resources::from([("cpu", 2), ("ram", 1 << 30)]);
        assert_eq!(usable(&two, 2000), two);
        assert_eq!(usable(&two, 1000), two);
        assert_eq!(usable(&two, 500), Resources::from([("cpu", 1), ("ram", 1 << 29)]));
    }

    #[test]
    fn capacity_includes_cpu_and_disk() {
        let capacity = capacity(Path::new("/missing/directory"));
        assert!(capacity.get("cpu") >= Quantity::whole(1));
        assert!(capacity.get("disk") >= Quantity::whole(1 << 20));
    }
}
