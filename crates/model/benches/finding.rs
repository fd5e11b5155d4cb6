//! How fast search is: `cargo bench -p paddock-model --bench finding`.
//!
//! Prints one Markdown table: how long queries of each kind take among 100,000 subjects of usual shapes,
//! and among 100,000 whose names all begin alike, what a change costs, and how much memory it takes. The
//! subjects come from fixed seeds; only the times differ from run to run.

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
    println!("| what | queries | p50 | p99 | max | goal |\n|---|---|---|---|---|---|");
    let (own, all) = (Some(organization(7)), None);
    for (name, documents) in
        [("usual names", usual(SUBJECTS)), ("web-00000 to web-99999", alike(SUBJECTS))]
    {
        let before = memory();
        let begin = Instant::now();
        let mut index = Index::new(documents.iter().cloned());
        let (took, kept) = (begin.elapsed(), memory() - before);
        let mut every = Vec::new();
        for (what, texts) in queries(name, &documents) {
            let mut samples = Vec::new();
            for scope in [all, own] {
                for text in &texts {
                    let query = Query::new(text, 20).expect("a good query");
                    let query = Query { organization: scope, ..query };
                    samples.extend((0..TIMES).map(|_| time(|| index.find(&query))));
                }
            }
            every.extend(samples.iter().copied());
            row(&format!("{name}: {what}"), samples, "");
        }
        row(&format!("{name}: **all of these**"), every, "p99 < 10 ms");
        row(
            &format!("{name}: a subject is renamed, and back"),
            renamed(&mut index, &documents),
            "",
        );
        println!(
            "\n{name}: {SUBJECTS} subjects were read in {:.2} s and take {:.0} MB, {:.0} bytes each.\n",
            took.as_secs_f64(),
            kept as f64 / 1e6,
            kept as f64 / f64::from(SUBJECTS)
        );
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
    let words = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    let is_usual = name.starts_with("usual");
    let (common, two, begun) = match is_usual {
        true => (
            words(&["production", "orders", "team", "the", "ready"]),
            words(&["orders production", "team payments", "api eu-west", "web the", "p e"]),
            words(&["o", "pr", "prod", "ord", "e", "s", "w"]),
        ),
        false => (
            words(&["web", "web the", "team", "a"]),
            words(&["web 000", "web w", "web 0", "w 9 t"]),
            words(&["w", "we", "web0", "web00", "0", "00", "9"]),
        ),
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

fn renamed(index: &mut Index, documents: &[Document]) -> Vec<Duration> {
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

fn time<T>(run: impl FnOnce() -> T) -> Duration {
    let begin = Instant::now();
    black_box(run());
    begin.elapsed()
}

fn row(what: &str, mut samples: Vec<Duration>, goal: &str) {
    samples.sort_unstable();
    let last = samples.len() - 1;
    let at = |permille: usize| samples[last * permille / 1000].as_secs_f64() * 1e3;
    let [p50, p99, max] = [500, 990, 1000].map(at);
    println!("| {what} | {} | {p50:.3} ms | {p99:.3} ms | {max:.3} ms | {goal} |", samples.len());
}

/// How much memory this process holds, in bytes.
fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages.split(' ').nth(1).and_then(|text| text.parse::<u64>().ok());
    resident.unwrap_or(0) * 4096
}
