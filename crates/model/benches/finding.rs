//! How fast search is: `cargo bench -p paddock-model --bench finding`.
//!
//! Prints one Markdown table: how long queries of each kind take among 100,000 subjects of usual shapes,
//! and among 100,000 whose names all begin alike, what a change costs, and how much memory it takes. The
//! subjects come from fixed seeds; only the times differ from run to run.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and starts its own load"
)]
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::cast_precision_loss, reason = "shown with three digits")]

#[path = "finding/subjects.rs"]
mod subjects;

use std::hint::black_box;
use std::time::{Duration, Instant};

use model::finding::{Document, Index, Query};

use subjects::{Random, alike, organization, usual};

const SUBJECTS: u32 = 100_000;
/// How often each query is asked.
const TIMES: usize = 40;

fn main() {
    println!(
        "| what | queries | p50 | p99 | max | p99 undisturbed | goal |\n|---|---|---|---|---|---|---|"
    );
    let (own, all) = (Some(organization(7)), None);
    // All are kept to the end: memory that was given back would be counted for the next.
    let mut kept_alive = Vec::new();
    for (name, documents) in
        [("usual names", usual(SUBJECTS)), ("web-00000 to web-99999", alike(SUBJECTS))]
    {
        let before = memory();
        let begin = Instant::now();
        let mut index = Index::new(documents.iter().cloned());
        let (took, kept) = (begin.elapsed(), memory().saturating_sub(before));
        let mut every = Vec::new();
        for (what, texts) in queries(name, &documents) {
            let mut samples = Vec::new();
            for scope in [all, own] {
                for text in &texts {
                    let mut query = Query::new(text, 20).expect("a good query");
                    query.organization = scope;
                    samples.extend((0..TIMES).map(|_| time(|| index.find(&query))));
                }
            }
            every.extend(samples.iter().copied());
            row(&format!("{name}: {what}"), &samples, "");
        }
        row(&format!("{name}: **all of these**"), &every, "p99 < 10 ms");
        row(
            &format!("{name}: a subject is renamed, and back"),
            &renamed(&mut index, &documents),
            "",
        );
        println!(
            "\n{name}: {SUBJECTS} subjects were read in {:.2} s and take {:.0} MB, {:.0} bytes each.\n",
            took.as_secs_f64(),
            kept as f64 / 1e6,
            kept as f64 / f64::from(SUBJECTS)
        );
        kept_alive.push((index, documents));
    }
}

/// Queries of each kind.
fn queries(name: &str, documents: &[Document]) -> Vec<(&'static str, Vec<String>)> {
    let mut random = Random(5);
    let mut some = |n: usize| -> Vec<&Document> {
        (0..n).map(|_| &documents[random.below(documents.len())]).collect()
    };
    let names: Vec<String> = some(20).iter().map(|one| one.name.to_string()).collect();
    let ids: Vec<String> = some(20).iter().map(|one| one.id.to_string()).collect();
    let words = |texts: &[&str]| -> Vec<String> { texts.iter().map(ToString::to_string).collect() };
    let is_usual = name.starts_with("usual");
    let (common, two, begun) = if is_usual {
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
    let mistyped = names.iter().map(|name| subjects::mistyped(name)).collect();
    let joined = names.iter().map(|name| subjects::mistyped(&name.replace('-', ""))).collect();
    vec![
        ("whole names", names.clone()),
        (
            "beginnings of names",
            names.iter().map(|name| name[..name.len() * 2 / 3].to_owned()).collect(),
        ),
        ("mistyped names", mistyped),
        ("mistyped names, without gaps", joined),
        (
            "mistyped common words",
            words(&["prodcution", "ordres", "paymnets", "webb", "wbe0", "descirbed"]),
        ),
        ("a letter or a few", begun),
        ("common words", common),
        ("two words", two),
        ("ids", ids.clone()),
        ("beginnings of ids", ids.iter().map(|id| id[..6].to_owned()).collect()),
        ("nothing", words(&["xylophone", "qqqqqqqqqq", "zzzz yyyy", "0000000000x"])),
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

/// How long something took, and whether another process had the core meanwhile.
#[derive(Clone, Copy)]
struct Sample {
    took: Duration,
    is_disturbed: bool,
}

fn time<T>(run: impl FnOnce() -> T) -> Sample {
    let before = interruptions();
    let begin = Instant::now();
    black_box(run());
    Sample { took: begin.elapsed(), is_disturbed: interruptions() != before }
}

/// How often this thread had to leave its core to another so far.
fn interruptions() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// No sample is left out, but for the one column that says so.
fn row(what: &str, samples: &[Sample], goal: &str) {
    let all: Vec<Duration> = samples.iter().map(|sample| sample.took).collect();
    let calm = samples.iter().filter(|sample| !sample.is_disturbed).map(|sample| sample.took);
    let ([p50, p99, max], [_, calm, _]) = (spread(all), spread(calm.collect()));
    let count = samples.len();
    println!(
        "| {what} | {count} | {p50:.3} ms | {p99:.3} ms | {max:.3} ms | {calm:.3} ms | {goal} |"
    );
}

/// The middle, the tail and the worst, in milliseconds.
fn spread(mut times: Vec<Duration>) -> [f64; 3] {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    let at = |permille: usize| times.get(last * permille / 1000).map_or(0.0, Duration::as_secs_f64);
    [500, 990, 1000].map(|permille| at(permille) * 1e3)
}

/// How much memory this process holds, in bytes.
fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages.split(' ').nth(1).and_then(|text| text.parse::<u64>().ok());
    resident.unwrap_or(0) * 4096
}
