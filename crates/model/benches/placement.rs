//! Quality and speed of the scheduler: `cargo bench -p paddock-model --bench placement`.
//!
//! Prints a Markdown table: packing against upper bounds, decisions per second, and the cost of one
//! change in large and small worlds. Inputs are generated from fixed seeds; only the times differ
//! between runs. `-- --quick` reduces all sizes; `-- packing`, `-- speed`, `-- change` and
//! `-- queries` run one part.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![expect(clippy::print_stdout, reason = "the program prints a table")]
#![expect(clippy::cast_precision_loss, reason = "shown with three digits")]

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
#[path = "placement/queries.rs"]
mod queries;
#[path = "placement/speed.rs"]
mod speed;
#[path = "placement/table.rs"]
mod table;

/// Measures one part; the argument selects the quick variant.
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
        ("queries", queries::rows),
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
