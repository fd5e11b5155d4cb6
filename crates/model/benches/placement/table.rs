//! The one table that all parts fill, in Markdown.

use std::fs;
use std::time::{Duration, Instant};

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
         Times are wall time, and no sample is left out; disturbed are those during which another \
         process got the core.",
        load()
    );
}

/// The load averages of the system.
pub(crate) fn load() -> String {
    let all = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or("unknown").to_owned()
}

/// How often this thread had to leave its core to another so far.
fn interruptions() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// How long something took, and whether another process had the core meanwhile.
pub(crate) struct Sample {
    took: Duration,
    is_disturbed: bool,
}

/// Runs something and tells how long that took.
pub(crate) fn sample<T>(run: impl FnOnce() -> T) -> (Sample, T) {
    let before = interruptions();
    let begin = Instant::now();
    let result = run();
    let took = begin.elapsed();
    (Sample { took, is_disturbed: interruptions() != before }, result)
}

/// All samples of a time: the middle, the tail, and the worst. None is left out.
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
