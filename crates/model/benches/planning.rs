//! Benchmark of planning: `cargo bench -p paddock-model --bench planning`.
//!
//! Prints one Markdown table: parsing, expanding and planning large environments, each by itself.
//! Everything is generated; only the times differ between runs. `-- --quick` takes fewer runs.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and starts its own load"
)]
#![expect(clippy::print_stdout, reason = "prints the results")]

#[path = "planning/generate.rs"]
mod generate;
#[path = "placement/table.rs"]
#[expect(dead_code, reason = "percentiles need many short samples; these are few long ones")]
mod table;
#[path = "planning/world.rs"]
mod world;

use std::time::{Duration, Instant};

use model::template::{
    Act, Context, Plan, Source, Template, expand, parse, plan, plan_destruction,
};
use serde_json::{Map, Value, json};

use table::Row;
use world::World;

/// The goals for the graph with many edges and for the one with many nodes.
const GOALS: [&str; 2] = ["< 50 ms", "< 1 s"];

fn main() {
    let runs = if std::env::args().any(|argument| argument == "--quick") { 3 } else { 25 };
    let load = table::load();
    table::head();
    let dense = vec![generate::dense()];
    table::print(&rows("600 nodes, 135,000 edges", &dense, (600, 135_000), GOALS[0], runs));
    let large = generate::large();
    table::print(&rows("10,000 resources, 60,000 edges", &large, (10_000, 59_979), GOALS[1], runs));
    table::machine(&load);
}

/// Measures an environment with these templates.
fn rows(name: &str, texts: &[String], size: (usize, usize), goal: &str, runs: usize) -> Vec<Row> {
    let read_all =
        || texts.iter().map(|text| parse("t.yaml", text).expect("valid template")).collect();
    let templates: Vec<Template> = read_all();
    let sources: Vec<Source> =
        templates.iter().map(|template| Source { template, files_print: "" }).collect();
    let given = |word: &str| Map::from_iter([("word".to_owned(), Value::from(word))]);
    let expanded = |word: &str| expand(&sources, &given(word)).expect("valid template");

    let desired = expanded("a");
    let edges = desired.nodes.iter().map(|node| node.after.len()).sum::<usize>();
    assert_eq!((desired.nodes.len(), edges), size);
    let world = World::applied(&desired);
    let changed = expanded("b");
    let now = Context { parameters: changed.parameters.clone(), ..world.context.clone() };
    let all = |plan: &Plan, act: Act| plan.steps.iter().all(|step| step.act == act);

    let mut rows = Vec::new();
    let mut row = |what: &str, goal: &str, run: &dyn Fn() -> bool| {
        rows.push(Row::new(format!("{name}: {what}"), measure(runs, run), goal));
    };
    row("parse and validate", "", &|| !read_all().is_empty());
    row("expand", goal, &|| expanded("a").nodes.len() == size.0);
    let context = Context { parameters: desired.parameters.clone(), ..Context::default() };
    row("plan, nothing exists", goal, &|| all(&plan(&desired.nodes, &context, &[]), Act::Create));
    row("plan, no changes", goal, &|| {
        all(&plan(&desired.nodes, &world.context, &world.existing), Act::Nothing)
    });
    row("plan, a shared parameter changes", goal, &|| {
        all(&plan(&changed.nodes, &now, &world.existing), Act::Update)
    });
    row("plan destruction", goal, &|| all(&plan_destruction(&world.existing), Act::Destroy));
    rows
}

/// Measures wall-clock and CPU time over several runs. `run` must return true.
fn measure(runs: usize, run: &dyn Fn() -> bool) -> String {
    let sample = |_| {
        let (begin, cpu_before) = (Instant::now(), cpu_time());
        let is_correct = run();
        let elapsed = (begin.elapsed(), cpu_time().saturating_sub(cpu_before));
        assert!(is_correct, "wrong result");
        elapsed
    };
    let (mut wall, mut cpu): (Vec<Duration>, Vec<Duration>) = (0..runs).map(sample).unzip();
    wall.sort_unstable();
    cpu.sort_unstable();
    let ms = |elapsed: Duration| elapsed.as_secs_f64() * 1e3;
    let [p50, max, cpu_p50, cpu_max] =
        [wall[runs / 2], wall[runs - 1], cpu[runs / 2], cpu[runs - 1]].map(ms);
    format!(
        "p50 {p50:.1} ms, max {max:.1} ms of {runs} runs; CPU time {cpu_p50:.1} and {cpu_max:.1} ms"
    )
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let all = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = all.split(' ').next().and_then(|spent| spent.parse().ok());
    Duration::from_nanos(spent.unwrap_or(0))
}

/// The outputs of a resource.
pub(crate) fn outputs(name: &str) -> Map<String, Value> {
    let Value::Object(outputs) = json!({"host": format!("{name}.local"), "port": 80}) else {
        unreachable!("is a map")
    };
    outputs
}
