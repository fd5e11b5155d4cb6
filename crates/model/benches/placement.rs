//! How well and how fast placement is: `cargo bench -p paddock-model --bench placement`.
//!
//! Prints one Markdown table: what was packed against what could be, decisions per second, and
//! what one change costs in a large world and in a small one. Everything is generated from fixed
//! seeds; only the times differ from run to run. `-- --quick` takes less of everything;
//! `-- packing`, `-- speed`, `-- change` and `-- asking` run one part alone.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and starts its own load"
)]
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::cast_precision_loss, reason = "shown with three digits")]

#[path = "placement/asking.rs"]
mod asking;
#[path = "placement/bound.rs"]
mod bound;
#[path = "placement/change.rs"]
mod change;
#[path = "placement/families.rs"]
mod families;
#[path = "placement/generate.rs"]
mod generate;
#[path = "placement/packing.rs"]
mod packing;
#[path = "placement/speed.rs"]
mod speed;
#[path = "placement/table.rs"]
mod table;

/// Measures something, or less of it if that must be quick.
type Part = fn(bool) -> Vec<table::Row>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let named: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let load = table::load();
    table::head();
    let parts: [(&str, Part); 4] = [
        ("packing", packing::rows),
        ("speed", speed::rows),
        ("change", change::rows),
        ("asking", asking::rows),
    ];
    for (name, rows) in parts {
        if named.is_empty() || named.iter().any(|other| *other == name) {
            let begin = std::time::Instant::now();
            table::print(&rows(is_quick));
            eprintln!("{name} took {:.1} s", begin.elapsed().as_secs_f64());
        }
    }
    table::machine(&load);
}
