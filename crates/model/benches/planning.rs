//! How fast planning is: `cargo bench -p paddock-model --bench planning`.
//!
//! Prints one Markdown table: reading, expanding and planning large environments, each by itself.
//! Everything is generated; only the times differ from run to run. `-- --quick` takes fewer runs.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and starts its own load"
)]
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

#[path = "planning/generate.rs"]
mod generate;
#[path = "placement/table.rs"]
#[expect(dead_code, reason = "spreads are of many short samples, and these are few long ones")]
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

/// The goal for the graph with many edges, and for the one with many nodes.
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

/// Measures one environment, whose templates are these texts.
fn rows(name: &str, texts: &[String], size: (usize, usize), goal: &str, runs: usize) -> Vec<Row> {
    let read = || texts.iter().map(|text| parse("t.yaml", text).expect("it is good")).collect();
    let templates: Vec<Template> = read();
    let sources: Vec<Source> =
        templates.iter().map(|template| Source { template, files_print: "" }).collect();
    let given = |word: &str| Map::from_iter([("word".to_owned(), Value::from(word))]);
    let expanded = |word: &str| expand(&sources, &given(word)).expect("it is good");

    let wish = expanded("a");
    let edges = wish.nodes.iter().map(|node| node.after.len()).sum::<usize>();
    assert_eq!((wish.nodes.len(), edges), size);
    let world = World::of(&wish);
    let changed = expanded("b");
    let now = Context { parameters: changed.parameters.clone(), ..world.context.clone() };
    let all = |plan: &Plan, act: Act| plan.steps.iter().all(|step| step.act == act);

    let mut rows = Vec::new();
    let mut row = |what: &str, goal: &str, run: &dyn Fn() -> bool| {
        rows.push(Row::new(format!("{name}: {what}"), measured(runs, run), goal));
    };
    row("read and check", "", &|| !read().is_empty());
    row("expand", goal, &|| expanded("a").nodes.len() == size.0);
    let context = Context { parameters: wish.parameters.clone(), ..Context::default() };
    row("plan, nothing is there", goal, &|| all(&plan(&wish.nodes, &context, &[]), Act::Create));
    row("plan, all is as it should be", goal, &|| {
        all(&plan(&wish.nodes, &world.context, &world.exists), Act::Nothing)
    });
    row("plan, a parameter that all use differs", goal, &|| {
        all(&plan(&changed.nodes, &now, &world.exists), Act::Update)
    });
    row("plan the end", goal, &|| all(&plan_destruction(&world.exists), Act::Destroy));
    rows
}

/// Runs something several times, and says how long that took, by the clock and on the core. What it
/// gives must be true.
fn measured(runs: usize, run: &dyn Fn() -> bool) -> String {
    let sample = |_| {
        let (begin, worked) = (Instant::now(), on_core());
        let is_right = run();
        let took = (begin.elapsed(), on_core().saturating_sub(worked));
        assert!(is_right, "what was measured is wrong");
        took
    };
    let (mut wall, mut core): (Vec<Duration>, Vec<Duration>) = (0..runs).map(sample).unzip();
    wall.sort_unstable();
    core.sort_unstable();
    let ms = |took: Duration| took.as_secs_f64() * 1e3;
    let [p50, max, core_p50, core_max] =
        [wall[runs / 2], wall[runs - 1], core[runs / 2], core[runs - 1]].map(ms);
    format!(
        "p50 {p50:.1} ms, max {max:.1} ms of {runs} runs; on the core {core_p50:.1} and {core_max:.1} ms"
    )
}

/// How long this thread has been on a core so far, whatever else the machine does.
fn on_core() -> Duration {
    let all = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = all.split(' ').next().and_then(|spent| spent.parse().ok());
    Duration::from_nanos(spent.unwrap_or(0))
}

/// What one more of many gives.
pub(crate) fn outputs(name: &str) -> Map<String, Value> {
    let Value::Object(outputs) = json!({"host": format!("{name}.local"), "port": 80}) else {
        unreachable!("it is a map")
    };
    outputs
}
