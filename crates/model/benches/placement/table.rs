//! The Markdown table of all parts.

use std::fs;
use std::time::{Duration, Instant};

/// A row of the table.
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

/// Prints the machine and its load.
pub(crate) fn machine(load_before: &str) {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = name.map_or("an unknown CPU", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "\nOne thread on {name}, {cores} cores; load average {load_before} before, {} after. \
         Times are wall time, without removing outliers; samples are disturbed if another process \
         got the core meanwhile.",
        load()
    );
}

/// The load averages of the system.
pub(crate) fn load() -> String {
    let all = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Number of involuntary context switches of this thread.
fn interruptions() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// A measured time, and whether another process got the core meanwhile.
pub(crate) struct Sample {
    took: Duration,
    is_disturbed: bool,
}

/// Measures a function.
pub(crate) fn sample<T>(run: impl FnOnce() -> T) -> (Sample, T) {
    let before = interruptions();
    let begin = Instant::now();
    let result = run();
    let took = begin.elapsed();
    (Sample { took, is_disturbed: interruptions() != before }, result)
}

/// Median, tail and maximum of all samples.
pub(crate) fn spread(mut samples: Vec<Sample>) -> String {
    samples.sort_by_key(|sample| sample.took);
    let last = samples.len() - 1;
    let at = |permille: usize| samples[last * permille / 1000].took.as_secs_f64() * 1e6;
    let [median, p99, max] = [500, 990, 1000].map(at);
    let slow = || samples.iter().filter(|sample| sample.took >= Duration::from_millis(1));
    let disturbed = match (slow().count(), slow().filter(|sample| sample.is_disturbed).count()) {
        (0, _) => String::new(),
        (_, disturbed) => format!(", {disturbed} of these disturbed"),
    };
    format!(
        "median {median:.0} µs, p99 {p99:.0} µs, max {max:.0} µs; {} of {} took ≥ 1 ms{disturbed}",
        slow().count(),
        samples.len()
    )
}
