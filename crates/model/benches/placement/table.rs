//! The one table that all parts fill, in Markdown.

use std::fs;
use std::time::Duration;

/// A line of it.
pub(crate) struct Row {
    what: String,
    result: String,
    goal: String,
}

impl Row {
    pub(crate) fn new(
        what: impl Into<String>,
        result: impl Into<String>,
        goal: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), result: result.into(), goal: goal.into() }
    }
}

pub(crate) fn head() {
    println!("| what | result | goal |\n|---|---|---|");
}

pub(crate) fn print(rows: &[Row]) {
    for Row { what, result, goal } in rows {
        println!("| {what} | {result} | {goal} |");
    }
}

/// On what this was measured, and what else went on there.
pub(crate) fn machine(load_before: &str) {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = name.map_or("an unknown CPU", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "\nOne thread on {name}, {cores} cores; load average {load_before} before, {} after. \
         Times are wall time; of single changes, all samples count.",
        load()
    );
}

/// The load averages of the system.
pub(crate) fn load() -> String {
    let all = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or("unknown").to_owned()
}

/// All samples of a time: the middle, the tail, and the worst.
pub(crate) fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |permille: usize| times[(times.len() - 1) * permille / 1000].as_secs_f64() * 1e6;
    let [median, p99, max] = [500, 990, 1000].map(at);
    let slow = times.iter().filter(|time| **time >= Duration::from_millis(1)).count();
    let count = times.len();
    format!("median {median:.0} µs, p99 {p99:.0} µs, max {max:.0} µs ({slow} of {count} ≥ 1 ms)")
}
