//! Benchmark of the search index: `cargo bench -p paddock-model --bench search_index`.
//!
//! Prints one Markdown table: the latency of queries among 100,000 subjects with typical names and
//! among 100,000 with a common prefix, the cost of a change, and the memory usage. Subjects come
//! from fixed seeds; only the times differ between runs.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and starts its own load"
)]
#![expect(clippy::print_stdout, reason = "prints the results")]
#![expect(clippy::cast_precision_loss, reason = "printed with three digits")]

#[path = "search_index/subjects.rs"]
mod subjects;

use std::hint::black_box;
use std::time::{Duration, Instant};

use model::search_index::{Document, Index, Query};

use subjects::{Random, common_prefix, organization, typical};

const SUBJECTS: u32 = 100_000;
/// The number of runs of each query.
const RUNS: usize = 40;

fn main() {
    println!(
        "| what | queries | p50 | p99 | max | p99 without preemption | goal |\n|---|---|---|---|---|---|---|"
    );
    let (own, all) = (Some(organization(7)), None);
    // Kept alive to the end: freed memory would be attributed to the next index.
    let mut kept_alive = Vec::new();
    for (name, documents) in
        [("typical names", typical(SUBJECTS)), ("web-00000 to web-99999", common_prefix(SUBJECTS))]
    {
        let before = resident_memory();
        let begin = Instant::now();
        let mut index = Index::new(documents.iter().cloned());
        let (elapsed, retained) = (begin.elapsed(), resident_memory().saturating_sub(before));
        let mut every = Vec::new();
        for (what, texts) in queries(name, &documents) {
            let mut samples = Vec::new();
            for scope in [all, own] {
                for text in &texts {
                    let mut query = Query::new(text, 20).expect("valid query");
                    query.organization = scope;
                    samples.extend((0..RUNS).map(|_| time(|| index.find(&query))));
                }
            }
            every.extend(samples.iter().copied());
            row(&format!("{name}: {what}"), &samples, "");
        }
        row(&format!("{name}: **all queries**"), &every, "p99 < 10 ms");
        row(&format!("{name}: rename a subject twice"), &renamed(&mut index, &documents), "");
        println!(
            "\n{name}: {SUBJECTS} subjects indexed in {:.2} s, taking {:.0} MB, {:.0} bytes each.\n",
            elapsed.as_secs_f64(),
            retained as f64 / 1e6,
            retained as f64 / f64::from(SUBJECTS)
        );
        kept_alive.push((index, documents));
    }
}

/// The queries by category.
fn queries(name: &str, documents: &[Document]) -> Vec<(&'static str, Vec<String>)> {
    let mut random = Random(5);
    let mut some = |n: usize| -> Vec<&Document> {
        (0..n).map(|_| &documents[random.below(documents.len())]).collect()
    };
    let names: Vec<String> = some(20).iter().map(|one| one.name.to_string()).collect();
    let ids: Vec<String> = some(20).iter().map(|one| one.id.to_string()).collect();
    let words = |texts: &[&str]| -> Vec<String> { texts.iter().map(ToString::to_string).collect() };
    let is_typical = name.starts_with("typical");
    let (common, two, prefixes) = if is_typical {
        (
            words(&["production", "orders", "team", "the", "ready"]),
            words(&["orders production", "team payments", "api eu-west", "web the", "p e"]),
            words(&["o", "pr", "prod", "ord", "e", "s", "w"]),
        )
    } else {
        (
            words(&["web", "web the", "team", "a"]),
            words(&["web 000", "web w", "web 0", "w 9 t"]),
            words(&["w", "we", "web0", "web00", "0", "00", "9"]),
        )
    };
    let typos = names.iter().map(|name| subjects::with_typo(name)).collect();
    let joined = names.iter().map(|name| subjects::with_typo(&name.replace('-', ""))).collect();
    vec![
        ("full names", names.clone()),
        (
            "prefixes of names",
            names.iter().map(|name| name[..name.len() * 2 / 3].to_owned()).collect(),
        ),
        ("names with typos", typos),
        ("names with typos, without separators", joined),
        (
            "common words with typos",
            words(&["prodcution", "ordres", "paymnets", "webb", "wbe0", "descirbed"]),
        ),
        ("short prefixes", prefixes),
        ("common words", common),
        ("two words", two),
        ("ids", ids.clone()),
        ("prefixes of ids", ids.iter().map(|id| id[..6].to_owned()).collect()),
        ("no match", words(&["xylophone", "qqqqqqqqqq", "zzzz yyyy", "0000000000x"])),
    ]
}

fn renamed(index: &mut Index, documents: &[Document]) -> Vec<Sample> {
    let samples = documents.iter().step_by(documents.len() / 200).map(|document| {
        let other = Document { name: format!("zz-{}", document.name).into(), ..document.clone() };
        let back = document.clone();
        time(|| {
            index.set(other);
            index.set(back);
        })
    });
    samples.collect()
}

/// A measured time, and whether the thread was preempted meanwhile.
#[derive(Clone, Copy)]
struct Sample {
    elapsed: Duration,
    is_preempted: bool,
}

fn time<T>(run: impl FnOnce() -> T) -> Sample {
    let before = preemptions();
    let begin = Instant::now();
    black_box(run());
    Sample { elapsed: begin.elapsed(), is_preempted: preemptions() != before }
}

/// The number of involuntary context switches of this thread.
fn preemptions() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Prints a row. Only the column without preemption omits samples.
fn row(what: &str, samples: &[Sample], goal: &str) {
    let all: Vec<Duration> = samples.iter().map(|sample| sample.elapsed).collect();
    let undisturbed =
        samples.iter().filter(|sample| !sample.is_preempted).map(|sample| sample.elapsed);
    let ([p50, p99, max], [_, undisturbed, _]) =
        (percentiles(all), percentiles(undisturbed.collect()));
    let count = samples.len();
    println!(
        "| {what} | {count} | {p50:.3} ms | {p99:.3} ms | {max:.3} ms | {undisturbed:.3} ms | {goal} |"
    );
}

/// The median, the 99th percentile and the maximum, in milliseconds.
fn percentiles(mut times: Vec<Duration>) -> [f64; 3] {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    let at = |permille: usize| times.get(last * permille / 1000).map_or(0.0, Duration::as_secs_f64);
    [500, 990, 1000].map(|permille| at(permille) * 1e3)
}

/// The resident memory of this process, in bytes.
fn resident_memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages.split(' ').nth(1).and_then(|text| text.parse::<u64>().ok());
    resident.unwrap_or(0) * 4096
}
